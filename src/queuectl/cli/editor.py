"""A job as a TOML document for an editor, and the changes made to it."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from typing import Any

import click

from queuectl.errors import Conflict, InvalidInput
from queuectl.jobs.edit import JobEdit, parse_edit
from queuectl.jobs.model import Job
from queuectl.jobs.resources import LIMITS
from queuectl.units import format_duration, iso


class EditorFailed(Conflict):
    code = "editor-failed"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="set $EDITOR to one that runs here, or use options: --priority 5")


_HEAD = """\
# Job {id}. Edit, save and quit. Fields that are unchanged or removed keep their value.
# The job is changed only if it still waits, and was not changed meanwhile.
"""


def to_toml(job: Job) -> str:
    """TOML has comments and strings of several lines."""
    if job.command is not None:
        what = f'# for the shell; argv = ["program", …] runs without one\ncommand = {_text(job.command)}'
    else:
        arguments = ", ".join(map(_text, job.argv or ()))
        what = f'# run without a shell; command = "…" is for one\nargv = [{arguments}]'
    timeout = "0" if job.timeout_ms is None else f'"{format_duration(job.timeout_ms)}"'
    return f"""{_HEAD.format(id=job.id)}
{what}

queue = {_text(job.queue)}
# higher runs first
priority = {job.priority}
# earliest start; or delay = "10m" from now
run_at = "{iso(job.run_at)}"
# failed runs until the job is dead
max_retries = {job.max_retries}
# of a run, like "1h30m"; 0 for unlimited
timeout = {timeout}
# limits of a run, each "2GiB", "30s" or a number; 0 for unlimited
{_limits(job)}
# variables set to secrets, like "PGPASSWORD=db-password"
secrets = [{", ".join(map(_text, job.secrets))}]
"""


def _limits(job: Job) -> str:
    given = job.limits or {}
    values = {name: limit.text(given[name]) if name in given else "0" for name, limit in LIMITS.items()}
    return "\n".join(f"{name} = {text if text.lstrip('-').isdigit() else _text(text)}" for name, text in values.items())


def edit_text(text: str) -> str:
    """Open `text` in the editor of $VISUAL or $EDITOR, and return the saved text."""
    try:
        return click.edit(text, extension=".toml", require_save=False) or ""
    except click.ClickException as exc:
        raise EditorFailed(exc.format_message()) from exc


def parse_changes(before: str, after: str) -> JobEdit | None:
    """The changed fields; None if there are none. Raises InvalidInput with the position of a syntax error."""
    shown = tomllib.loads(before)
    try:
        given: dict[str, Any] = tomllib.loads(after)
    except tomllib.TOMLDecodeError as exc:
        raise InvalidInput("the page", str(exc), hint="it is TOML: name = value") from exc
    changes = {name: value for name, value in given.items() if name not in shown or shown[name] != value}
    return parse_edit(changes) if changes else None


def save_text(text: str) -> str:
    """Save text that could not be applied to a file that only the user can read; return its path."""
    fd, path = tempfile.mkstemp(prefix="queuectl-edit-", suffix=".toml")
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _text(value: str) -> str:
    """A TOML string; newlines are kept. The escapes of JSON are valid in TOML, which also requires one for DEL."""
    lines = [json.dumps(line, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f") for line in value.split("\n")]
    if len(lines) == 1:
        return f'"{lines[0]}"'
    body = "\n".join(lines)
    return f'"""\n{body}"""'
