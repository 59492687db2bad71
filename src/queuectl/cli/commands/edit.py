"""The command `edit`: change waiting jobs by options, or a single one in an editor, as a TOML document."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from functools import partial
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.commands.control import BulkAction, apply, apply_to_ids
from queuectl.cli.completion import complete_queues, complete_secrets
from queuectl.cli.errors import yes_option
from queuectl.cli.filters import Selection, ids_and_filters
from queuectl.cli.job_options import ONE_OF_THEM, editable_options
from queuectl.cli.render import Done, Result
from queuectl.errors import Conflict, InvalidInput, QueuectlError, UsageError, WrongState
from queuectl.jobs.edit import JobEdit, parse_edit
from queuectl.jobs.model import Job
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.spec import check_field
from queuectl.jobs.states import WAITING
from queuectl.operations import control
from queuectl.units import format_duration, iso, to_ms


@command("edit")
@ids_and_filters()
@editable_options
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME[=ENTRY]",
    shell_complete=complete_secrets,
    help="Set a variable to a secret; replaces all earlier secrets.",
)
@click.option("--no-secrets", is_flag=True, help="Remove all secrets.")
@click.option(
    "--move-to", metavar="NAME", shell_complete=complete_queues, help="Queue to move to; with IDs also --queue."
)
@yes_option
def edit(
    app: App,
    ids: tuple[str, ...],
    selection: Selection,
    yes: bool,
    move_to: str | None,
    no_secrets: bool,
    **fields: Any,
) -> Result:
    """Change waiting jobs with options, or a single job in your editor.

    Running and finished jobs are refused. If a job changed while you edited it, your edit is refused. The job moves to the
    position that a job with the new values would have had from the start.

    Examples:
        # in your editor ($VISUAL, $EDITOR)
        queuectl edit 7f3a
        queuectl edit 7f3a --command 'make all' --timeout 1h
        # to another queue
        queuectl edit 7f3a --queue slow
        # all that match; asks first
        queuectl edit --match ffmpeg --max-attempts 5 --move-to slow
    """
    if no_secrets and fields["secrets"]:
        raise UsageError("--secret and --no-secrets at once", hint=ONE_OF_THEM)
    fields["secrets"] = () if no_secrets else fields["secrets"] or None
    spelled = "--move-to"
    if ids and move_to is None and (move_to := selection.only_queue()) is not None:
        selection, spelled = Selection({}), "--queue"
    if move_to is not None:
        check_field("queue", move_to, spelled=spelled)
    change = parse_edit({**fields, "queue": move_to}, dashes="--")
    if change != JobEdit():
        return apply(
            app, BulkAction(partial(control.edit, change=change), "edit", "changed", WAITING), ids, selection, yes=yes
        )
    if len(ids) != 1 or selection or app.flags.json or not (app.stdin.isatty() and app.stdout_is_terminal):
        hint = "for example, add --priority 5; a single id on a terminal opens your editor"
        raise UsageError("nothing to change", hint=hint)
    return _edit_in_editor(app, ids[0])


def _edit_in_editor(app: App, ref: str) -> Result:
    reads = app.open_reads()
    job = reads.get(reads.resolve(ref))
    if job.state not in WAITING:
        raise WrongState(job.id, job.state, verb="edit", hint="only a job that waits can be changed")
    before = _to_toml(job)
    after = _edit_text(before)
    try:
        change = _parse_changes(before, after)
        if change is None:
            app.say(app.paint("nothing changed", "dim"))
            return Done([])

        do = partial(control.edit, change=change, as_of=to_ms(job.updated_at))
        done = apply_to_ids(app, BulkAction(do, "edit", "changed", WAITING), [job.id])
        for _, error in done.refused:
            raise error
    except QueuectlError as error:
        error.hint = f"{error.hint}; your text is kept in {_save_text(after)}"
        raise
    return done


class EditorFailed(Conflict):
    code = "editor-failed"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="set $EDITOR to one that runs here, or use options: --priority 5")


_HEAD: Final = """\
# Job {id}. Edit, save and quit. Fields that are unchanged or removed keep their value.
# The job is changed only if it still waits and was not changed in the meantime.
"""


def _to_toml(job: Job) -> str:
    """TOML has comments and strings of several lines."""
    if job.command is not None:
        what = f'# for the shell; argv = ["program", …] runs without one\ncommand = {_toml_text(job.command)}'
    else:
        arguments = ", ".join(map(_toml_text, job.argv or ()))
        what = f'# run without a shell; command = "…" is for one\nargv = [{arguments}]'
    timeout = "0" if job.timeout_ms is None else f'"{format_duration(job.timeout_ms)}"'
    return f"""{_HEAD.format(id=job.id)}
{what}

queue = {_toml_text(job.queue)}
# higher runs first
priority = {job.priority}
# earliest start; or delay = "10m" from now
run_at = "{iso(job.run_at)}"
# failed runs until the job is dead
max_retries = {job.max_retries}
# time limit of a run, for example "1h30m"; 0 for unlimited
timeout = {timeout}
# limits of a run: "2GiB", "30s" or a number; 0 for unlimited
{_limits(job)}
# variables and their secrets, for example "PGPASSWORD=db-password"
secrets = [{", ".join(map(_toml_text, job.secrets))}]
"""


def _limits(job: Job) -> str:
    given = job.limits or {}
    values = {name: limit.text(given[name]) if name in given else "0" for name, limit in LIMITS.items()}
    return "\n".join(
        f"{name} = {text if text.lstrip('-').isdigit() else _toml_text(text)}" for name, text in values.items()
    )


def _edit_text(text: str) -> str:
    """Open `text` in the editor of $VISUAL or $EDITOR, and return the saved text."""
    try:
        return click.edit(text, extension=".toml", require_save=False) or ""
    except click.ClickException as exc:
        raise EditorFailed(exc.format_message()) from exc


def _parse_changes(before: str, after: str) -> JobEdit | None:
    """The changed fields; None if there are none. Raises InvalidInput with the position of a syntax error."""
    shown = tomllib.loads(before)
    try:
        given: dict[str, Any] = tomllib.loads(after)
    except tomllib.TOMLDecodeError as exc:
        raise InvalidInput("the page", str(exc), hint="it is TOML: name = value") from exc
    changes = {name: value for name, value in given.items() if name not in shown or shown[name] != value}
    return parse_edit(changes) if changes else None


def _save_text(text: str) -> str:
    """Save text that could not be applied to a file that only the user can read; return its path."""
    fd, path = tempfile.mkstemp(prefix="queuectl-edit-", suffix=".toml")
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _toml_text(value: str) -> str:
    """A TOML string; newlines are kept. The escapes of JSON are valid in TOML, which also requires one for DEL."""
    lines = [json.dumps(line, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f") for line in value.split("\n")]
    if len(lines) == 1:
        return f'"{lines[0]}"'
    body = "\n".join(lines)
    return f'"""\n{body}"""'
