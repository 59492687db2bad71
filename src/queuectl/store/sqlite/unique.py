"""Jobs with keys in a SQLite file. Within a transaction: the write lock keeps everybody else from the keys."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from queuectl.job.lifecycle import State
from queuectl.job.newjob import NewJob
from queuectl.job.rank import Ageing, effective_priority
from queuectl.job.unique import Holder, replaced_by
from queuectl.store.counting import Moves
from queuectl.store.entry import Replaced
from queuectl.store.rows import Subject, subject
from queuectl.store.sqlite.base import SQL
from queuectl.store.sqlite.connection import Connection
from queuectl.store.unique import Plan, holders, keys_of


def plan(db: Connection, jobs: Sequence[NewJob], ids: Sequence[str], *, now_ms: int) -> Plan:
    return Plan(jobs, ids, held(db, keys_of(jobs)), now_ms=now_ms)


def held(db: Connection, keys: Sequence[str]) -> dict[str, Holder]:
    return holders(db.all(SQL["holders"], {"keys": json.dumps(keys)})) if keys else {}


def replace(db: Connection, replaced: Iterable[Replaced], moves: Moves, *, now_ms: int, ageing: Ageing) -> None:
    for old, new, last_seq in replaced:
        found = subjects(db, [old])
        call_off(db, found, moves, now_ms=now_ms, ageing=ageing, last_seq=last_seq, error=replaced_by(new))


def subjects(db: Connection, ids: Sequence[str]) -> list[Subject]:
    return [subject(row) for row in db.all(SQL["standing"], {"ids": json.dumps(ids)})]


def call_off(
    db: Connection, jobs: Sequence[Subject], moves: Moves, *, now_ms: int, ageing: Ageing, last_seq: int, error: str
) -> None:
    """Cancel jobs that wait."""
    rows = []
    for job in jobs:
        shown = effective_priority(ageing, job.waited(now_ms), now_ms=now_ms, last_seq=last_seq)
        rows.append({"seq": job.seq, "now": now_ms, "effective_priority": shown, "error": error})
        moves.add(job.queue, job.state, State.CANCELLED)
    db.executemany(SQL["archive"], [(job.seq,) for job in jobs])
    db.executemany(SQL["cancel_waiting"], rows)
    keys = {(job.queue, job.key) for job in jobs if job.key is not None}
    db.executemany(SQL["admit"], [{"queue": queue, "key": key} for queue, key in sorted(keys)])
