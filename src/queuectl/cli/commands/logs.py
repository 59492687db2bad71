"""queuectl logs: the output of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import command, integer
from queuectl.cli.errors import DONE, REFUSED
from queuectl.cli.filters import Selection, find_jobs, ids_and_filters, report_not_found
from queuectl.cli.render import Nothing, Raw, Result
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.operations import logs as use
from queuectl.operations.logs import LogView, Piece, missing_log
from queuectl.operations.query import parse_count
from queuectl.operations.wait import UnservedWatch
from queuectl.text import escape_control


@command("logs")
@ids_and_filters()
@click.option("--follow", "-f", is_flag=True, help="Follow until the job has ended.")
@click.option("--tail", "-n", type=integer, metavar="N", help="Print the last N lines.")
@click.option("--run", type=integer, metavar="N", help="Print run N, counted from 1.")
@click.option("--no-markers", is_flag=True, help="Print only the output, without START and END lines.")
def logs(
    app: App,
    ids: tuple[str, ...],
    selection: Selection,
    follow: bool,
    tail: int | str | None,
    run: int | str | None,
    no_markers: bool,
) -> Result:
    """Print the output of jobs, from all their runs. With several jobs, each line begins with the job ID.

    Examples:
        queuectl logs 7f3a
        # follow until the job has ended; it need not have started
        queuectl logs -f last
        # the exact output of its second run
        queuectl logs --run 2 --no-markers 7f3a > out.bin
        # the last lines of jobs that died today
        queuectl logs --state dead --since 24h --tail 5
    """
    last_lines = parse_count(tail, subject="--tail")
    number = parse_count(run, subject="--run", low=1)
    found = find_jobs(app, ids, selection, default=frozenset(State))
    report_not_found(app, found)
    if found.refused and app.flags.json:  # with --json an error is the only output
        return Nothing(exit_code=REFUSED)
    view = LogView(run=number, markers=not no_markers, tail=last_lines)
    pieces = _follow(app, found.done, view) if follow else _read(app, found.done, view)
    # With filters, a single match is prefixed, too: the format must not depend on the number of matches.
    chunks = _prefixed(pieces) if selection or len(set(ids)) > 1 else (piece.data for piece in pieces)
    return Raw(chunks, exit_code=REFUSED if found.refused else DONE)


def _read(app: App, ids: Sequence[str], view: LogView) -> Iterator[Piece]:
    for job_id in ids:
        is_empty = True

        def tell(job_id: str, count: int, limit: str) -> None:
            nonlocal is_empty
            is_empty = False
            warn_missing_output(app, job_id, count, limit)

        for data in use.read_log(app.open_reads(), job_id, view, host=app.host, tell=tell):
            is_empty = False
            yield Piece(job_id, data)
        if not is_empty:
            continue
        if (path := missing_log(app.open_reads(), job_id, host=app.host)) is not None:
            app.warn(f"{escape_control(job_id)}: its log {escape_control(path)} is gone")
        else:
            app.say(app.paint(f"{escape_control(job_id)}: no output", "dim"))


def _follow(app: App, ids: Sequence[str], view: LogView) -> Iterator[Piece]:
    tell = partial(warn_missing_output, app)
    return use.follow_logs(app.open_reads(), app.clock, ids, view, host=app.host, watch=unserved_watch(app), tell=tell)


def _prefixed(pieces: Iterator[Piece]) -> Iterator[bytes]:
    lines = PrefixedLines()
    before = None
    for job_id, data, _ in pieces:
        yield lines.feed(job_id, data)
        before = job_id
    if before is not None:
        yield lines.flush()


# A longer line is printed in parts: no line is held in memory as a whole.
MAX_HELD_BYTES: Final = 64 * 1024


class PrefixedLines:
    """Takes parts of logs and returns whole lines, each prefixed by `id | `."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}  # beginnings of lines, by job
        self._open: str | None = None  # the job whose last printed line has no newline yet

    def feed(self, job_id: str, data: bytes) -> bytes:
        text = self._held.pop(job_id, b"") + data
        whole, newline, rest = text.rpartition(b"\n")
        out = self._print(job_id, whole + newline) if newline else b""
        if len(rest) > MAX_HELD_BYTES:
            out += self._print(job_id, rest)
        elif rest:
            self._held[job_id] = rest
        return out

    def flush(self) -> bytes:
        """The rest, with missing newlines."""
        out = b"".join(self._print(job_id, rest + b"\n") for job_id, rest in self._held.items())
        self._held.clear()
        return out + self._end_open_line()

    def _print(self, job_id: str, text: bytes) -> bytes:
        prefix = f"{job_id} | ".encode()
        out = b"" if self._open == job_id else self._end_open_line() + prefix
        is_whole = text.endswith(b"\n")
        self._open = None if is_whole else job_id
        body = text.replace(b"\n", b"\n" + prefix)
        return out + (body.removesuffix(prefix) if is_whole else body)

    def _end_open_line(self) -> bytes:
        was_open, self._open = self._open, None
        return b"" if was_open is None else b"\n"


def unserved_watch(app: App) -> UnservedWatch:
    """Prints a warning after a job's queue had no live worker for two seconds."""

    def notify(job: Job) -> None:
        app.warn(f"no live worker serves the queue {escape_control(job.queue)!r}: queuectl worker start; still waiting")

    return UnservedWatch(app.open_reads(), app.clock, is_alive=app.is_serving, notify=notify)


def warn_missing_output(app: App, job_id: str, count: int, limit: str) -> None:
    app.warn(f"{escape_control(job_id)}: {count} bytes of earlier output are gone ({escape_control(limit)})")
