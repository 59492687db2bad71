"""queuectl edit"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from queuectl.cli.act import Verb, act, act_on
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_jobs, complete_queues, complete_secrets
from queuectl.cli.confirm import yes_option
from queuectl.cli.editor import edit_page, keep, page, read_page
from queuectl.cli.limitwords import limit_options
from queuectl.cli.numbers import integer
from queuectl.cli.result import Done, Result
from queuectl.cli.selectors import Selection, selectors
from queuectl.errors import QueuectlError, UsageError, WrongState
from queuectl.job.change import Change, read_change
from queuectl.job.lifecycle import WAITING
from queuectl.job.model import to_ms
from queuectl.job.spec import check_field
from queuectl.queue import amend
from queuectl.queue.pick import Answer
from queuectl.store.protocol import Store


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
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@click.option("--command", metavar="CMD", help="What the shell shall run.")
@click.option("-p", "--priority", type=integer, metavar="N", help="Higher goes first; -1000000 to 1000000.")
@click.option("--delay", metavar="TIME", help="Not before this time has passed from now: 90, 90s, 1h30m, 2d.")
@click.option("--run-at", metavar="WHEN", help="Not before this moment: ISO 8601, local without a zone.")
@click.option("--max-retries", "--retries", type=integer, metavar="N", help="Failed runs after which it is dead.")
@click.option("--max-attempts", type=integer, metavar="N", help="The same, whatever first-attempt-is-free says.")
@click.option("--timeout", metavar="TIME", help="End a run that takes longer; 0: never.")
@limit_options
@click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME[=ENTRY]",
    shell_complete=complete_secrets,
    help="Variables whose values its worker finds out, instead of those it has.",
)
@click.option("--no-secrets", is_flag=True, help="None of them.")
@click.option("--on-success", metavar="URL", help="Whom to call when it has completed; none: nobody.")
@click.option("--on-failure", metavar="URL", help="Whom to call when a run of it fails; none: nobody.")
@click.option("--on-dead", metavar="URL", help="Whom to call when it has failed for good; none: nobody.")
@click.option(
    "--move-to",
    metavar="NAME",
    shell_complete=complete_queues,
    help="The queue they go to. Beside ids --queue says the same.",
)
@selectors()
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
    """Change jobs that wait: by options, or one in your editor.

    A job that runs or has ended is refused, and so is one that somebody has changed while it was in your editor. It gets
    the place in the line that it would have, had it been enqueued so.
    """
    if no_secrets and fields["secrets"]:
        raise UsageError("--secret and --no-secrets at once", hint="leave one of the two away")
    fields["secrets"] = () if no_secrets else fields["secrets"] or None
    spelled = "--move-to"
    if ids and move_to is None and (move_to := selection.only_queue()) is not None:
        selection, spelled = Selection({}), "--queue"
    if move_to is not None:
        check_field("queue", move_to, spelled=spelled)
    change = read_change({**fields, "queue": move_to}, dashes="--")
    if change != Change():

        def do(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> Answer:
            return amend.edit(store, refs, change, exact=exact)

        return act_on(app, Verb(do, "edit", "changed", WAITING), ids, selection, yes=yes)
    if len(ids) != 1 or selection or app.flags.json or not (app.stdin.isatty() and app.stdout_is_terminal):
        hint = "say what, like --priority 5; one id alone, on a terminal, opens your editor"
        raise UsageError("nothing to change", hint=hint)
    return _edit_page(app, ids[0])


def _edit_page(app: App, ref: str) -> Result:
    reads = app.open_reads()
    job = reads.get(reads.resolve(ref))
    if job.state not in WAITING:
        raise WrongState(job.id, job.state, verb="edit", hint="only a job that waits can be changed")
    before = page(job)
    after = edit_page(before)
    try:
        change = read_page(before, after)
        if change is None:
            app.say(app.paint("nothing changed", "dim"))
            return Done([])

        def do(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> Answer:
            return amend.edit(store, refs, change, as_of=to_ms(job.updated_at), exact=exact)

        done = act(app, Verb(do, "edit", "changed", WAITING), [job.id])
        for _, error in done.refused:
            raise error
    except QueuectlError as error:
        error.hint = f"{error.hint}; your text is kept in {keep(after)}"
        raise
    return done
