"""A job as a page to edit, and what of the page has become different."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from typing import Any

import click

from queuectl.errors import Conflict, InvalidInput
from queuectl.job.change import Change, read_change
from queuectl.job.duration import format_duration
from queuectl.job.model import Job, iso
from queuectl.job.resources import LIMITS


class EditorFailed(Conflict):
    code = "editor-failed"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="set $EDITOR to one that runs here, or say it by options: --priority 5")


_HEAD = """\
# Job {id}. Change what you like, save and leave; what stays as it is, or is taken out, is not touched.
# It is changed only if it still waits then, and nobody else has changed it.
"""


def page(job: Job) -> str:
    """TOML: it takes a command of several lines as it is, and remarks."""
    if job.command is not None:
        what = f'# for the shell; argv = ["a word", …] runs without one\ncommand = {_text(job.command)}'
    else:
        words = ", ".join(map(_text, job.argv or ()))
        what = f'# run without a shell; command = "…" is for one\nargv = [{words}]'
    timeout = "0" if job.timeout_ms is None else f'"{format_duration(job.timeout_ms)}"'
    return f"""{_HEAD.format(id=job.id)}
{what}

queue = {_text(job.queue)}
# higher goes first
priority = {job.priority}
# not before; or delay = "10m" from now
run_at = "{iso(job.run_at)}"
# failed runs after which it is dead
max_retries = {job.max_retries}
# of a run, like "1h30m"; 0: none
timeout = {timeout}
# of what a run may use, each "2GiB", "30s" or a number; 0: any
{_limits(job)}
# variables whose values its worker finds out, like "PGPASSWORD=db-password"
secrets = [{", ".join(map(_text, job.secrets))}]
"""


def _limits(job: Job) -> str:
    given = job.limits or {}
    values = {name: limit.text(given[name]) if name in given else "0" for name, limit in LIMITS.items()}
    return "\n".join(f"{name} = {text if text.lstrip('-').isdigit() else _text(text)}" for name, text in values.items())


def edit_page(text: str) -> str:
    """What whoever sits there makes of it, in the editor of $VISUAL or $EDITOR."""
    try:
        return click.edit(text, extension=".toml", require_save=False) or ""
    except click.ClickException as exc:
        raise EditorFailed(exc.format_message()) from exc


def read_page(before: str, after: str) -> Change | None:
    """What has become different; None for nothing. Raises InvalidInput, with the place of what is not TOML."""
    shown = tomllib.loads(before)
    try:
        given: dict[str, Any] = tomllib.loads(after)
    except tomllib.TOMLDecodeError as exc:
        raise InvalidInput("the page", str(exc), hint="it is TOML: name = value") from exc
    changes = {name: value for name, value in given.items() if name not in shown or shown[name] != value}
    return read_change(changes) if changes else None


def keep(text: str) -> str:
    """Where the text of somebody is that came to nothing: only they can read it."""
    fd, path = tempfile.mkstemp(prefix="queuectl-edit-", suffix=".toml")
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _text(value: str) -> str:
    """Lines stay lines. What JSON escapes, TOML reads alike; but it has no room for a bare DEL."""
    lines = [json.dumps(line, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f") for line in value.split("\n")]
    if len(lines) == 1:
        return f'"{lines[0]}"'
    body = "\n".join(lines)
    return f'"""\n{body}"""'
