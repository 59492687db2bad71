"""queuectl cancel"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from queuectl.cli.act import Verb, act_on
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_jobs
from queuectl.cli.confirm import yes_option
from queuectl.cli.jobs import joined
from queuectl.cli.printable import printable
from queuectl.cli.result import Result
from queuectl.cli.selectors import Selection, selectors
from queuectl.cli.workers import rescuer
from queuectl.queue import control
from queuectl.queue.pick import Answer
from queuectl.store.protocol import Store


@command(
    "cancel",
    examples="""
        queuectl cancel 7f3a
        # all that wait in one queue; asks first
        queuectl cancel --state pending --queue mail
        queuectl cancel --match ffmpeg --since 1h --yes
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@selectors()
@yes_option
def cancel(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Call off jobs.

    A waiting job is called off at once. A running one is ended with all that it started (TERM, then KILL after
    kill-grace); cancel returns when it is so.
    """

    def on_wait(waiting: Sequence[str]) -> None:
        app.say(app.paint(f"ending {joined(map(printable, waiting))} …", "dim"))

    def call_off(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> Answer:
        return control.cancel(store, app.clock, refs, rescue=rescuer(app, spare=True), on_wait=on_wait, exact=exact)

    return act_on(app, Verb(call_off, "cancel", "cancelled", control.CANCELLABLE), ids, selection, yes=yes)
