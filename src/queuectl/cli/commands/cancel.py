"""queuectl cancel"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from queuectl.cli.act import act
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.jobs import joined
from queuectl.cli.printable import printable
from queuectl.cli.result import Result
from queuectl.cli.workers import rescuer
from queuectl.queue import control
from queuectl.queue.pick import Answer
from queuectl.store.protocol import Store


@command(
    "cancel",
    examples="""
        queuectl cancel 7f3a
        # all that wait in one queue
        queuectl list --state pending --queue mail --quiet | xargs queuectl cancel
    """,
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def cancel(app: App, ids: tuple[str, ...]) -> Result:
    """Call off jobs.

    A waiting job is called off at once. A running one is ended with all that it started (TERM, then KILL after
    kill-grace); cancel returns when it is so.
    """

    def on_wait(waiting: Sequence[str]) -> None:
        app.say(app.paint(f"ending {joined(map(printable, waiting))} …", "dim"))

    def call_off(store: Store, refs: Iterable[str]) -> Answer:
        return control.cancel(store, app.clock, refs, rescue=rescuer(app, spare=True), on_wait=on_wait)

    return act(app, ids, call_off, verb="cancelled")
