"""Jobs with keys in PostgreSQL. Within a transaction, under the locks of the keys: see take_keys.sql."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from queuectl.job.lifecycle import WAITING, State
from queuectl.job.newjob import NewJob
from queuectl.job.rank import Ageing, effective_priority
from queuectl.job.unique import Holder, replaced_by
from queuectl.store.counting import Moves
from queuectl.store.entry import Replaced
from queuectl.store.postgres.base import admit
from queuectl.store.postgres.connection import SQL, Connection, Question
from queuectl.store.postgres.trouble import Clash
from queuectl.store.rows import Subject, subject
from queuectl.store.unique import Plan, holders, keys_of


def plan(db: Connection, jobs: Sequence[NewJob], ids: Sequence[str], *, now_ms: int) -> Plan:
    return Plan(jobs, ids, held(db, keys_of(jobs)), now_ms=now_ms)


def held(db: Connection, keys: Sequence[str]) -> dict[str, Holder]:
    """Takes the keys first."""
    if not keys:
        return {}
    db.ask(take_keys(keys))
    return holders_of(db, keys)


def holders_of(db: Connection, keys: Sequence[str]) -> dict[str, Holder]:
    """The keys are taken already."""
    return holders(db.all(SQL["holders"], {"keys": list(keys)})) if keys else {}


def take_keys(keys: Sequence[str]) -> Question:
    return Question(SQL["take_keys"], {"keys": list(keys)})


def replace(db: Connection, replaced: Iterable[Replaced], moves: Moves, *, now_ms: int, ageing: Ageing) -> None:
    for old, new, last_seq in replaced:
        found = subjects(db, [old])
        if any(job.state not in WAITING for job in found):
            # Claimed, or called off, since we looked: the lock of a key does not keep workers from its job.
            raise Clash(db.shown, 0)
        call_off(db, found, moves, now_ms=now_ms, ageing=ageing, last_seq=last_seq, error=replaced_by(new))


def subjects(db: Connection, ids: Sequence[str]) -> list[Subject]:
    return [subject(row) for row in db.all(SQL["standing"], {"ids": list(ids)})]


def call_off(
    db: Connection, jobs: Sequence[Subject], moves: Moves, *, now_ms: int, ageing: Ageing, last_seq: int, error: str
) -> None:
    """Cancel jobs that wait."""
    seqs = [job.seq for job in jobs]
    points = [effective_priority(ageing, job.waited(now_ms), now_ms=now_ms, last_seq=last_seq) for job in jobs]
    db.execute(SQL["archive"], {"seqs": seqs})
    db.execute(SQL["cancel_waiting"], {"seqs": seqs, "points": points, "now": now_ms, "error": error})
    for job in jobs:
        moves.add(job.queue, job.state, State.CANCELLED)
    if keys := sorted({(job.queue, job.key) for job in jobs if job.key is not None}):
        db.ask(*admit(keys))
