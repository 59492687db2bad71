"""Wait until jobs or batches have ended, and retry reads while the store is briefly unavailable. The progress of batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar, cast

from queuectl.clock import Clock
from queuectl.errors import JobNotFound, StoreBusy, StoreUnreachable, WaitTimeout
from queuectl.jobs.model import Job, Worker
from queuectl.jobs.states import WAITING, State, is_final
from queuectl.operations.bulk import find_jobs
from queuectl.store.reads import Reads
from queuectl.store.types import RECENT_MS, Batch, Filter
from queuectl.text import WEBHOOK_QUEUE
from queuectl.units import from_ms, iso

POLL_SECONDS: Final = 0.02
# A poll of many jobs may use at most a fifth of the time: waiting must not slow down the workers.
IDLE_FACTOR: Final = 5
UNSERVED_NOTICE_SECONDS: Final = 2.0
WORKER_CHECK_SECONDS: Final = 0.25


def wait(
    store: Reads,
    clock: Clock,
    ids: Sequence[str],
    *,
    any_of_them: bool = False,
    timeout: float | None = None,
    watch: Callable[[Sequence[Job]], None] = lambda _: None,
) -> list[Job]:
    """Wait for jobs and return them in the order of `ids`; with `any_of_them`, return those that have ended when the first one has.

    `watch` is called at every poll with the unfinished jobs. Raises WaitTimeout, or JobNotFound for a job that is removed
    meanwhile. Retries while the database is briefly unavailable.
    """
    started = clock.monotonic()
    deadline = None if timeout is None else started + timeout
    store = retrying_reads(store, clock, until=deadline)
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
    started = clock.monotonic()
    store.changed()  # before the first poll, so that no change is missed
    jobs = _load_jobs(store, ids)
    pause = max(POLL_SECONDS, IDLE_FACTOR * (clock.monotonic() - started))
    while True:
        unfinished = [job for job in jobs.values() if not is_final(job.state)]
        if not unfinished or (any_of_them and len(unfinished) < len(jobs)):
            return [job for job in jobs.values() if is_final(job.state)]
        watch(unfinished)
        left = pause if timeout is None else min(pause, started + timeout - clock.monotonic())
        if left <= 0:
            raise WaitTimeout([job.id for job in unfinished], timeout or 0)
        clock.sleep(left)
        if store.changed():
            look_at = clock.monotonic()
            jobs.update(_load_jobs(store, [job.id for job in unfinished]))
            pause = max(POLL_SECONDS, IDLE_FACTOR * (clock.monotonic() - look_at))


def _load_jobs(store: Reads, ids: Sequence[str]) -> dict[str, Job]:
    found = find_jobs(store, ids)
    for job_id in ids:
        if job_id not in found:
            raise JobNotFound(job_id)
    return found


def exit_code(jobs: Sequence[Job]) -> int:
    """The exit code of the first job that did not complete, 128 + N for a signal; 0 if all completed."""
    for job in jobs:
        if job.state is not State.COMPLETED:
            if job.exit_code is not None:
                return job.exit_code
            return 128 + job.signal if job.signal is not None else 1
    return 0


class UnservedWatch:
    """Notifies once if no live worker has served one of the jobs for two seconds."""

    def __init__(
        self, store: Reads, clock: Clock, *, is_alive: Callable[[Worker], bool], notify: Callable[[Job], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._is_alive = is_alive
        self._notify = notify
        self._looked = -WORKER_CHECK_SECONDS
        self._unserved_since: float | None = None
        self._notified = False

    def __call__(self, unfinished: Sequence[Job]) -> None:
        now = self._clock.monotonic()
        if self._notified or now - self._looked < WORKER_CHECK_SECONDS:
            return
        self._looked = now
        try:
            alive = [worker for worker in self._store.workers() if self._is_alive(worker)]
        except (StoreBusy, StoreUnreachable):
            return  # unknown; the wait itself reports the outage
        unserved = next((job for job in unfinished if not is_served(job, alive)), None)
        if unserved is None:
            self._unserved_since = None
        elif self._unserved_since is None:
            self._unserved_since = now
        elif now - self._unserved_since >= UNSERVED_NOTICE_SECONDS:
            self._notified = True
            self._notify(unserved)


def is_served(job: Job, alive: Sequence[Worker]) -> bool:
    if job.state is State.PROCESSING:
        return any(worker.id == job.worker for worker in alive)
    # A stopping worker claims no jobs.
    return any(
        worker.state == "running" and (worker.queues is None or job.queue in (*worker.queues, WEBHOOK_QUEUE))
        for worker in alive
    )


T = TypeVar("T")

# The time limit of any command that does not wait. A server restart takes less.
STORE_RETRY_SECONDS: Final = 10.0
STORE_RETRY_PAUSE: Final = 0.1


def retry_store(clock: Clock, act: Callable[[], T], *, until: float | None = None) -> T:
    """The result of `act`, retried while the store is unavailable, up to 10 s and not beyond `until` (monotonic).

    Not retried if it may have been committed.
    """
    deadline = clock.monotonic() + STORE_RETRY_SECONDS
    deadline = deadline if until is None else min(deadline, until)
    while True:
        try:
            return act()
        except (StoreBusy, StoreUnreachable) as error:
            if clock.monotonic() >= deadline or (isinstance(error, StoreUnreachable) and error.in_doubt):
                raise
            clock.sleep(STORE_RETRY_PAUSE)


def retrying_reads(store: Reads, clock: Clock, *, until: float | None = None) -> Reads:
    """The same store; every read is retried with `retry_store`."""
    return cast(Reads, _RetryingReads(store, clock, until))


class _RetryingReads:
    """A store, or one of its parts."""

    def __init__(self, store: Any, clock: Clock, until: float | None) -> None:
        self._store = store
        self._clock = clock
        self._until = until

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if isinstance(found, bool | str):
            return found
        if not callable(found):
            return _RetryingReads(found, self._clock, self._until)
        return lambda *args, **kwargs: retry_store(self._clock, lambda: found(*args, **kwargs), until=self._until)

    def jobs(self, *args: Any, **kwargs: Any) -> Any:
        # As a list: a retry must not return rows twice.
        return retry_store(self._clock, lambda: list(self._store.jobs(*args, **kwargs)), until=self._until)


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────────────


NOT_COMPLETED: Final = (State.DEAD, State.CANCELLED)
MIN_RATE_MS: Final = 1000  # a rate over less time is not meaningful


class Progress(NamedTuple):
    """The progress of a batch. Removed jobs have ended, in an unknown state."""

    batch: Batch
    now_ms: int

    @property
    def done(self) -> int:
        return self.batch.states[State.COMPLETED] + self.removed

    @property
    def failed(self) -> int:
        return sum(self.batch.states[state] for state in NOT_COMPLETED)

    @property
    def running(self) -> int:
        return self.batch.states[State.PROCESSING]

    @property
    def waiting(self) -> int:
        return sum(self.batch.states[state] for state in WAITING)

    @property
    def removed(self) -> int:
        return max(0, self.batch.added - sum(self.batch.states.values()))

    @property
    def rate(self) -> float | None:
        """Recently ended jobs per second; None if there are none, or the batch has just started or has ended."""
        if not self.batch.open:
            return None
        span = min(RECENT_MS, self.now_ms - self.batch.created_at)
        return self.batch.recent / span * 1000 if self.batch.recent and span >= MIN_RATE_MS else None

    @property
    def left_ms(self) -> int | None:
        """The estimated remaining time; None without a rate."""
        return None if self.rate is None else round(self.batch.open / self.rate * 1000)

    @property
    def took_ms(self) -> int | None:
        """How long an ended batch took; None if that is not known."""
        return None if self.batch.ended_at is None else max(0, self.batch.ended_at - self.batch.created_at)

    def to_dict(self) -> dict[str, Any]:
        batch = self.batch
        return {
            "name": batch.name,
            "jobs": batch.added,
            **{name: getattr(self, name) for name in ("done", "failed", "running", "waiting", "removed")},
            "states": {state.value: jobs for state, jobs in batch.states.items()},
            "rate": self.rate,
            "left_ms": self.left_ms,
            "created_at": iso(from_ms(batch.created_at)),
            "completed_at": None if batch.completed_at is None else iso(from_ms(batch.completed_at)),
            "on_complete": batch.on_complete,
            "on_complete_job": batch.on_complete_job,
        }


def progress(store: Reads, name: str) -> Progress:
    return Progress(store.batches.get(name), store.now_ms())


def all_progress(store: Reads) -> list[Progress]:
    now_ms = store.now_ms()
    return [Progress(batch, now_ms) for batch in store.batches.all()]


def progress_page(store: Reads, *, limit: int, after: tuple[int, str] | None = None, match: str = "") -> list[Progress]:
    """The progress of some batches, see `Batches.page`."""
    now_ms = store.now_ms()
    return [Progress(batch, now_ms) for batch in store.batches.page(limit=limit, after=after, match=match)]


def wait_batch(
    store: Reads, clock: Clock, name: str, *, timeout: float | None, watch: Callable[[Progress], None] = lambda _: None
) -> Progress:
    """Wait until no job of the batch waits or runs. Raises BatchNotFound or WaitTimeout."""
    deadline = None if timeout is None else clock.monotonic() + timeout
    store = retrying_reads(store, clock, until=deadline)
    store.changed()
    while True:
        began = clock.monotonic()
        found = progress(store, name)
        watch(found)
        if not found.batch.open:
            return found
        # A poll costs time in proportion to the batch: waiting must not slow down the workers.
        pause = max(POLL_SECONDS, IDLE_FACTOR * (clock.monotonic() - began))
        while True:
            left = pause if deadline is None else min(pause, deadline - clock.monotonic())
            if left <= 0:
                raise WaitTimeout([f"{found.batch.open:,} jobs of {name}"], timeout or 0)
            clock.sleep(left)
            if store.changed():
                break


def first_not_completed(store: Reads, name: str) -> list[Job]:
    """The first dead or cancelled job of the batch, if there is one."""
    where = Filter(states=frozenset(NOT_COMPLETED), batches=frozenset({name}))
    return list(store.jobs(where, descending=False, limit=1))
