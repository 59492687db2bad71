"""The command `edit`: change waiting jobs by options or in an editor."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.commands.control import BulkAction, apply, apply_to_ids
from queuectl.cli.completion import complete_queues, complete_secrets
from queuectl.cli.errors import yes_option
from queuectl.cli.filters import Selection, ids_and_filters
from queuectl.cli.job_options import ONE_OF_THEM, editable_options
from queuectl.cli.render import Done, Result
from queuectl.errors import QueuectlError, UsageError, WrongState
from queuectl.jobs.edit import JobEdit, parse_edit
from queuectl.jobs.spec import check_field
from queuectl.jobs.states import WAITING
from queuectl.operations import control
from queuectl.units import to_ms


@command(
    "edit",
    examples="""
        # in your editor ($VISUAL, $EDITOR)
        queuectl edit 7f3a
        queuectl edit 7f3a --command 'make all' --timeout 1h
        # to another queue
        queuectl edit 7f3a --queue slow
        # all that match; asks first
        queuectl edit --match ffmpeg --max-retries 5 --move-to slow
    """,
)
@ids_and_filters()
@editable_options
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME[=ENTRY]",
    shell_complete=complete_secrets,
    help="Set a variable to a secret; replaces all secrets of the job.",
)
@click.option("--no-secrets", is_flag=True, help="Remove all secrets.")
@click.option(
    "--move-to",
    metavar="NAME",
    shell_complete=complete_queues,
    help="New queue. With ids, --queue is the same.",
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
    """Change waiting jobs by options, or a single one in your editor.

    A job that runs, has ended, or was changed while it was in your editor is refused. Its position in the queue is that of
    a job enqueued with the new values.
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
    from queuectl.cli.editor import edit_text, parse_changes, save_text, to_toml

    reads = app.open_reads()
    job = reads.get(reads.resolve(ref))
    if job.state not in WAITING:
        raise WrongState(job.id, job.state, verb="edit", hint="only a job that waits can be changed")
    before = to_toml(job)
    after = edit_text(before)
    try:
        change = parse_changes(before, after)
        if change is None:
            app.say(app.paint("nothing changed", "dim"))
            return Done([])

        do = partial(control.edit, change=change, as_of=to_ms(job.updated_at))
        done = apply_to_ids(app, BulkAction(do, "edit", "changed", WAITING), [job.id])
        for _, error in done.refused:
            raise error
    except QueuectlError as error:
        error.hint = f"{error.hint}; your text is kept in {save_text(after)}"
        raise
    return done
