"""Waiting until jobs have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from queuectl.clock import Clock
from queuectl.errors import JobNotFound, StoreBusy, StoreUnreachable, WaitTimeout
from queuectl.job.lifecycle import State, is_final
from queuectl.job.model import Job, Worker
from queuectl.job.names import WEBHOOKS
from queuectl.queue.patience import patient
from queuectl.queue.pick import find
from queuectl.store.protocol import Reads

POLL: Final = 0.02
# Of the time, a look at many jobs may take one part in so many: who waits must not keep busy those who work.
REST: Final = 5
UNSERVED_AFTER: Final = 2.0
LOOK_FOR_WORKERS_EVERY: Final = 0.25


def wait(
    store: Reads,
    clock: Clock,
    ids: Sequence[str],
    *,
    any_of_them: bool = False,
    timeout: float | None = None,
    watch: Callable[[Sequence[Job]], None] = lambda _: None,
) -> list[Job]:
    """The jobs as they ended, in the order of `ids`; of `any_of_them`, those that have ended when the first one has.

    `watch` is told at every look which jobs have not ended. Raises WaitTimeout, or JobNotFound for a job that was
    removed while it was waited for. A server that goes away for a moment is waited for, too.
    """
    began = clock.monotonic()
    deadline = None if timeout is None else began + timeout
    store = patient(store, clock, until=deadline)
    try:
        return _wait(store, clock, ids, any_of_them=any_of_them, timeout=timeout, watch=watch)
    except (StoreBusy, StoreUnreachable) as error:
        if deadline is None or clock.monotonic() < deadline:
            raise
        raise WaitTimeout(ids, timeout or 0) from error


def _wait(
    store: Reads,
    clock: Clock,
    ids: Sequence[str],
    *,
    any_of_them: bool,
    timeout: float | None,
    watch: Callable[[Sequence[Job]], None],
) -> list[Job]:
    began = clock.monotonic()
    store.changed()  # from here on: what changes before the first look is then seen twice, not missed
    jobs = _look(store, ids)
    pause = max(POLL, REST * (clock.monotonic() - began))
    while True:
        unended = [job for job in jobs.values() if not is_final(job.state)]
        if not unended or (any_of_them and len(unended) < len(jobs)):
            return [job for job in jobs.values() if is_final(job.state)]
        watch(unended)
        left = pause if timeout is None else min(pause, began + timeout - clock.monotonic())
        if left <= 0:
            raise WaitTimeout([job.id for job in unended], timeout or 0)
        clock.sleep(left)
        if store.changed():
            look_at = clock.monotonic()
            jobs.update(_look(store, [job.id for job in unended]))
            pause = max(POLL, REST * (clock.monotonic() - look_at))


def _look(store: Reads, ids: Sequence[str]) -> dict[str, Job]:
    found = find(store, ids)
    for job_id in ids:
        if job_id not in found:
            raise JobNotFound(job_id)
    return found


def exit_code(jobs: Sequence[Job]) -> int:
    """What a shell is told: of the first job that did not complete, how it ended; 0 if all did."""
    for job in jobs:
        if job.state is not State.COMPLETED:
            if job.exit_code is not None:
                return job.exit_code
            return 128 + job.signal if job.signal is not None else 1
    return 0


class UnservedWatch:
    """Notices, once, that nobody alive has run or would run one of the jobs for two seconds on end."""

    def __init__(
        self, store: Reads, clock: Clock, *, is_alive: Callable[[Worker], bool], notify: Callable[[Job], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._is_alive = is_alive
        self._notify = notify
        self._looked = -LOOK_FOR_WORKERS_EVERY
        self._unserved_since: float | None = None
        self._notified = False

    def __call__(self, unended: Sequence[Job]) -> None:
        now = self._clock.monotonic()
        if self._notified or now - self._looked < LOOK_FOR_WORKERS_EVERY:
            return
        self._looked = now
        try:
            alive = [worker for worker in self._store.workers() if self._is_alive(worker)]
        except (StoreBusy, StoreUnreachable):
            return  # nobody knows who serves it now; whoever waits for the job notices, too, and says so in time
        unserved = next((job for job in unended if not is_served(job, alive)), None)
        if unserved is None:
            self._unserved_since = None
        elif self._unserved_since is None:
            self._unserved_since = now
        elif now - self._unserved_since >= UNSERVED_AFTER:
            self._notified = True
            self._notify(unserved)


def is_served(job: Job, alive: Sequence[Worker]) -> bool:
    if job.state is State.PROCESSING:
        return any(worker.id == job.worker for worker in alive)
    # A worker that is stopping claims nothing more.
    return any(
        worker.state == "running" and (worker.queues is None or job.queue in (*worker.queues, WEBHOOKS))
        for worker in alive
    )
