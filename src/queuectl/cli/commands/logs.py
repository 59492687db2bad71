"""queuectl logs"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from queuectl.cli.act import look_up, tell_refused
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_jobs
from queuectl.cli.exits import DONE, REFUSED
from queuectl.cli.gone import tell_gone
from queuectl.cli.numbers import integer
from queuectl.cli.prefix import PrefixedLines
from queuectl.cli.printable import printable
from queuectl.cli.result import Nothing, Raw, Result
from queuectl.cli.selectors import Selection, selectors
from queuectl.cli.workers import unserved_watch
from queuectl.errors import InvalidInput
from queuectl.job.lifecycle import State
from queuectl.queue import logs as use
from queuectl.queue.filters import parse_count
from queuectl.queue.logs import LogView, Piece
from queuectl.queue.printed import is_log_gone

if TYPE_CHECKING:
    from queuectl.secrets.known import KnownSecrets


@command(
    "logs",
    examples="""
        queuectl logs 7f3a
        # from the beginning to the end, also of a job that has not begun
        queuectl logs -f last
        # exactly what its second run printed
        queuectl logs --run 2 --no-markers 7f3a > out.bin
        # with the secrets that it printed, by who may know them
        queuectl logs --raw 7f3a
        # the last words of all that died today
        queuectl logs --state dead --since 24h --tail 5
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@selectors()
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended for good.")
@click.option("--tail", "-n", type=integer, metavar="N", help="Only the last N lines.")
@click.option("--run", type=integer, metavar="N", help="Only this run, from 1.")
@click.option("--no-markers", is_flag=True, help="Without the START and END lines: exactly the bytes of the job.")
@click.option("--raw", is_flag=True, help="With the secrets that were taken out, as far as you may know them, here.")
def logs(
    app: App,
    ids: tuple[str, ...],
    selection: Selection,
    follow: bool,
    tail: int | None,
    run: int | None,
    no_markers: bool,
    raw: bool,
) -> Result:
    """What jobs printed, in all their runs; of several jobs each line says whose it is."""
    tail = parse_count(tail, subject="--tail")
    if run is not None and run < 1:
        raise InvalidInput("--run", f"runs are counted from 1: {run}", hint="queuectl show ID lists the runs")
    found = look_up(app, ids, selection, unless_said=frozenset(State))
    tell_refused(app, found)
    if found.refused and app.flags.json:  # beside an error for a program stands nothing else
        return Nothing(exit_code=REFUSED)
    known = _known(app) if raw else None
    view = LogView(run=run, markers=not no_markers, tail=tail, known=known)
    pieces = _follow(app, found.done, view) if follow else _read(app, found.done, view)
    # How many a selector finds is not for whoever reads it to guess: then each line says whose it is, also of a single job.
    chunks = _prefixed(pieces) if selection or len(set(ids)) > 1 else (data for _, data in pieces)
    if known is not None:
        chunks = _with_problems(app, chunks, known)
    return Raw(chunks, exit_code=REFUSED if found.refused else DONE)


def _read(app: App, ids: Sequence[str], view: LogView) -> Iterator[Piece]:
    for job_id in ids:
        is_empty = True

        def tell(job_id: str, count: int, limit: str) -> None:
            nonlocal is_empty
            is_empty = False
            tell_gone(app, job_id, count, limit)

        for data in use.read(app.open_reads(), job_id, view, host=app.host, tell=tell):
            is_empty = False
            yield Piece(job_id, data)
        if not is_empty:
            continue
        if (path := is_log_gone(app.open_reads(), job_id, host=app.host)) is not None:
            app.warn(f"{printable(job_id)}: its log {printable(path)} is gone")
        else:
            app.say(app.paint(f"{printable(job_id)} has printed nothing", "dim"))


def _follow(app: App, ids: Sequence[str], view: LogView) -> Iterator[Piece]:
    tell = partial(tell_gone, app)
    return use.follow(app.open_reads(), app.clock, ids, view, host=app.host, watch=unserved_watch(app), tell=tell)


def _known(app: App) -> KnownSecrets:
    from queuectl.gate import open_gate  # here, since it is seldom wanted
    from queuectl.secrets.known import KnownSecrets

    return KnownSecrets(app.home, user=os.geteuid(), gate=open_gate(app.home, None, app.environ), clock=app.clock)


def _with_problems(app: App, chunks: Iterator[bytes], known: KnownSecrets) -> Iterator[bytes]:
    yield from chunks
    for problem in known.problems.values():
        app.warn(f"left out: {printable(problem)}")


def _prefixed(pieces: Iterator[Piece]) -> Iterator[bytes]:
    lines = PrefixedLines()
    before = None
    for job_id, data in pieces:
        yield lines.feed(job_id, data)
        before = job_id
    if before is not None:
        yield lines.flush()
