"""Where the output of a job is: in a log of this host, or in the store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import NamedTuple

from queuectl.errors import Unavailable
from queuectl.job.model import Job, Run
from queuectl.output.follow import Follower, Tell
from queuectl.output.log import Joined, Span, log_exists, open_log
from queuectl.output.read import last_bytes, left_stretches, output_of
from queuectl.output.spread import Elsewhere, SpreadFollower
from queuectl.output.stored import Fetched
from queuectl.store.protocol import OUTPUT_AT_ONCE, Reads


class LogView(NamedTuple):
    """Which part of a log is wanted: one run or all, our lines around the output or not, the last lines or all."""

    run: int | None = None
    markers: bool = True
    tail: int | None = None


def open_output(
    store: Reads, job_id: str, view: LogView, *, host: str, path: str | None, runs: Sequence[Run], tell: Tell
) -> Follower | SpreadFollower:
    """`path`: the log of the latest run, on its host. `host`: where we are. `tell`: of output that is gone, where no line of
    ours can say so."""
    run, markers, tail = view
    if _is_all_here(store, job_id, path, runs):
        return Follower(run=run, markers=markers, tail=tail, tell=tell)
    return SpreadFollower(_elsewhere(store, job_id, host), run=run, markers=markers, tail=tail, tell=tell)


def end_of_output(store: Reads, job: Job, runs: Sequence[Run], *, host: str, limit: int) -> bytes | None:
    """The last bytes that the last run printed; None if there was no run, or nobody knows (any more)."""
    if not runs:
        return None
    if not _is_all_here(store, job.id, job.log, runs):
        return _end_of_spread(store, job, runs, host=host, limit=limit)
    try:
        log = open_log(job.log)
    except Unavailable:  # everything else about the job is worth showing all the same; `logs` says why
        return None
    if log is None:
        return None
    with log:
        return last_bytes(log, [output_of(log, runs, len(runs) - 1)], limit)


def _end_of_spread(store: Reads, job: Job, runs: Sequence[Run], *, host: str, limit: int) -> bytes | None:
    last = runs[-1]
    with closing(SpreadFollower(_elsewhere(store, job.id, host), run=last.number, markers=False)) as follower:
        stretches = left_stretches(follower.stretches(job.log, runs))
        if not stretches and (last.log_from is None or last.log_to != last.log_from):
            return None
        joined = Joined(stretches)
        return last_bytes(joined, [Span(0, joined.size)], limit)


def _is_all_here(store: Reads, job_id: str, path: str | None, runs: Sequence[Run]) -> bool:
    if store.is_shared:
        return False
    # A copy of a shared store has what was printed on hosts that are far away.
    return path is None or log_exists(path) or not any(store.output(job_id, run.number) for run in runs)


def _elsewhere(store: Reads, job_id: str, host: str) -> Elsewhere:
    def fetch(number: int, start: int) -> Fetched:
        pieces = store.output(job_id, number, start=start)
        return Fetched(pieces, is_all=len(pieces) < OUTPUT_AT_ONCE)

    return Elsewhere(is_here=lambda run: run.host == host, fetch=fetch)
