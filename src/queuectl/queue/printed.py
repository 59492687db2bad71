"""Where the output of a job is: in a log of this host, or in the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from queuectl.errors import Unavailable
from queuectl.job.model import Job, Run
from queuectl.output.follow import Follower, Tell
from queuectl.output.log import Joined, Log, Span, Stretch, log_exists, open_log
from queuectl.output.marks import Known, RawLog
from queuectl.output.read import last_bytes, left_stretches, output_of
from queuectl.output.spread import Elsewhere, SpreadFollower
from queuectl.output.stored import Fetched
from queuectl.store.protocol import OUTPUT_AT_ONCE, Reads


class LogView(NamedTuple):
    """Which part of a log is wanted: one run or all, our lines around the output or not, the last lines or all; and who tells the
    secrets that were taken out of it, for whoever wants them to be there."""

    run: int | None = None
    markers: bool = True
    tail: int | None = None
    known: Known | None = None


def open_output(
    store: Reads, job_id: str, view: LogView, *, host: str, path: str | None, runs: Sequence[Run], tell: Tell
) -> Follower | SpreadFollower:
    """`path`: the log of the latest run, on its host. `host`: where we are. `tell`: of output that is gone, where no line of
    ours can say so."""
    run, markers, tail, known = view
    kind = Log if known is None else partial(RawLog, known=known)
    if _is_all_here(store, job_id, path, runs):
        return Follower(run=run, markers=markers, tail=tail, tell=tell, kind=kind)
    return SpreadFollower(_elsewhere(store, job_id, host), run=run, markers=markers, tail=tail, tell=tell, kind=kind)


class LastWords(NamedTuple):
    """The last bytes that a run printed, and how many of all that it printed are not kept any more."""

    data: bytes
    gone: int


def end_of_output(store: Reads, job: Job, runs: Sequence[Run], *, host: str, limit: int) -> LastWords | None:
    """Of the last run; None if there was no run, or nobody knows (any more)."""
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
        span = output_of(log, runs, len(runs) - 1)
        return LastWords(last_bytes(log, [span], limit), _gone([Stretch(log, span)]))


def is_log_gone(store: Reads, job_id: str, *, host: str) -> str | None:
    """The log of this host that the last run has begun and that is not there any more, if what was in it is nowhere else."""
    job, runs = store.get(job_id), store.history(job_id)
    last = runs[-1] if runs else None
    if last is None or job.log is None or last.host != host or last.log_from is None or log_exists(job.log):
        return None
    return None if store.output(job_id, last.number) else job.log


def _gone(view: Iterable[Stretch]) -> int:
    return sum(max(0, min(source.first, span.stop) - span.start) for source, span in view)


def _end_of_spread(store: Reads, job: Job, runs: Sequence[Run], *, host: str, limit: int) -> LastWords | None:
    last = runs[-1]
    with closing(SpreadFollower(_elsewhere(store, job.id, host), run=last.number, markers=False)) as follower:
        printed = list(follower.stretches(job.log, runs))
        stretches = left_stretches(printed)
        if not stretches and (last.log_from is None or last.log_to != last.log_from):
            return None
        joined = Joined(stretches)
        return LastWords(last_bytes(joined, [Span(0, joined.size)], limit), _gone(printed))


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
