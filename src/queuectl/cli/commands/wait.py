"""queuectl wait"""

from __future__ import annotations

from collections.abc import Sequence

import click

from queuectl.cli.act import look_up, tell_refused
from queuectl.cli.app import App
from queuectl.cli.command import command, show_env_option
from queuectl.cli.complete import complete_batches, complete_jobs
from queuectl.cli.exits import REFUSED
from queuectl.cli.jobs import end_line
from queuectl.cli.result import Nothing, Result, Sheet
from queuectl.cli.selectors import Selection, selectors
from queuectl.cli.workers import unserved_watch
from queuectl.errors import UsageError
from queuectl.job.duration import parse_duration_ms
from queuectl.job.lifecycle import FINAL, State
from queuectl.job.model import Job
from queuectl.queue import wait as use
from queuectl.queue.patience import patient


@command(
    "wait",
    examples="""
        queuectl wait 7f3a && echo it worked
        queuectl wait --timeout 10m $(queuectl enqueue 'make test')
        # all of a batch, with a bar
        queuectl wait --batch nightly
        # which one was first?
        queuectl wait --any --json 7f3a 91bc
        # until a queue has nothing left to do
        queuectl wait --queue mail
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@selectors(but=("batches",))
@click.option(
    "--batch", metavar="NAME", shell_complete=complete_batches, help="Until all jobs of this batch have ended."
)
@click.option("--timeout", metavar="TIME", help="Wait no longer than this (90, 90s, 1h30m); exit 124.")
@click.option("--any", "any_of_them", is_flag=True, help="Until one of them has ended.")
@show_env_option
def wait(
    app: App,
    ids: tuple[str, ...],
    selection: Selection,
    batch: str | None,
    timeout: str | None,
    any_of_them: bool,
    show_env: bool,
) -> Result:
    """Wait until jobs are completed, dead or cancelled.

    Exits as the first of them that did not complete: with its exit code, 128 + its signal, or 1; with 0 if all did.
    Selectors choose among the jobs that have not ended, unless --state says otherwise, once, when it begins.
    """
    seconds = None if timeout is None else parse_duration_ms(timeout, subject="--timeout") / 1000
    if batch is not None:
        if ids or selection or any_of_them:
            raise UsageError("--batch and other jobs or --any at once", hint="wait for the batch, or for single jobs")
        return _wait_for_batch(app, batch, seconds)
    found = look_up(app, ids, selection, unless_said=frozenset(State) - FINAL)
    # For people at once; for a program at the end, where it is the only error, or not at all if the time was over first.
    if found.refused and (not app.flags.json or not found.done):
        tell_refused(app, found)
    if not found.done and found.refused:
        return Nothing(exit_code=REFUSED)
    if not found.done:
        return Sheet([], people=lambda: ())
    unserved = unserved_watch(app)
    waiting: list[str] = found.done

    def watch(unended: Sequence[Job]) -> None:
        nonlocal waiting
        if len(unended) != len(waiting):
            still = {job.id for job in unended}
            _tell(app, [job_id for job_id in waiting if job_id not in still])
            waiting = [job.id for job in unended]
        unserved(unended)

    ended = use.wait(app.open_reads(), app.clock, found.done, any_of_them=any_of_them, timeout=seconds, watch=watch)
    untold = set(waiting)
    _tell(app, [job.id for job in ended if job.id in untold])
    if found.refused:
        if app.flags.json:
            tell_refused(app, found)
        return Nothing(exit_code=REFUSED)
    return Sheet([job.to_dict(show_env=show_env) for job in ended], people=lambda: (), exit_code=use.exit_code(ended))


def _wait_for_batch(app: App, name: str, seconds: float | None) -> Result:
    from queuectl.cli.bar import Bar
    from queuectl.queue import batches

    store, bar = app.open_reads(), Bar(app)
    try:
        ended = batches.wait(store, app.clock, name, timeout=seconds, watch=bar.show)
    finally:
        bar.close()
    code = use.exit_code(batches.first_unlucky(store, name))
    return Sheet(ended.to_dict(), people=lambda: (), exit_code=code)


def _tell(app: App, ended: Sequence[str]) -> None:
    for job_id in ended if app.is_talking else ():
        app.say(end_line(app, patient(app.open_reads(), app.clock).get(job_id)))
