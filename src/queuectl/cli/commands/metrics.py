"""queuectl metrics"""

from __future__ import annotations

from collections.abc import Iterator

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.jobs import joined, plural
from queuectl.cli.result import Column, Raw, Result, Sheet
from queuectl.cli.style import took
from queuectl.cli.table import lay_out
from queuectl.cli.workers import is_serving
from queuectl.queue import inspect
from queuectl.queue.exposition import exposition
from queuectl.queue.inspect import Metrics
from queuectl.store.protocol import Spread


@command(
    "metrics",
    examples="""
        queuectl metrics
        queuectl metrics --json | jq .duration_ms.p95
        # for node_exporter's textfile collector
        queuectl metrics --prometheus > /var/lib/node_exporter/queuectl.prom
    """,
)
@click.option("--prometheus", is_flag=True, help="In Prometheus' text format.")
def metrics(app: App, prometheus: bool) -> Result:
    """Success rate, run times, waiting times and throughput."""
    if prometheus:
        return Raw([exposition(app.open_reads(), is_alive=is_serving(app), clock=app.clock).encode()])
    seen = inspect.metrics(app.open_reads())
    return Sheet(seen.to_dict(), people=lambda: _lines(app, seen))


def _lines(app: App, seen: Metrics) -> Iterator[str]:
    counts = joined(f"{count:,} {state}" for state, count in seen.states.items() if count)
    facts = {
        "jobs": f"{seen.total:,}" + (f" ({counts})" if counts else ""),
        "success rate": "none has ended yet" if seen.success_rate is None else f"{seen.success_rate:.1%}",
        "failed runs per job": "-" if seen.average_attempts is None else f"{seen.average_attempts:.2f}",
        "completed": joined(f"{count:,} in the last {span}" for span, count in seen.throughput._asdict().items()),
    }
    width = max(map(len, facts))
    for label, text in facts.items():
        yield f"{app.paint(label.ljust(width), 'dim')}  {text}"
    if len(seen.queues) > 1:
        yield f"{app.paint('queues'.ljust(width), 'dim')}  " + joined(
            f"{name} {plural(sum(states.values()), 'job')}" for name, states in seen.queues.items()
        )
    if seen.duration_ms.count or seen.wait_ms.count:
        yield ""
        rows = [("run time", seen.duration_ms), ("waiting time", seen.wait_ms)]
        yield from lay_out(rows, _COLUMNS, width=app.width, colour=app.colour_on(app.stdout))


Row = tuple[str, Spread]


def _figure(title: str, name: str, *, spare: int = 0) -> Column[Row]:
    def cell(row: Row) -> str:
        value = getattr(row[1], name)
        return "" if value is None else took(round(value))

    return Column(title, cell, right=True, spare=spare)


_COLUMNS: list[Column[Row]] = [
    Column("OF COMPLETED JOBS", lambda row: row[0]),
    _figure("AVERAGE", "avg", spare=2),
    _figure("MIN", "min", spare=5),
    _figure("P50", "p50"),
    _figure("P95", "p95", spare=1),
    _figure("P99", "p99", spare=4),
    _figure("MAX", "max", spare=3),
]
