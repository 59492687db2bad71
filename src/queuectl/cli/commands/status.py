"""queuectl status"""

from __future__ import annotations

from collections.abc import Iterator

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.jobs import plural
from queuectl.cli.result import Column, Raw, Result, Sheet
from queuectl.cli.style import STATE_STYLE, rough
from queuectl.cli.table import lay_out
from queuectl.cli.watch import watch as redraw
from queuectl.cli.workers import is_serving, store_line
from queuectl.job.lifecycle import State
from queuectl.queue import inspect
from queuectl.queue.inspect import QueueCount, Status


@command(
    "status",
    examples="""
        queuectl status
        queuectl status --watch
        queuectl status --json | jq .states.dead
    """,
)
@click.option("--watch", "-w", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
def status(app: App, watch: bool) -> Result:
    """How many jobs are in each state, the workers, the queues, and how long the oldest job waits."""

    def look() -> Status:
        return inspect.status(app.open_reads(), is_alive=is_serving(app))

    if watch:
        app.open_reads()  # at once, or in words: patience is for what was there
        return Raw(redraw(app, look, to_lines=lambda seen: list(_lines(app, seen)), to_json=Status.to_dict))
    seen = look()
    return Sheet(seen.to_dict(), people=lambda: _lines(app, seen))


def _lines(app: App, seen: Status) -> Iterator[str]:
    yield app.paint(_workers(seen), "bold" if seen.workers.live else "yellow")
    if seen.lost:
        yield app.paint(f"{plural(seen.lost, 'worker')} lost, with jobs to be dealt with: queuectl worker list", "red")
    if seen.firing:
        names = ", ".join(seen.firing)
        yield app.paint(f"{plural(len(seen.firing), 'alert')} firing: {names}: queuectl alert list", "red")
    if (store := store_line(app)) is not None:
        yield app.paint(store, "dim")
    yield ""
    width = max(len(f"{seen.total:,}"), 6)
    for state in State:
        count = seen.states[state.value]
        # What is not there recedes: the eye finds what is.
        style = STATE_STYLE[state] if count else "dim"
        yield app.paint(f"  {state.value:<10}  {count:>{width},}", style)
    yield app.paint(f"  {'total':<10}  {seen.total:>{width},}", "bold")
    if seen.oldest_waiting_ms is not None:
        yield ""
        yield f"oldest waiting job: {rough(seen.oldest_waiting_ms)}"
    # A queue is never forgotten, but one without jobs has nothing to say.
    queues = [queue for queue in seen.queues if queue.paused or any(queue.states.values())]
    if len(queues) > 1 or any(queue.paused for queue in queues):
        yield ""
        yield from lay_out(queues, _columns(seen), width=app.width, colour=app.colour_on(app.stdout))


def _workers(seen: Status) -> str:
    live, slots, busy = seen.workers
    if not live:
        return "no workers: queuectl worker start"
    return f"{plural(live, 'worker')}, {plural(slots, 'slot')}, {busy:,} busy"


def _columns(seen: Status) -> list[Column[QueueCount]]:
    states = [state.value for state in State if any(queue.states[state.value] for queue in seen.queues)]
    return [
        Column("QUEUE", lambda queue: queue.name + (" (paused)" if queue.paused else "")),
        *(_count(state) for state in states),
    ]


# What one looks for last is left out first, where there is no room for all.
_SPARE = [State.DEAD, State.PENDING, State.FAILED, State.PROCESSING, State.BLOCKED, State.COMPLETED, State.CANCELLED]


def _count(state: str) -> Column[QueueCount]:
    return Column(
        state.upper(), lambda queue: f"{queue.states[state]:,}", right=True, spare=_SPARE.index(State(state)) + 1
    )
