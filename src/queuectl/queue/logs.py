"""What jobs printed: as it is, or while it grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.errors import JobNotFound, NotFound
from queuectl.job.lifecycle import is_final
from queuectl.job.model import Job, Run
from queuectl.queue.patience import patient
from queuectl.queue.printed import LogView as LogView
from queuectl.queue.printed import open_output
from queuectl.store.protocol import Reads

POLL: Final = 0.05
REST: Final = 5  # as in wait: who looks on must not keep busy those who work


Tell = Callable[[str, int, str], None]  # of a job, so many bytes of output are gone, because of this limit


def _tell_nobody(job_id: str, count: int, limit: str) -> None: ...


class Piece(NamedTuple):
    """Some bytes of a job's log, in order."""

    id: str
    data: bytes


def read(store: Reads, job_id: str, view: LogView, *, host: str, tell: Tell = _tell_nobody) -> Iterator[bytes]:
    """The log as it is now, in bounded memory; nothing if the job never ran. NotFound if there is no such run.

    `host` is where we are: what ran elsewhere is in the store, as far as it is kept. `tell`: of what is gone, where there is
    no line of ours to say so.
    """
    runs = store.history(job_id)
    path = store.get(job_id).log
    if view.run is not None and not any(run.number == view.run for run in runs):
        raise NotFound(f"job {job_id!r} has no run {view.run}, it has had {len(runs)}", hint=f"queuectl show {job_id}")
    about = partial(tell, job_id)
    with closing(open_output(store, job_id, view, host=host, path=path, runs=runs, tell=about)) as follower:
        yield from follower.new(path, runs)


def follow(
    store: Reads,
    clock: Clock,
    ids: Sequence[str],
    view: LogView,
    *,
    host: str,
    watch: Callable[[Sequence[Job]], None] = lambda _: None,
    tell: Tell = _tell_nobody,
) -> Iterator[Piece]:
    """All that the jobs print, as they print it, until each has ended for good. May begin before they do.

    `host` and `tell` are as in `read`. `watch` is told at every look which jobs have not ended. A server that goes away for a moment is
    waited for.
    """
    store = patient(store, clock)
    with ExitStack() as stack:
        store.changed()  # from here on, as in wait
        known = {job_id: _look(store, job_id) for job_id in ids}
        followed = {}
        for job_id, (job, runs) in known.items():
            path, about = job.log if job else None, partial(tell, job_id)
            output = open_output(store, job_id, view, host=host, path=path, runs=runs, tell=about)
            followed[job_id] = stack.enter_context(closing(output))
        has_news, pause = True, POLL
        while True:
            for job_id, follower in followed.items():
                job, runs = known[job_id]
                if job is not None:
                    for data in follower.new(job.log, runs, ask=has_news):
                        yield Piece(job_id, data)
            unended = [job for job, runs in known.values() if job is not None and not _is_over(job, runs, view)]
            if not unended:
                return
            watch(unended)
            clock.sleep(pause)
            began = clock.monotonic()
            has_news, pause = store.changed(), POLL
            if has_news:
                # Before the logs are read again, so that what an ended job printed last is not missed.
                known.update({job.id: _look(store, job.id) for job in unended})
                pause = max(POLL, REST * (clock.monotonic() - began))


def _look(store: Reads, job_id: str) -> tuple[Job | None, list[Run]]:
    try:
        return store.get(job_id), store.history(job_id)
    except JobNotFound:  # removed while it was followed: there will be no more of it
        return None, []


def _is_over(job: Job, runs: Sequence[Run], view: LogView) -> bool:
    if is_final(job.state):
        return True
    return view.run is not None and any(run.number == view.run and run.finished_at is not None for run in runs)
