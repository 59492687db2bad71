"""A form for a new job."""

from __future__ import annotations

import shlex
from typing import Any, Final

from queuectl.errors import InvalidInput, QueuectlError, Unavailable
from queuectl.job.resources import LIMITS
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Done, Fields, Shown
from queuectl.web.pages.notices import done
from queuectl.web.pages.wording import part

_PLAIN: Final = ("id", "queue", "timeout", "delay", "run_at", "cwd", "unique_key", "memory", "cpu_time", "file_size")
WHOLE: Final = ("priority", "max_retries", "nice", "open_files", "processes")


def show(desk: Desk, ask: Ask) -> Shown:
    return _form(desk, ask.query, None)


def add(desk: Desk, ask: Ask) -> Shown | Done:
    """What was typed is still there if it is refused."""
    try:
        job = desk.enqueue(**read_fields(ask.form))
    except Unavailable:
        raise
    except QueuectlError as error:
        return _form(desk, ask.form, error)
    words = f"Job {job.id} was there already" if job.is_duplicate else f"Job {job.id} enqueued"
    return Done(f"/jobs/{part(job.id)}", done(words))


def _form(desk: Desk, fields: Fields, error: QueuectlError | None) -> Shown:
    values: dict[str, Any] = {
        "said": lambda name: fields.text(name) or "",
        "limits": {name: fields.text(name) for name in LIMITS},
        "error": error,
        "queue_names": sorted(desk.reads.tally()),
        "defaults": {entry.key: entry.text for entry in desk.settings.entries()},
    }
    return Shown("enqueue.html", "New job", values, status=200 if error is None else 422)


def read_fields(form: Fields) -> dict[str, Any]:
    """As `enqueue` takes them from JSON. What was left empty is not said."""
    said: dict[str, Any] = {name: value for name in _PLAIN if (value := form.one(name)) is not None}
    command = form.text("command") or ""
    if form.one("how") == "argv":
        said["argv"] = _words(command)
    else:
        said["command"] = command
    for name in WHOLE:
        if (text := form.one(name)) is not None:
            said[name] = whole(text, name)
    if (tags := form.one("tags")) is not None:
        said["tags"] = tags.replace(",", " ").split()
    if (secrets := form.one("secrets")) is not None:
        said["secrets"] = secrets.replace(",", " ").split()
    if (after := form.one("after")) is not None:
        said["depends_on"] = after.replace(",", " ").split()
    if (env := form.text("env")) is not None and env.strip():
        said["env"] = dict(_variables(env))
    return said


def whole(text: str, name: str) -> int | str:
    """A number if it is one; what is wrong with it, `enqueue` says."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 18 else text


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as exc:
        raise InvalidInput("command", f"cannot be split into words: {exc}", hint="close every quote") from exc


def _variables(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in filter(str.strip, text.split("\n")):
        name, sign, value = line.partition("=")
        if not sign:
            raise InvalidInput("env", f"expected NAME=VALUE, got {line!r}", hint="a variable a line")
        pairs.append((name.strip(), value))
    return pairs
