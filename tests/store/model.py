"""The queue as a few lines of Python: no index, no key fixed in advance, no table of counts. What the store must agree with.

Priorities are computed from what the contract says about waiting, at the moment of the claim; nothing here knows of
ranks, sequence numbers or missed enqueues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from queuectl.jobs.edit import JobEdit
from queuectl.jobs.outcome import Cancelled, Ending, Exited, Outcome, Released, Signalled
from queuectl.jobs.states import FINAL, WAITING, State

OFF, ENQUEUES = 0, -1  # else: the milliseconds that are worth one point


@dataclass
class ModelJob:
    id: str
    queue: str
    priority: int
    max_retries: int
    run_at: int
    tags: frozenset[str]
    first_due: int
    let_in: bool
    state: State = State.PENDING
    points: int = 0  # enqueues that came while it did not run
    frozen: int | None = None  # effective priority at the claim or the end
    attempts: int = 0
    crashes: int = 0
    runs: int = 0
    endings: list[Ending] = field(default_factory=list)
    worker: str | None = None
    cancelled: bool = False
    held: bool = False
    key: str | None = None
    created: int = 0
    concurrency_key: str | None = None  # the key of --per-key; `key` is that of --unique


@dataclass
class Wish:
    """A job to enqueue, and what to do if its key is taken."""

    job: ModelJob
    if_exists: str | None
    unique_for: int | None


class Refused(Exception):
    pass


class Model:
    def __init__(self) -> None:
        self.now = 0
        self.ageing = OFF
        self.jobs: dict[str, ModelJob] = {}  # in the order of enqueue
        self.queues: set[str] = set()
        self.paused: set[str] = set()
        self.most: dict[str, int] = {}  # jobs of a queue at a time
        self.per_key: dict[str, int] = {}  # of those, with one key

    # ── what it shows ───────────────────────────────────────────────────────────────────────────────────────────────

    def effective_priority(self, job: ModelJob) -> int:
        if job.frozen is not None:
            return job.frozen
        if self.ageing == OFF:
            return job.priority
        if self.ageing == ENQUEUES:
            return job.priority + job.points
        return job.priority + max(0, self.now - job.first_due) // self.ageing

    def tally(self) -> dict[str, dict[State, int]]:
        counts = Counter((job.queue, job.state) for job in self.jobs.values())
        return {queue: {state: counts[queue, state] for state in State} for queue in self.queues}

    def is_drained(self) -> bool:
        free = [job for job in self.jobs.values() if not job.held and job.queue not in self.paused]
        due = (job.let_in or job.run_at <= self.now for job in free if job.state is State.PENDING)
        return not any(due) and not any(job.state in {State.PROCESSING, State.FAILED} for job in free)

    # ── what happens to it ──────────────────────────────────────────────────────────────────────────────────────────

    def enqueue(self, wishes: Iterable[Wish]) -> list[tuple[str, bool]]:
        """The ids, and whether it was there already. Raises Refused, and then nothing of it counts."""
        ids = []
        for wish in wishes:
            holder = self._holder(wish)
            if holder is not None and wish.if_exists in (None, "skip"):
                ids.append((holder.id, True))
                continue
            if holder is not None:
                if wish.if_exists == "error" or holder.state not in WAITING:
                    raise Refused
                self.cancel(holder)
            if wish.job.id in self.jobs:
                raise Refused
            for job in self.jobs.values():
                job.points += job.state is not State.PROCESSING
            self.jobs[wish.job.id] = wish.job
            self.queues.add(wish.job.queue)
            ids.append((wish.job.id, False))
        return ids

    def _holder(self, wish: Wish) -> ModelJob | None:
        of_key = [job for job in self.jobs.values() if wish.job.key is not None and job.key == wish.job.key]
        if waiting := [job for job in of_key if job.state not in FINAL]:
            return waiting[0]
        newest = max(reversed(of_key), key=lambda job: job.created, default=None)
        if newest is None or wish.unique_for is None or self.now >= newest.created + wish.unique_for:
            return None
        return newest

    def let_in(self) -> None:
        for job in self.jobs.values():
            if job.state in WAITING and job.run_at <= self.now and not job.held:
                job.let_in = True

    def claim(self, worker: str, limit: int, queues: tuple[str, ...] | None) -> list[str]:
        self.let_in()
        ready = [job for job in self.jobs.values() if job.state in WAITING and job.let_in]
        ready.sort(key=self._merit, reverse=True)  # stable: first in, first out
        if queues is not None:
            ready = [job for queue in queues for job in ready if job.queue == queue]
        claimed: list[str] = []
        for job in ready:
            if len(claimed) == limit or not self.has_room(job):
                continue
            job.frozen = self.effective_priority(job)
            job.state, job.worker, job.let_in, job.cancelled = State.PROCESSING, worker, False, False
            job.runs += 1
            claimed.append(job.id)
        return claimed

    def has_room(self, job: ModelJob) -> bool:
        queue = job.queue
        running = [one for one in self.jobs.values() if one.queue == queue and one.state is State.PROCESSING]
        of_key = sum(one.concurrency_key == job.concurrency_key for one in running)
        return (
            queue not in self.paused
            and len(running) < self.most.get(queue, len(running) + 1)
            and (job.concurrency_key is None or of_key < self.per_key.get(queue, of_key + 1))
        )

    def rule(self, queue: str, *, paused: bool, most: int | None, per_key: int | None) -> None:
        self.per_key.pop(queue, None)
        if per_key is not None:
            self.per_key[queue] = per_key
        self.paused = self.paused | {queue} if paused else self.paused - {queue}
        self.most.pop(queue, None)
        if most is not None:
            self.most[queue] = most

    def move(self, queue: str, to: str) -> list[str]:
        found = [job for job in self.jobs.values() if job.queue == queue and job.state in WAITING]
        for job in found:
            job.queue = to
            self.queues.add(to)
        return [job.id for job in found]

    def end(self, job: ModelJob, outcome: Outcome) -> None:
        if job.cancelled:
            outcome = Cancelled(None)
        match outcome:
            case Exited(0):
                self._finish(job, State.COMPLETED, Ending.COMPLETED)
            case Exited() | Signalled():
                job.attempts += 1
                ending = Ending.FAILED if isinstance(outcome, Exited) else Ending.SIGNALLED
                if job.attempts >= max(1, job.max_retries):
                    self._finish(job, State.DEAD, ending)
                else:
                    self._wait(job, State.FAILED, ending, seconds=2**job.attempts)
            case Released():
                self._wait(job, State.PENDING, Ending.RELEASED)
            case Cancelled():
                self._finish(job, State.CANCELLED, Ending.CANCELLED)
            case _:
                raise NotImplementedError(outcome)

    def lose(self, worker: str, max_crashes: int) -> None:
        for job in self.jobs.values():
            if job.state is not State.PROCESSING or job.worker != worker:
                continue
            if job.cancelled:
                self.end(job, Cancelled(None))
                continue
            job.crashes += 1
            if job.crashes >= max_crashes:
                self._finish(job, State.DEAD, Ending.LOST)
            else:
                self._wait(job, State.PENDING, Ending.LOST)

    def cancel(self, job: ModelJob) -> None:
        if job.state in WAITING:
            job.frozen = self.effective_priority(job)
            job.state, job.let_in = State.CANCELLED, False
        elif job.state is State.PROCESSING:
            job.cancelled = True

    def retry(self, job: ModelJob) -> None:
        if job.state in {State.DEAD, State.CANCELLED}:
            if self._holder(Wish(job, None, None)) is not None:
                return
            job.attempts = job.crashes = 0
        elif job.state is not State.FAILED:
            return
        job.state, job.run_at, job.let_in, job.frozen = State.PENDING, self.now, not job.held, None

    def edit(self, job: ModelJob, change: JobEdit) -> None:
        if job.state not in WAITING:
            return
        if change.priority is not None:
            job.priority = change.priority
        if change.queue is not None:
            job.queue = change.queue
            self.queues.add(job.queue)
        if change.max_retries is not None:
            job.max_retries = change.max_retries
        if change.delay_ms is not None:
            job.run_at, job.let_in = self.now + change.delay_ms, False
            if not job.runs:
                job.first_due = job.run_at
        if change.held is not None:
            job.held = change.held
        job.let_in = not job.held and (job.let_in or job.run_at <= self.now)

    def purge(self, job: ModelJob) -> None:
        if job.state is State.DEAD:
            del self.jobs[job.id]

    def _merit(self, job: ModelJob) -> Fraction:
        if self.ageing > 0:
            return job.priority + Fraction(self.now - job.first_due, self.ageing)
        return Fraction(job.priority + (job.points if self.ageing == ENQUEUES else 0))

    def _finish(self, job: ModelJob, state: State, ending: Ending) -> None:
        job.state = state
        job.endings.append(ending)

    def _wait(self, job: ModelJob, state: State, ending: Ending, *, seconds: int | None = None) -> None:
        job.state, job.frozen = state, None
        job.endings.append(ending)
        if seconds is None:
            job.let_in = True
        else:
            job.let_in, job.run_at = False, self.now + seconds * 1000
