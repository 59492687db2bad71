"""Read and follow the output of jobs, from a log file of this host or from the store."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.errors import JobNotFound, NotFound, Unavailable
from queuectl.jobs.model import Job, Run
from queuectl.jobs.outcome import Ending
from queuectl.jobs.states import is_final
from queuectl.logs.follow import Fetched, Follower, RemoteOutput, Tell
from queuectl.logs.lines import Matches, Window, read_window, search
from queuectl.logs.reader import Stretch, last_bytes, left_of
from queuectl.logs.rotation import log_exists
from queuectl.operations.wait import IDLE_FACTOR, retrying_reads
from queuectl.store.reads import Reads
from queuectl.store.types import OUTPUT_AT_ONCE


class LogView(NamedTuple):
    """A part of a log: of one run or all, with or without START and END markers, all lines or the last ones. `from_line`: not the lines
    before this one, counted from 1 in what is kept of the log."""

    run: int | None = None
    markers: bool = True
    tail: int | None = None
    from_line: int | None = None


def open_output(
    store: Reads, job_id: str, view: LogView, *, host: str, path: str | None, runs: Sequence[Run], tell: Tell
) -> Follower:
    """`path`: the log of the job, on its host. `host`: this host. `tell`: called if output is missing and the view has no markers that say
    so."""
    run, markers, tail, from_line = view
    remote = _remote(store, job_id, path, runs, host)
    return Follower(remote, run=run, markers=markers, tail=tail, from_line=from_line, tell=tell)


class OutputTail(NamedTuple):
    """The last bytes of the output of a run, and how many bytes of its output are not kept."""

    data: bytes
    gone: int


def read_output_tail(store: Reads, job: Job, runs: Sequence[Run], *, host: str, limit: int) -> OutputTail | None:
    """Of the last run; None if there was no run, or its output is unknown."""
    if not runs:
        return None
    last = runs[-1]
    remote = _remote(store, job.id, job.log, runs, host)
    with closing(Follower(remote, run=last.number, markers=False)) as follower:
        try:
            printed = list(follower.stretches(job.log, runs))
        except Unavailable:  # `show` prints the rest of the job; `logs` reports the error
            return None
        left = left_of(printed)
        if not (left or follower.is_in_log(last) or _is_silent(last)):
            return None
        return OutputTail(last_bytes(left, limit), _count_missing(printed))


def missing_log(store: Reads, job_id: str, *, host: str) -> str | None:
    """The path of a log of this host that was removed, if the store has no copy; None otherwise."""
    job, runs = store.get(job_id), store.history(job_id)
    last = runs[-1] if runs else None
    if last is None or job.log is None or last.host != host or last.log_from is None or log_exists(job.log):
        return None
    return None if store.output(job_id, last.number) else job.log


def _is_silent(run: Run) -> bool:
    """Whether a run is known to have printed nothing."""
    return run.outcome is not Ending.LOST if run.log_from is None else run.log_to == run.log_from


def _count_missing(view: Iterable[Stretch]) -> int:
    return sum(max(0, min(source.first, span.stop) - span.start) for source, span in view)


def _remote(store: Reads, job_id: str, path: str | None, runs: Sequence[Run], host: str) -> RemoteOutput | None:
    """How to read what is not in the log of this host; None if there is no such output. A copy of a shared store has the output of runs on
    other hosts."""
    if not store.is_shared and (
        path is None or log_exists(path) or not any(store.output(job_id, run.number) for run in runs)
    ):
        return None

    def fetch(number: int, start: int) -> Fetched:
        pieces = store.output(job_id, number, start=start)
        return Fetched(pieces, is_all=len(pieces) < OUTPUT_AT_ONCE)

    return RemoteOutput(is_local=lambda run: run.host == host, fetch=fetch)


FOLLOW_POLL_SECONDS: Final = 0.05


OnMissingOutput = Callable[[str, int, str], None]  # job, number of missing bytes, the limit that removed them


def _ignore_missing(job_id: str, count: int, limit: str) -> None: ...


class Piece(NamedTuple):
    """A piece of the log of a job. `line`: the number of its first line, for the first piece of a view with `from_line`."""

    id: str
    data: bytes
    line: int | None = None


def read_log(
    store: Reads, job_id: str, view: LogView, *, host: str, tell: OnMissingOutput = _ignore_missing
) -> Generator[bytes]:
    """The current log, in bounded memory; empty if the job never ran. Raises NotFound if there is no such run.

    `host` is this host: output of other hosts is read from the store. `tell` is as in `open_output`.
    """
    runs = store.history(job_id)
    path = store.get(job_id).log
    if view.run is not None and not any(run.number == view.run for run in runs):
        raise NotFound(f"job {job_id!r} has no run {view.run}, it has had {len(runs)}", hint=f"queuectl show {job_id}")
    about = partial(tell, job_id)
    with closing(open_output(store, job_id, view, host=host, path=path, runs=runs, tell=about)) as follower:
        yield from follower.new(path, runs)


def read_lines(
    store: Reads, job_id: str, *, run: int | None, first: int | None, count: int, max_bytes: int, host: str
) -> Window:
    """Numbered lines of the log with its markers, see `read_window`. Raises NotFound as `read_log`."""
    pieces = read_log(store, job_id, LogView(run=run), host=host)
    return read_window(pieces, first=first, count=count, max_bytes=max_bytes)


def search_log(
    store: Reads, job_id: str, text: str, *, run: int | None, from_line: int, limit: int, host: str
) -> Matches:
    """The lines of the log with `text`, see `search`. Raises NotFound as `read_log`."""
    pieces = read_log(store, job_id, LogView(run=run), host=host)
    with closing(pieces):
        return search(pieces, text, from_line=from_line, limit=limit)


def follow_logs(
    store: Reads,
    clock: Clock,
    ids: Sequence[str],
    view: LogView,
    *,
    host: str,
    watch: Callable[[Sequence[Job]], None] = lambda _: None,
    tell: OnMissingOutput = _ignore_missing,
) -> Iterator[Piece]:
    """The output of the jobs as it is written, until each has reached a final state. The jobs need not have started.

    `host` and `tell` are as in `read_log`. `watch` is called at every poll with the unfinished jobs. Retries while the database is
    briefly unavailable.
    """
    store = retrying_reads(store, clock)
    with ExitStack() as stack:
        store.changed()  # as in wait.py
        known = {job_id: _load(store, job_id) for job_id in ids}
        followed = {}
        for job_id, (job, runs) in known.items():
            path, about = job.log if job else None, partial(tell, job_id)
            output = open_output(store, job_id, view, host=host, path=path, runs=runs, tell=about)
            followed[job_id] = stack.enter_context(closing(output))
        has_news, pause = True, FOLLOW_POLL_SECONDS
        while True:
            for job_id, follower in followed.items():
                job, runs = known[job_id]
                if job is not None:
                    for data in follower.new(job.log, runs, ask=has_news):
                        yield Piece(job_id, data, follower.take_first_line())
            unfinished = [job for job, runs in known.values() if job is not None and not _is_over(job, runs, view)]
            if not unfinished:
                return
            watch(unfinished)
            clock.sleep(pause)
            began = clock.monotonic()
            has_news, pause = store.changed(), FOLLOW_POLL_SECONDS
            if has_news:
                # Before the logs are read again, so that the last output of an ended job is not missed.
                known.update({job.id: _load(store, job.id) for job in unfinished})
                pause = max(FOLLOW_POLL_SECONDS, IDLE_FACTOR * (clock.monotonic() - began))


def _load(store: Reads, job_id: str) -> tuple[Job | None, list[Run]]:
    try:
        return store.get(job_id), store.history(job_id)
    except JobNotFound:  # removed meanwhile: there is no more output
        return None, []


def _is_over(job: Job, runs: Sequence[Run], view: LogView) -> bool:
    if is_final(job.state):
        return True
    return view.run is not None and any(run.number == view.run and run.finished_at is not None for run in runs)
