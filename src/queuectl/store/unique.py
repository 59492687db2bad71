"""Unique jobs: which jobs of an enqueue are inserted, skipped or replace another one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from queuectl.errors import KeyTaken
from queuectl.jobs.import_record import ImportRecord
from queuectl.jobs.priority import Ageing, effective_priority
from queuectl.jobs.spec import NewJob
from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.jobs.unique import Holder, UniqueAction, decide_unique, key_error, replaced_by, retry_key_error
from queuectl.store.conflicts import TransactionConflict
from queuectl.store.dependencies import Entering
from queuectl.store.enqueue import InsertGroup, Replaced
from queuectl.store.rows import Subject, subject
from queuectl.store.transactions import Transactions, Transitions
from queuectl.store.types import Enqueued, Row


def keys_of(jobs: Iterable[NewJob | ImportRecord | Subject]) -> list[str]:
    """The unique keys of these jobs, each once, in the order in which all transactions lock them."""
    return sorted({job.unique_key for job in jobs if job.unique_key is not None})


def holders(rows: Iterable[Row]) -> dict[str, Holder]:
    """From the rows of `holders`."""
    return {key: Holder(id_, State(state), created_at) for key, id_, state, created_at in rows}


def lock_holders(tx: Transactions, jobs: Iterable[NewJob | ImportRecord]) -> dict[str, Holder]:
    """Lock the unique keys of these jobs, and return the jobs that have them."""
    keys = keys_of(jobs)
    tx.lock_keys(keys)
    return tx.holders(keys)


class UniquePlan:
    """The jobs of an enqueue that are inserted. A job that a later job of the same call replaces is inserted too, in an earlier group."""

    def __init__(self, jobs: Sequence[NewJob], ids: Sequence[str], held: Mapping[str, Holder], *, now_ms: int) -> None:
        """`held`: the jobs that have the keys. Raises KeyTaken."""
        self.answer = Enqueued(ids)
        self._jobs = jobs
        self._ids = ids
        self._groups: list[list[int]] = [[]]  # indexes of jobs
        self._replaced: list[list[tuple[str, int]]] = [[]]  # an ID, and the index of the job that replaces it
        self._decide(dict(held), now_ms)

    @property
    def ids(self) -> list[str]:
        """The IDs of the inserted jobs."""
        return [self._ids[index] for index in self._inserted]

    @property
    def entering(self) -> Entering:
        """The inserted jobs, to find their dependencies."""
        jobs = [self._jobs[index] for index in self._inserted]
        skipped = {id_: self.answer[index] for index, id_ in enumerate(self._ids) if index in self.answer.duplicates}
        return Entering(jobs, self.ids, instead=skipped, replaced=frozenset(self.replaced))

    @property
    def replaced(self) -> list[str]:
        return [old for pairs in self._replaced for old, _ in pairs]

    def groups(self, seqs: Sequence[int]) -> list[InsertGroup]:
        """`seqs`: a sequence number for each inserted job, in the order of the call."""
        seq_of = dict(zip(self._inserted, seqs, strict=True))
        return [
            InsertGroup(
                [self._jobs[index] for index in indexes],
                [self._ids[index] for index in indexes],
                [seq_of[index] for index in indexes],
                [Replaced(old, self._ids[index], seq_of[index] - 1) for old, index in replaced],
            )
            for indexes, replaced in zip(self._groups, self._replaced, strict=True)
        ]

    @property
    def _inserted(self) -> list[int]:
        return sorted(index for indexes in self._groups for index in indexes)

    def _decide(self, held: dict[str, Holder], now_ms: int) -> None:
        group_of: dict[str, int] = {}  # of the jobs of this call that have a key
        duplicates = set()
        for index, (job, id_) in enumerate(zip(self._jobs, self._ids, strict=True)):
            group = 0
            if (key := job.unique_key) is not None:
                holder = held.get(key)
                what = decide_unique(job, holder, now_ms=now_ms)
                if holder is not None and what is UniqueAction.SKIP:
                    self.answer[index] = holder.id
                    duplicates.add(index)
                    continue
                if holder is not None and what is UniqueAction.REFUSE:
                    raise key_error(job, holder, place=index)
                if holder is not None and what is UniqueAction.REPLACE:
                    group = self._replace(holder.id, index, after=group_of.get(holder.id))
                held[key], group_of[id_] = Holder(id_, State.PENDING, now_ms), group
            self._groups[group].append(index)
        self.answer.duplicates = frozenset(duplicates)

    def _replace(self, old: str, index: int, *, after: int | None) -> int:
        """The group of the job at `index`."""
        group = 0 if after is None else after + 1
        if group == len(self._groups):
            self._groups.append([])
            self._replaced.append([])
        self._replaced[group].append((old, index))
        return group


def refuse_taken(records: Sequence[ImportRecord], held: Mapping[str, Holder]) -> None:
    """Raise KeyTaken if an imported job would be a second one that waits or runs with its key."""
    taken = dict(held)
    for record in records:
        if (key := record.unique_key) is None or State(record.state) in FINAL:
            continue
        if (holder := taken.get(key)) is not None and holder.is_open:
            hint = "of a key, one job waits or runs at a time; nothing was imported"
            raise KeyTaken(key, holder.id, holder.state, hint=hint, where=f"cannot import {record.id!r}")
        taken[key] = Holder(record.id, State(record.state), record.created_at)


def free_to_retry(jobs: Sequence[Subject], held: Mapping[str, Holder]) -> tuple[list[Subject], dict[str, KeyTaken]]:
    """The jobs that may be retried, and why the others may not: of several with one key, the first may."""
    free, taken = [], {}
    holder_of = dict(held)
    for job in jobs:
        if (key := job.unique_key) is not None:
            holder = holder_of.get(key)
            if holder is not None and holder.is_open and holder.id != job.id:
                taken[job.id] = retry_key_error(job.id, key, holder)
                continue
            holder_of[key] = Holder(job.id, State.PENDING, 0)
        free.append(job)
    return free, taken


# ── within a transaction ────────────────────────────────────────────────────────────────────────────────────────────


def subjects(tx: Transactions, ids: Sequence[str]) -> list[Subject]:
    """The jobs with these IDs, locked."""
    return [subject(row) for row in tx.all("standing", {"ids": tx.array(ids)})]


def replace(
    tx: Transactions, replaced: Iterable[Replaced], transitions: Transitions, *, now_ms: int, ageing: Ageing
) -> None:
    for old, new, last_seq in replaced:
        found = subjects(tx, [old])
        if any(job.state not in WAITING for job in found):
            # Claimed or cancelled since it was read: locking a key does not lock its job.
            raise TransactionConflict("", 0)
        cancel_waiting(tx, found, transitions, now_ms=now_ms, ageing=ageing, last_seq=last_seq, error=replaced_by(new))


def cancel_waiting(
    tx: Transactions,
    jobs: Sequence[Subject],
    transitions: Transitions,
    *,
    now_ms: int,
    ageing: Ageing,
    last_seq: int,
    error: str,
) -> None:
    rows = [
        {
            "seq": job.seq,
            "effective_priority": effective_priority(ageing, job.waited(now_ms), now_ms=now_ms, last_seq=last_seq),
        }
        for job in jobs
    ]
    tx.write_each("archive", [{"seq": job.seq} for job in jobs])
    tx.write_each("cancel_waiting", rows, now=now_ms, error=error)
    for job in jobs:
        transitions.add(job.queue, job.state, State.CANCELLED)
    tx.admit(sorted({(job.queue, job.key) for job in jobs if job.key is not None}))
