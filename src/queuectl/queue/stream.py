"""Adding jobs as their lines arrive: what has been read is committed together, and a bad line costs only itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from queuectl.clock import Clock
from queuectl.errors import DuplicateId, InvalidInput, InvalidLine, KeyTaken, QueuectlError, UsageError
from queuectl.errors.flow import ParentEnded, ParentNotFound
from queuectl.job.newjob import NewJob
from queuectl.job.spec import Defaults
from queuectl.queue.enqueue import Flags, Place, Queued, make_jobs, queued, told_at
from queuectl.queue.intake import CommandLines, Format, JsonLines, decode, guess_format
from queuectl.queue.patience import persist
from queuectl.store.protocol import Inbox

# A line is a number in the input and a job, or what is wrong with it.
Line = tuple[int, NewJob | QueuectlError]

_ARRAY: Final = UsageError("a JSON array cannot be streamed", hint="give one object a line, or leave --stream away")


def enqueue_stream(
    read: Callable[[], bytes], place: Place, *, flags: Flags, form: Format | None, clock: Clock
) -> Iterator[Queued | QueuectlError]:
    """For each line its job, once it is committed, or the error. `read` waits for more and gives b"" at the end.

    A server that goes away for a moment is waited for, unless it may have taken the jobs already.
    """
    inbox: Inbox | None = None
    number = 1
    for block in _blocks(read):
        form = form or guess_format(block)
        if form is Format.JSON:
            raise _ARRAY
        lines = block.split(b"\n")
        if form is not None:
            defaults = persist(clock, place.stored_defaults)
            read_lines = [
                line for at, text in enumerate(lines, number) for line in _read(text, at, form, defaults, flags)
            ]
            if inbox is None and any(isinstance(found, NewJob) for _, found in read_lines):
                inbox = persist(clock, place.open_inbox)
            yield from _commit(inbox, read_lines, clock)
        number += len(lines) - 1


def _blocks(read: Callable[[], bytes]) -> Iterator[bytes]:
    """Whole lines, as many as have arrived; the last one may lack its end."""
    pieces: list[bytes] = []
    while chunk := read():
        head, newline, tail = chunk.rpartition(b"\n")
        if newline:
            yield b"".join([*pieces, head, newline])
            pieces = [tail]
        else:
            pieces.append(chunk)
    yield b"".join(pieces)


def _read(text: bytes, number: int, form: Format, defaults: Defaults, flags: Flags) -> Iterator[Line]:
    """Nothing for a blank line."""
    try:
        kind = CommandLines if form is Format.LINES else JsonLines
        line = decode(text.removeprefix(b"\xef\xbb\xbf") if number == 1 else text, first_line=number)
        for job in make_jobs(kind([line], first=number), defaults, flags=flags):
            yield number, job
    except UsageError as error:
        yield number, error


def _commit(inbox: Inbox | None, lines: list[Line], clock: Clock) -> Iterator[Queued | QueuectlError]:
    jobs = [found for _, found in lines if isinstance(found, NewJob)]
    added: list[Queued | QueuectlError] = []
    if inbox is not None and jobs:
        try:
            added = list(queued(persist(clock, lambda: inbox.enqueue(jobs))))
        except (DuplicateId, KeyTaken, ParentNotFound, ParentEnded, InvalidInput):
            # One of them is the bad one: which, only one at a time can tell.
            added = [_add(inbox, number, found, clock) for number, found in lines if isinstance(found, NewJob)]
    results = iter(added)
    for _, found in lines:
        yield next(results) if isinstance(found, NewJob) else found


def _add(inbox: Inbox, number: int, job: NewJob, clock: Clock) -> Queued | QueuectlError:
    try:
        return next(queued(persist(clock, lambda: inbox.enqueue([job]))))
    except DuplicateId as error:
        return DuplicateId(error.job_id, where=f"line {number}")
    except KeyTaken as error:
        return told_at(error, f"line {number}")
    except (ParentNotFound, ParentEnded, InvalidInput) as error:
        return InvalidLine(number, error)
