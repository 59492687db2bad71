"""Commands that read jobs: list, show, status, explain, graph, metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command, show_env_option
from queuectl.cli.completion import complete_jobs
from queuectl.cli.job_view import GraphDrawing, job_lines
from queuectl.cli.render import Details, Raw, Result, table_lines, to_json
from queuectl.cli.tables import STATE_STYLE, Column
from queuectl.jobs.states import State
from queuectl.jobs.stats import Spread
from queuectl.operations import inspect
from queuectl.operations.explain import Explanation
from queuectl.operations.explain import explain as explain_job
from queuectl.operations.inspect import Metrics, QueueCount, Status
from queuectl.operations.inspect import graph as graph_of
from queuectl.operations.prometheus import format_metrics
from queuectl.operations.wait import retry_store
from queuectl.text import escape_control, plural
from queuectl.units import humanize_duration, humanize_elapsed


@command("show", prints_jobs=True)
@click.argument("id", metavar="ID", shell_complete=complete_jobs)
@show_env_option
def show(app: App, id: str, show_env: bool) -> Result:
    """Show a job: its fields, its history and the end of its output.

    Examples:
        queuectl show 7f3a
        # the job enqueued last
        queuectl show last
        queuectl show last --json
    """
    return show_job(app, id, show_env=show_env)


def show_job(app: App, ref: str, *, show_env: bool) -> Result:
    limit = app.settings.output_limit
    shown = inspect.show(app.open_reads(), ref, host=app.host, output_limit=limit, is_alive=app.is_serving)
    return Details(
        value=shown.to_dict(show_env=show_env), text=lambda: job_lines(app, shown, show_env=show_env), id=shown.job.id
    )


@command("status")
@click.option("--watch", "-w", is_flag=True, help="Update until Ctrl-C.")
def status(app: App, watch: bool) -> Result:
    """Show the number of jobs by state, the workers, the queues, and the age of the oldest waiting job.

    Examples:
        queuectl status
        queuectl status --watch
        queuectl status --json | jq .states.dead
    """

    def look() -> Status:
        return inspect.status(app.open_reads(), is_alive=app.is_serving)

    if watch:
        app.open_reads()  # report an error now: later ones are retried
        return Raw(_watch(app, look))
    seen = look()
    return Details(seen.to_dict(), text=lambda: _status_lines(app, seen))


POLL: Final = 0.1
# Ages grow and workers die without a write: a terminal is refreshed at least this often.
REFRESH: Final = 1.0

_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"


def _watch(app: App, look: Callable[[], Status]) -> Iterator[bytes]:
    """Frames on a terminal, blocks in a pipe, or lines of JSON, until Ctrl-C."""
    if app.stdout_is_terminal and not app.flags.json:
        yield from _frames(app, look)
    between = ""
    for seen in _changes(app, look):
        if app.flags.json:
            yield f"{to_json(seen.to_dict())}\n".encode()
        else:
            yield "".join([between, *(f"{line}\n" for line in _status_lines(app, seen))]).encode()
            between = "\n"


def _looks(app: App, look: Callable[[], Status]) -> Iterator[Status]:
    """The status at once, after each change of the store, and after `REFRESH` seconds without one."""
    while True:
        _has_changed(app)
        seen, looked = retry_store(app.clock, look), app.clock.monotonic()
        yield seen
        app.clock.sleep(POLL)
        while not _has_changed(app) and app.clock.monotonic() - looked < REFRESH:
            app.clock.sleep(POLL)


def _has_changed(app: App) -> bool:
    return retry_store(app.clock, lambda: app.open_reads().changed())


def _changes(app: App, look: Callable[[], Status]) -> Iterator[Status]:
    """Those that differ from the one before in more than the age of the oldest job."""
    before: Status | None = None
    for seen in _looks(app, look):
        without_age = seen._replace(oldest_waiting_ms=None)
        if without_age != before:
            before = without_age
            yield seen


def _frames(app: App, look: Callable[[], Status]) -> Iterator[bytes]:
    height = 0
    try:
        for seen in _looks(app, look):
            # One write per frame, and erasing only behind the new text, avoid flicker.
            shown = list(_status_lines(app, seen))[: app.height - 1]
            up = f"\x1b[{height}A\r" if height else ""
            body = "".join(f"{line}{_ERASE_LINE}\n" for line in shown)
            yield f"{_HIDE_CURSOR}{up}{body}{_ERASE_BELOW}".encode()
            height = len(shown)
    finally:
        app.stdout.write(_SHOW_CURSOR)
        app.stdout.flush()


def _status_lines(app: App, seen: Status) -> Iterator[str]:
    yield app.paint(_workers_text(seen), "bold" if seen.workers.live else "yellow")
    if seen.lost:
        yield app.paint(f"{plural(seen.lost, 'worker')} lost, with jobs to rescue: queuectl worker list", "red")
    if seen.firing:
        names = ", ".join(seen.firing)
        yield app.paint(f"{plural(len(seen.firing), 'alert')} firing: {names}: queuectl alert list", "red")
    if (store := app.store_line) is not None:
        yield app.paint(store, "dim")
    yield ""
    width = max(len(f"{seen.total:,}"), 6)
    for state in State:
        count = seen.states[state.value]
        # States without jobs are dim.
        style = STATE_STYLE[state] if count else "dim"
        yield app.paint(f"  {state.value:<10}  {count:>{width},}", style)
    yield app.paint(f"  {'total':<10}  {seen.total:>{width},}", "bold")
    if seen.oldest_waiting_ms is not None:
        yield ""
        yield f"oldest waiting job: {humanize_duration(seen.oldest_waiting_ms)}"
    # Queues are never removed: omit those without jobs.
    queues = [queue for queue in seen.queues if queue.paused or any(queue.states.values())]
    if len(queues) > 1 or any(queue.paused for queue in queues):
        yield ""
        yield from table_lines(app, queues, _queue_columns(seen))


def _workers_text(seen: Status) -> str:
    live, slots, busy = seen.workers
    if not live:
        return "no workers: queuectl worker start"
    return f"{plural(live, 'worker')}, {plural(slots, 'slot')}, {busy:,} busy"


def _queue_columns(seen: Status) -> list[Column[QueueCount]]:
    states = [state.value for state in State if any(queue.states[state.value] for queue in seen.queues)]
    return [
        Column("QUEUE", lambda queue: queue.name + (" (paused)" if queue.paused else "")),
        *(_count_column(state) for state in states),
    ]


# The order in which columns stay on a narrow terminal.
_SPARE = [State.DEAD, State.PENDING, State.FAILED, State.PROCESSING, State.BLOCKED, State.COMPLETED, State.CANCELLED]


def _count_column(state: str) -> Column[QueueCount]:
    return Column(
        state.upper(), lambda queue: f"{queue.states[state]:,}", right=True, spare=_SPARE.index(State(state)) + 1
    )


@command("explain")
@click.argument("id", metavar="ID", shell_complete=complete_jobs)
def explain(app: App, id: str) -> Result:
    """Explain why a job is not running. The most important reason comes first.

    Possible reasons: not due, held, waiting for a retry, no worker for its queue, all slots busy, other jobs ahead.
    For a running or finished job, explain shows its progress or result, and the next step.

    Examples:
        queuectl explain last
        # the decisive reason, for a script
        queuectl explain 7f3a --json | jq -r '.reasons[0].code'
    """
    explanation = explain_job(app.open_reads(), id, is_alive=app.is_serving)
    return Details(explanation.to_dict(), text=lambda: _explanation_lines(app, explanation), id=explanation.job.id)


def _explanation_lines(app: App, explanation: Explanation) -> Iterator[str]:
    state = explanation.job.state
    yield f"{app.paint(escape_control(explanation.job.id), 'bold')}  {app.paint(state.value, f'bold {STATE_STYLE[state]}')}"
    for reason in explanation.reasons:
        yield f"  {escape_control(reason.message)}"


@command("graph")
@click.argument("id", metavar="ID", shell_complete=complete_jobs)
def graph(app: App, id: str) -> Result:
    """Draw the dependencies of a job above it, and the jobs that depend on it below, with their states.

    ^ marks a job that is already drawn. If a job has many dependencies, the first ones are drawn and the others counted.
    --json prints all dependencies, as nodes and edges.

    Examples:
        queuectl graph last
        # all jobs that it still waits for
        queuectl graph deploy --json | jq -r '.edges[] | select(.state == "waiting") | .parent'
    """
    found = graph_of(app.open_reads(), id)
    return Details(found.to_dict(), text=lambda: GraphDrawing(app, found).lines(), id=found.root)


@command("metrics")
@click.option("--prometheus", is_flag=True, help="Print the text format of Prometheus.")
def metrics(app: App, prometheus: bool) -> Result:
    """Show success rate, run times, waiting times and throughput.

    Examples:
        queuectl metrics
        queuectl metrics --json | jq .duration_ms.p95
        # for node_exporter's textfile collector
        queuectl metrics --prometheus > /var/lib/node_exporter/queuectl.prom
    """
    if prometheus:
        return Raw([format_metrics(app.open_reads(), is_alive=app.is_serving, clock=app.clock).encode()])
    seen = inspect.metrics(app.open_reads())
    return Details(seen.to_dict(), text=lambda: _metrics_lines(app, seen))


def _metrics_lines(app: App, seen: Metrics) -> Iterator[str]:
    counts = ", ".join(f"{count:,} {state}" for state, count in seen.states.items() if count)
    facts = {
        "jobs": f"{seen.total:,}" + (f" ({counts})" if counts else ""),
        "success rate": "no job has ended yet" if seen.success_rate is None else f"{seen.success_rate:.1%}",
        "failed attempts": "-" if seen.average_attempts is None else f"{seen.average_attempts:.2f} per job",
        "completed": ", ".join(f"{count:,} in the last {span}" for span, count in seen.throughput._asdict().items()),
    }
    width = max(map(len, facts))
    for label, text in facts.items():
        yield f"{app.paint(label.ljust(width), 'dim')}  {text}"
    if len(seen.queues) > 1:
        yield f"{app.paint('queues'.ljust(width), 'dim')}  " + ", ".join(
            f"{name} {plural(sum(states.values()), 'job')}" for name, states in seen.queues.items()
        )
    if seen.duration_ms.count or seen.wait_ms.count:
        yield ""
        rows = [("run time", seen.duration_ms), ("waiting time", seen.wait_ms)]
        yield from table_lines(app, rows, _METRICS_COLUMNS)


_MetricsRow = tuple[str, Spread]


def _metrics_column(title: str, name: str, *, spare: int = 0) -> Column[_MetricsRow]:
    def cell(row: _MetricsRow) -> str:
        value = getattr(row[1], name)
        return "" if value is None else humanize_elapsed(round(value))

    return Column(title, cell, right=True, spare=spare)


_METRICS_COLUMNS: list[Column[_MetricsRow]] = [
    Column("OF COMPLETED JOBS", lambda row: row[0]),
    _metrics_column("AVERAGE", "avg", spare=2),
    _metrics_column("MIN", "min", spare=5),
    _metrics_column("P50", "p50"),
    _metrics_column("P95", "p95", spare=1),
    _metrics_column("P99", "p99", spare=4),
    _metrics_column("MAX", "max", spare=3),
]
