"""New jobs as rows, and the parts of `enqueue` that both dialects share. `queuectl enqueue` loads this, so it imports little."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from queuectl.errors import DuplicateId
from queuectl.jobs.priority import Ageing, ByEnqueues, Standing, rank
from queuectl.jobs.spec import NewJob, PackedLimits, QueueDefaults
from queuectl.store.transactions import OUTSIDE, Keys, StoreBase, Transactions, Transitions
from queuectl.store.types import Enqueued, Request, Row

if TYPE_CHECKING:
    from queuectl.jobs.audit import Actor
    from queuectl.store.dependencies import Entering, NewLinks
    from queuectl.store.unique import UniquePlan

IDEMPOTENCY_KEPT_MS: Final = 24 * 3600 * 1000
NONE_REPLACED: Final[Mapping[str, str]] = MappingProxyType({})
MAX_AUDITED_JOBS: Final = 20  # of more jobs in one call, the audit entry has the IDs and the numbers per queue
MAX_AUDITED_CHARS: Final = 1000  # of a command

# ── random names ────────────────────────────────────────────────────────────────────────────────────────────────────

_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_ALNUM = _LETTERS + b"0123456789"
# 256 is no multiple of 26 or 36, so some characters are slightly more frequent. With 50 bits left that is harmless.
_TO_LETTER = bytes(_LETTERS[i % 26] for i in range(256))
_TO_ALNUM = bytes(_ALNUM[i % 36] for i in range(256))
_JOB_ID_LENGTH = 10
_TOKEN_BYTES = 12


def new_job_ids(count: int) -> list[str]:
    """`count` random IDs of the form [a-z][a-z0-9]{9}, with two system calls: a bulk enqueue needs a million."""
    heads = os.urandom(count).translate(_TO_LETTER).decode()
    tails = os.urandom(count * (_JOB_ID_LENGTH - 1)).translate(_TO_ALNUM).decode()
    step = _JOB_ID_LENGTH - 1
    return [heads[i] + tails[i * step : i * step + step] for i in range(count)]


def new_worker_id() -> str:
    return "w-" + os.urandom(5).translate(_TO_ALNUM).decode()


def new_tokens(count: int) -> list[str]:
    digits = os.urandom(count * _TOKEN_BYTES).hex()
    step = 2 * _TOKEN_BYTES
    return [digits[i : i + step] for i in range(0, len(digits), step)]


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Replaced(NamedTuple):
    """A waiting job that a new one replaces."""

    id: str
    by: str
    last_seq: int  # the last sequence number before the new job


class InsertGroup(NamedTuple):
    """Jobs that are inserted together, after those in `replaced` were cancelled."""

    jobs: Sequence[NewJob]
    ids: Sequence[str]
    seqs: Sequence[int]
    replaced: Sequence[Replaced] = ()


def over_key_limit(jobs: Sequence[NewJob], per_key: Mapping[str, int]) -> set[int]:
    """The indexes of jobs that cannot be claimed at first because of the limit of their concurrency key. `per_key`: the limit of each
    queue that has one. Call `admit` afterwards; it decides the order within a key."""
    seen: Counter[tuple[str, str]] = Counter()
    found = set()
    for index, job in enumerate(jobs):
        limit = per_key.get(job.queue) if job.places is None else job.places
        if job.key is not None and limit is not None:
            seen[job.queue, job.key] += 1
            if seen[job.queue, job.key] > limit:
                found.add(index)
    return found


def count_new(jobs: Sequence[NewJob], ids: Sequence[str], blocked: Collection[str]) -> Iterator[tuple[str, str, int]]:
    """Queue, state and number of new jobs. `blocked`: the IDs of those with unresolved dependencies."""
    waiting = Counter(job.queue for job, id_ in zip(jobs, ids, strict=True) if id_ in blocked) if blocked else {}
    for queue, count in Counter(job.queue for job in jobs).items():
        waits = waiting.get(queue, 0)
        if waits:
            yield queue, "blocked", waits
        if count > waits:
            yield queue, "pending", count - waits


def new_row(new: NewJob, *, seq: int, job_id: str, now_ms: int, ageing: Ageing, key_blocked: bool = False) -> Row:
    """The parameters of `enqueue`, in its order. `key_blocked`: over the limit of its key, if it is due."""
    if new.delay_ms is not None:
        run_at = now_ms + new.delay_ms
    else:
        run_at = max(now_ms, new.run_at_ms or 0)  # a time in the past means now
    env, tags = _json(new.env) if new.env else None, _json(new.tags) if new.tags else "[]"
    hooks, limits, secrets = (_json(value) if value else None for value in (new.hooks, new.limits, new.secrets))
    own_rank = rank(ageing, Standing(new.priority, seq, run_at, 0))
    return (
        seq, job_id, new.command, None if new.argv is None else _json(new.argv), new.queue, run_at <= now_ms, new.priority, own_rank,
        run_at, run_at, new.max_retries, new.first_is_free, new.backoff_base, new.timeout_ms, new.cwd, env, tags, new.unique_key,
        now_ms, now_ms, new.batch, new.key, key_blocked and run_at <= now_ms, new.places, hooks, limits, secrets,
    )  # fmt: skip


def new_rows(group: InsertGroup, *, now_ms: int, ageing: Ageing, key_blocked: Collection[int]) -> Iterator[Row]:
    """The rows of a group. `key_blocked`: the indexes that `over_key_limit` returned."""
    # Most jobs of a large group differ in number, ID and command only, and so do their rows, unless the rank depends on the number.
    may_be_alike = not key_blocked and not isinstance(ageing, ByEnqueues)
    others: Row | None = None
    row: Row = ()
    for index, (job, id_, seq) in enumerate(zip(group.jobs, group.ids, group.seqs, strict=True)):
        if may_be_alike and job[1:] == others:
            yield (seq, id_, job[0], *row[3:])
            continue
        row, others = (
            new_row(job, seq=seq, job_id=id_, now_ms=now_ms, ageing=ageing, key_blocked=index in key_blocked),
            job[1:],
        )
        yield row


def tag_rows(group: InsertGroup) -> Iterator[Row]:
    """The parameters of `tag`, in its order."""
    return ((tag, seq) for job, seq in zip(group.jobs, group.seqs, strict=True) for tag in job.tags)


def read_defaults(rows: Iterable[Row]) -> QueueDefaults:
    """From the rows of `queue_defaults`."""
    found = {}
    for name, priority, retries, timeout_ms, *urls, limits in rows:
        success, failure, dead = urls
        found[name] = (priority, retries, timeout_ms, (success, failure, dead), _limits(limits))
    return found


def _limits(stored: str | None) -> PackedLimits | None:
    if stored is None:
        return None
    import json  # as below

    limits: dict[str, int] = json.loads(stored)
    return limits


def _json(value: object) -> str:
    import json  # here, since most jobs are one command, and it takes 2 ms to load

    return json.dumps(value)


# ── the transaction ─────────────────────────────────────────────────────────────────────────────────────────────────


class EnqueueSteps(ABC):
    """Base of the two dialects: the steps of an enqueue, within its transaction."""

    def __init__(self, tx: Transactions) -> None:
        self._tx = tx

    @abstractmethod
    def enqueue(self, jobs: Sequence[NewJob], *, on_complete: NewJob | None, idempotency: Request | None) -> Enqueued:
        """See EnqueueStore."""

    def add(
        self,
        jobs: Sequence[NewJob],
        ids: Sequence[str],
        transitions: Transitions,
        *,
        replaced: Mapping[str, str] = NONE_REPLACED,
    ) -> None:
        """Enqueue jobs within a transaction that has locked their unique keys. `replaced`: by the ID of a new job, the waiting job
        that it replaces."""
        if not jobs:
            return
        ageing, seqs = self.take_seqs([job.id for job in jobs if job.id is not None], len(jobs))
        now = self._tx.clock.now_ms()
        old = [Replaced(replaced[id_], id_, seq - 1) for id_, seq in zip(ids, seqs, strict=True) if id_ in replaced]
        self.insert(InsertGroup(jobs, ids, seqs, old), transitions, now_ms=now, ageing=ageing)

    @abstractmethod
    def take_seqs(self, given: Sequence[str], count: int) -> tuple[Ageing, Sequence[int]]:
        """The ranking rule, and `count` new sequence numbers. `given`: IDs that must not exist. Raises DuplicateId."""

    @abstractmethod
    def find_request(self, values: Mapping[str, Any]) -> Row | None:
        """The digest and the answer of an earlier request with this idempotency key. Without one, the key is locked."""

    @abstractmethod
    def insert_rows(self, group: InsertGroup, rows: Iterator[Row]) -> None:
        """Insert the rows of a group, and their tags."""

    @abstractmethod
    def insert_links(self, links: NewLinks, new: Mapping[str, int]) -> None:
        """Store the dependencies of jobs that were inserted. `new`: their sequence numbers."""

    def insert(
        self,
        group: InsertGroup,
        transitions: Transitions,
        *,
        now_ms: int,
        ageing: Ageing,
        blocked: Collection[str] = (),
    ) -> None:
        """`blocked`: the IDs of jobs with dependencies, which `insert_links` stores."""
        jobs, ids = group.jobs, group.ids
        if group.replaced:
            from queuectl.store.unique import replace  # here, since few jobs have a unique key

            replace(self._tx, group.replaced, transitions, now_ms=now_ms, ageing=ageing)
        # Blocked jobs do not count against the limits of their keys.
        due = (
            [job._replace(key=None) if id_ in blocked else job for job, id_ in zip(jobs, ids, strict=True)]
            if blocked
            else jobs
        )
        keyed = [(job.queue, job.key) for job in due if job.key is not None]
        key_blocked = (
            over_key_limit(due, dict(self._tx.all("per_key"))) if len(set(keyed)) < len(keyed) else frozenset()
        )
        self.insert_rows(group, new_rows(group, now_ms=now_ms, ageing=ageing, key_blocked=key_blocked))
        for queue, state, count in count_new(jobs, ids, blocked):
            transitions.add(queue, OUTSIDE, state, jobs=count)
        # In one order for all callers, so that they do not deadlock.
        for batch, count in sorted(Counter(job.batch for job in jobs if job.batch is not None).items()):
            self._join_batch(batch, count, now_ms=now_ms)
        if key_blocked:
            keys: Keys = sorted({(jobs[index].queue, str(jobs[index].key)) for index in key_blocked})
            self._tx.admit(keys)

    def add_requested(
        self,
        jobs: Sequence[NewJob],
        ids: list[str],
        transitions: Transitions,
        *,
        on_complete: NewJob | None,
        idempotency: Request | None,
        taken: tuple[Ageing, Sequence[int]] | None = None,
    ) -> tuple[Enqueued, bool]:
        """The steps of `enqueue` within its transaction. Changes `ids` to those of the jobs that are inserted. `taken`: the result of
        `take_seqs`, if it was called already. Returns the answer, and whether a waiting job was replaced."""
        now = self._tx.clock.now_ms()
        if idempotency is not None and (earlier := self._earlier_answer(idempotency, now_ms=now)) is not None:
            return earlier, False
        answer = Enqueued(ids)
        plan: UniquePlan | None = None
        links: NewLinks | None = None
        if any(job.unique_key is not None for job in jobs):
            from queuectl.store.unique import UniquePlan, lock_holders  # here, since few jobs have a unique key

            plan = UniquePlan(jobs, tuple(ids), lock_holders(self._tx, jobs), now_ms=now)
            answer, ids[:] = plan.answer, plan.ids
        if len(set(ids)) < len(ids):
            raise DuplicateId(next(id_ for id_, times in Counter(ids).items() if times > 1))
        # Before sequence numbers are taken: refused jobs must not count as enqueued.
        if any(job.depends_on for job in jobs):
            from queuectl.store.dependencies import Entering  # here, since most jobs have no dependencies

            links = self.find_links(Entering(jobs, ids) if plan is None else plan.entering)
        chosen = {job.id for job in jobs}
        ageing, seqs = taken or self.take_seqs([id_ for id_ in ids if id_ in chosen], len(ids))
        blocked = () if links is None else links.blocked()
        for group in [InsertGroup(jobs, ids, seqs)] if plan is None else plan.groups(seqs):
            self.insert(group, transitions, now_ms=now, ageing=ageing, blocked=blocked)
        if links is not None:
            self.insert_links(links, dict(zip(ids, seqs, strict=True)))
        if on_complete is not None and on_complete.batch is not None:
            self._complete_with(on_complete, on_complete.batch, now_ms=now)
        if idempotency is not None:
            key, digest = idempotency
            values = {"key": key, "digest": digest, "answer": _pack_answer(answer), "now": now}
            self._tx.defer_each("keep_request", [values])
        self._record(jobs, ids)
        return answer, plan is not None and bool(plan.replaced)

    def _earlier_answer(self, request: Request, *, now_ms: int) -> Enqueued | None:
        key, digest = request
        values = {"key": key, "digest": digest, "now": now_ms, "before": now_ms - IDEMPOTENCY_KEPT_MS}
        row = self.find_request(values)
        return None if row is None else _unpack_answer(request, *row)

    def find_links(self, entering: Entering) -> NewLinks:
        """Raises ParentNotFound, ParentEnded or InvalidInput."""
        from queuectl.store.dependencies import link, read_parents  # here, since most jobs have no dependencies

        found = self._tx.all("new_parents", {"ids": self._tx.array(entering.outside())})
        return link(entering, read_parents(found))

    def _complete_with(self, job: NewJob, batch: str, *, now_ms: int) -> None:
        """Enqueue `job` when all jobs of a batch have ended. Raises BatchComplete or BatchDiffers."""
        from queuectl.errors import BatchDiffers
        from queuectl.store.batches import pack_job

        self._join_batch(batch, 0, now_ms=now_ms)
        if not self._tx.execute("set_on_complete", {"name": batch, "job": pack_job(job)}):
            raise BatchDiffers(batch)

    def _record(self, jobs: Sequence[NewJob], ids: Sequence[str]) -> None:
        """Write the audit entry."""
        if self._tx.actor is None:
            return
        from queuectl.jobs.audit import Act

        if len(ids) <= MAX_AUDITED_JOBS and len(ids) == len(jobs):
            after: dict[str, object] = {"jobs": [_audited(job) for job in jobs]}
        else:
            after = {"queues": Counter(job.queue for job in jobs)}
        self._tx.record(Act("enqueue", ids, after=after))

    def _join_batch(self, batch: str, jobs: int, *, now_ms: int) -> None:
        if self._tx.value("join_batch", {"name": batch, "jobs": jobs, "now": now_ms}) is not None:
            from queuectl.errors import BatchComplete

            raise BatchComplete(batch)


def _audited(job: NewJob) -> dict[str, object]:
    command = " ".join(job.argv) if job.argv else job.command or ""
    if len(command) > MAX_AUDITED_CHARS:
        command = command[:MAX_AUDITED_CHARS] + "…"
    fields = {"queue": job.queue, "priority": job.priority, "batch": job.batch, "unique": job.unique_key}
    return {"command": command, **{name: value for name, value in fields.items() if value is not None}}


class EnqueueStore(StoreBase):
    """The part of a store that `queuectl enqueue` needs."""

    def __init__(self, tx: Transactions, enqueuer: EnqueueSteps) -> None:
        super().__init__(tx)
        self.enqueuer = enqueuer

    @property
    def actor(self) -> Actor | None:
        """The user that audit entries name; None: no entries are written."""
        return self.tx.actor

    @actor.setter
    def actor(self, actor: Actor | None) -> None:
        self.tx.actor = actor

    def enqueue(
        self, jobs: Sequence[NewJob], *, on_complete: NewJob | None = None, idempotency: Request | None = None
    ) -> Enqueued:
        """Add jobs, all or none, and return their IDs in the order given.

        At most one job with a unique key waits or runs at any time, also with concurrent callers; the jobs of one call are
        handled one after the other. If the key of a job is taken, jobs/unique.py decides: the result has the ID of the
        existing job, or that job is cancelled. Skipped jobs do not count as enqueued. A dependency on a skipped job is one on
        the existing job. `on_complete` is enqueued when all jobs of its batch have ended.

        Raises DuplicateId if an ID is taken or given twice, KeyTaken if a key is and that is an error, BatchComplete,
        BatchDiffers, and for dependencies ParentNotFound, ParentEnded (the parent can no longer end as required) or
        InvalidInput (a cycle).

        With `idempotency`, the same request within 24 hours adds nothing and gets the same answer, also while the first one is
        in progress. Another request with the same key raises KeyReused.
        """
        return self.enqueuer.enqueue(jobs, on_complete=on_complete, idempotency=idempotency)


# ── idempotency keys ────────────────────────────────────────────────────────────────────────────────────────────────


def _pack_answer(answer: Enqueued) -> str:
    import json

    return json.dumps([answer, sorted(answer.duplicates)], separators=(",", ":"))


def _unpack_answer(request: Request, digest: str, packed: str) -> Enqueued:
    """The stored answer to a request with this key. Raises KeyReused if that had another digest."""
    import json

    key, asked = request
    if digest != asked:
        from queuectl.errors import KeyReused

        raise KeyReused(key)
    ids, duplicates = json.loads(packed)
    answer = Enqueued(ids)
    answer.duplicates = frozenset(duplicates)
    return answer
