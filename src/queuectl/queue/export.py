"""Jobs as text that people can read and `import` reads back: what is in it, how it is laid out, and a file to hold it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from typing import Any, Final

from queuectl.errors import FileExists, FileUnwritable
from queuectl.job.hooks import hidden
from queuectl.queue.enqueue import Advance, untold
from queuectl.store.protocol import Filter, Reads

CHUNK: Final = 2**16
# What file systems say that have no links.
_WITHOUT_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class Format(StrEnum):
    JSON = "json"  # one array, a job a line
    JSONL = "jsonl"  # a job a line


def export(
    store: Reads, where: Filter, *, history: bool, show_env: bool, advance: Advance = untold
) -> Iterator[dict[str, Any]]:
    """The jobs that match, in the order of enqueue and as they are at one moment: what `show` has of each but for its
    output, which is in its log. Calls of webhooks only if their queue is named: import does not take them."""
    total = store.count(where)
    for number, (job, runs) in enumerate(store.export(where, history=history), 1):
        value = job.to_dict(show_env=show_env)
        if job.first_is_free:
            # No part of a job elsewhere, where it can be seen by what it does. Without it import would take a run from it.
            value["first_attempt_is_free"] = True
        if job.batch is not None:
            value["batch"] = job.batch
        if job.key is not None:
            value["key"] = job.key
        if job.places is not None:
            value["places"] = job.places
        if job.hooks:
            value["hooks"] = job.hooks if show_env else hidden(job.hooks)
        if history:
            value["history"] = [run.to_dict() for run in runs]
        advance(number, total)
        yield value


def lay_out(values: Iterable[dict[str, Any]], form: Format) -> Iterator[str]:
    """The text, in pieces that follow each other; the last one comes only when all is there."""
    if form is Format.JSONL:
        for value in values:
            yield json.dumps(value, ensure_ascii=False) + "\n"
        return
    opening = "["
    for value in values:
        yield f"{opening}\n{json.dumps(value, ensure_ascii=False)}"
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"


def spooled(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, from a temporary file that holds all of them before the first is returned.

    Jobs are exported as they are at one moment, in one read transaction. A reader that pauses must not keep it open, or the
    write-ahead log of SQLite grows until it goes on.
    """
    import tempfile

    try:
        with tempfile.TemporaryFile() as file:
            file.writelines(pieces)
            file.seek(0)
            while chunk := file.read(CHUNK):
                yield chunk
    except OSError as exc:
        raise FileUnwritable(tempfile.gettempdir(), exc.strerror or str(exc)) from exc


def write_new(path: str, pieces: Iterable[str]) -> None:
    """Into a new file that only we can read, which is there when all of it is on the disk, or never."""
    if os.path.lexists(path):
        raise FileExists(path)
    part = f"{path}.{os.getpid()}.part"
    try:
        fd = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as exc:
        raise FileUnwritable(path, exc.strerror or str(exc)) from exc
    try:
        with open(fd, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(fd)
        _publish(part, path)
    except FileExistsError as exc:
        raise FileExists(path) from exc
    except OSError as exc:
        raise FileUnwritable(path, exc.strerror or str(exc)) from exc
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def _publish(part: str, path: str) -> None:
    # A link and no new name for it: that would take the place of a file that somebody has made meanwhile.
    try:
        os.link(part, path)
    except OSError as exc:
        if exc.errno not in _WITHOUT_LINKS:
            raise
        os.rename(part, path)
