"""What jobs with keys make of a batch, the same for every dialect: who comes in, who is there already, who is replaced."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from queuectl.errors import KeyTaken
from queuectl.job.lifecycle import FINAL, State
from queuectl.job.newjob import NewJob
from queuectl.job.record import Record
from queuectl.job.unique import Fate, Holder, fate, refusal, refused_retry
from queuectl.store.entry import Enqueued, Replaced, Wave
from queuectl.store.linking import Entering
from queuectl.store.rows import Subject

Row = tuple[Any, ...]


def keys_of(jobs: Iterable[NewJob | Record | Subject]) -> list[str]:
    """Each once, in an order that is the same for everybody."""
    return sorted({job.unique_key for job in jobs if job.unique_key is not None})


def holders(rows: Iterable[Row]) -> dict[str, Holder]:
    """From the rows of `holders`."""
    return {key: Holder(id_, State(state), created_at) for key, id_, state, created_at in rows}


class Plan:
    """Who of a batch comes in. A job that is replaced by a later one of its own batch comes in too, a wave before it."""

    def __init__(self, jobs: Sequence[NewJob], ids: Sequence[str], held: Mapping[str, Holder], *, now_ms: int) -> None:
        """`held`: who has the keys. Raises KeyTaken."""
        self.answer = Enqueued(ids)
        self._jobs = jobs
        self._ids = ids
        self._places: list[list[int]] = [[]]
        self._replaced: list[list[tuple[str, int]]] = [[]]  # an id, and the place of the job that replaces it
        self._decide(dict(held), now_ms)

    @property
    def ids(self) -> list[str]:
        """Of those that come in."""
        return [self._ids[place] for place in self._chosen]

    @property
    def entering(self) -> Entering:
        """Those that come in, for who is to wait for whom."""
        jobs = [self._jobs[place] for place in self._chosen]
        skipped = {id_: self.answer[place] for place, id_ in enumerate(self._ids) if place in self.answer.duplicates}
        return Entering(jobs, self.ids, instead=skipped, replaced=frozenset(self.replaced))

    @property
    def replaced(self) -> list[str]:
        return [old for pairs in self._replaced for old, _ in pairs]

    @property
    def given_ids(self) -> list[str]:
        """Of those that come in, the ids that somebody chose."""
        return [self._ids[place] for place in self._chosen if self._jobs[place].id is not None]

    def waves(self, seqs: Sequence[int]) -> list[Wave]:
        """With a sequence number for each that comes in, in the order of the batch."""
        seq_of = dict(zip(self._chosen, seqs, strict=True))
        return [
            Wave(
                [self._jobs[place] for place in places],
                [self._ids[place] for place in places],
                [seq_of[place] for place in places],
                [Replaced(old, self._ids[place], seq_of[place] - 1) for old, place in replaced],
            )
            for places, replaced in zip(self._places, self._replaced, strict=True)
        ]

    @property
    def _chosen(self) -> list[int]:
        return sorted(place for places in self._places for place in places)

    def _decide(self, held: dict[str, Holder], now_ms: int) -> None:
        wave_of: dict[str, int] = {}  # of those of this batch that have a key
        duplicates = set()
        for place, (job, id_) in enumerate(zip(self._jobs, self._ids, strict=True)):
            wave = 0
            if (key := job.unique_key) is not None:
                holder = held.get(key)
                what = fate(job, holder, now_ms=now_ms)
                if holder is not None and what is Fate.SKIP:
                    self.answer[place] = holder.id
                    duplicates.add(place)
                    continue
                if holder is not None and what is Fate.REFUSE:
                    raise refusal(job, holder, place=place)
                if holder is not None and what is Fate.REPLACE:
                    wave = self._replace(holder.id, place, after=wave_of.get(holder.id))
                held[key], wave_of[id_] = Holder(id_, State.PENDING, now_ms), wave
            self._places[wave].append(place)
        self.answer.duplicates = frozenset(duplicates)

    def _replace(self, old: str, place: int, *, after: int | None) -> int:
        """The wave of the job at `place`."""
        wave = 0 if after is None else after + 1
        if wave == len(self._places):
            self._places.append([])
            self._replaced.append([])
        self._replaced[wave].append((old, place))
        return wave


def refuse_taken(records: Sequence[Record], held: Mapping[str, Holder]) -> None:
    """Raise KeyTaken if one of these would be a second that waits with its key."""
    taken = dict(held)
    for record in records:
        if (key := record.unique_key) is None or State(record.state) in FINAL:
            continue
        if (holder := taken.get(key)) is not None and holder.is_open:
            hint = "of a key, one job waits or runs at a time; nothing was imported"
            raise KeyTaken(key, holder.id, holder.state, hint=hint, where=f"cannot import {record.id!r}")
        taken[key] = Holder(record.id, State(record.state), record.created_at)


def free_to_revive(jobs: Sequence[Subject], held: Mapping[str, Holder]) -> tuple[list[Subject], dict[str, KeyTaken]]:
    """Those of these jobs that may wait again, and why the others may not: of several with one key, the first may."""
    free, taken = [], {}
    holder_of = dict(held)
    for job in jobs:
        if (key := job.unique_key) is not None:
            holder = holder_of.get(key)
            if holder is not None and holder.is_open and holder.id != job.id:
                taken[job.id] = refused_retry(job.id, key, holder)
                continue
            holder_of[key] = Holder(job.id, State.PENDING, 0)
        free.append(job)
    return free, taken
