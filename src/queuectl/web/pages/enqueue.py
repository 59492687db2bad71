"""The form for a new job."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final

from queuectl.errors import InvalidInput, QueuectlError, Unavailable
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.spec import PackedLimits
from queuectl.store_threads import WebSession
from queuectl.web.pages.http import Fields, PageRequest, Redirect, View, done
from queuectl.web.pages.render import part


def limit_texts(limits: PackedLimits | None) -> Mapping[str, str | None]:
    """The limits as text for a form, which parses to the same values; None if there is no limit."""
    given = limits or {}
    return {name: limit.text(given[name]) if name in given else None for name, limit in LIMITS.items()}


_TEXT_FIELDS: Final = (
    "id",
    "queue",
    "timeout",
    "delay",
    "run_at",
    "cwd",
    "unique_key",
    "memory",
    "cpu_time",
    "file_size",
)
INTEGER_FIELDS: Final = ("priority", "max_retries", "nice", "open_files", "processes")


def show(session: WebSession, ask: PageRequest) -> View:
    return _form(session, ask.query, None)


def add(session: WebSession, ask: PageRequest) -> View | Redirect:
    """Enqueue the job. After an error the form keeps its values."""
    try:
        job = session.enqueue(**read_fields(ask.form))
    except Unavailable:
        raise
    except QueuectlError as error:
        return _form(session, ask.form, error)
    message = f"Job {job.id} already existed" if job.is_duplicate else f"Job {job.id} enqueued"
    return Redirect(f"/jobs/{part(job.id)}", done(message))


def _form(session: WebSession, fields: Fields, error: QueuectlError | None) -> View:
    values: dict[str, Any] = {
        "value_of": lambda name: fields.text(name) or "",
        "limits": {name: fields.text(name) for name in LIMITS},
        "error": error,
        "queue_names": sorted(session.reads.tally()),
        "defaults": {entry.key: entry.text for entry in session.settings.entries()},
    }
    return View("enqueue.html", "New job", values, status=200 if error is None else 422)


def read_fields(form: Fields) -> dict[str, Any]:
    """The fields for `enqueue`, without those that are empty."""
    fields: dict[str, Any] = {name: value for name in _TEXT_FIELDS if (value := form.one(name)) is not None}
    command = form.text("command") or ""
    if form.one("how") == "argv":
        fields["argv"] = _split(command)
    else:
        fields["command"] = command
    for name in INTEGER_FIELDS:
        if (text := form.one(name)) is not None:
            fields[name] = parse_integer(text, name)
    if (tags := form.one("tags")) is not None:
        fields["tags"] = tags.replace(",", " ").split()
    if (secrets := form.one("secrets")) is not None:
        fields["secrets"] = secrets.replace(",", " ").split()
    if (after := form.one("after")) is not None:
        fields["depends_on"] = after.replace(",", " ").split()
    if (env := form.text("env")) is not None and env.strip():
        fields["env"] = dict(_variables(env))
    return fields


def parse_integer(text: str, name: str) -> int | str:
    """An integer if it is one; else the text, which `enqueue` rejects with a message."""
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 18 else text


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as exc:
        raise InvalidInput("command", f"cannot be split into arguments: {exc}", hint="close every quote") from exc


def _variables(text: str) -> list[tuple[str, str]]:
    pairs = []
    for line in filter(str.strip, text.split("\n")):
        name, sign, value = line.partition("=")
        if not sign:
            raise InvalidInput("env", f"expected NAME=VALUE, got {line!r}", hint="one variable per line")
        pairs.append((name.strip(), value))
    return pairs
