"""A new job as a row, the same for every dialect. Apart from rows.py: `enqueue` needs nothing of what that one loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from queuectl.job.newjob import NewJob
from queuectl.job.rank import Ageing, Standing, rank

Row = tuple[Any, ...]


class Enqueued(list[str]):
    """The ids, in the order given. `duplicates` are the places of those whose job was there already, see job/unique.py."""

    duplicates: frozenset[int] = frozenset()


class Replaced(NamedTuple):
    id: str
    by: str
    last_seq: int  # the last one given out before the job that takes its place


class Wave(NamedTuple):
    """Jobs that come in together. Before them those in `replaced` are called off."""

    jobs: Sequence[NewJob]
    ids: Sequence[str]
    seqs: Sequence[int]
    replaced: Sequence[Replaced] = ()


def new_row(new: NewJob, *, seq: int, job_id: str, now_ms: int, ageing: Ageing) -> Row:
    """The parameters of `enqueue`, in its order."""
    if new.delay_ms is not None:
        run_at = now_ms + new.delay_ms
    else:
        run_at = max(now_ms, new.run_at_ms or 0)  # a time that has passed means now
    return (
        seq,
        job_id,
        new.command,
        None if new.argv is None else _json(new.argv),
        new.queue,
        run_at <= now_ms,
        new.priority,
        rank(ageing, Standing(new.priority, seq, run_at, 0)),
        run_at,
        run_at,
        new.max_retries,
        new.first_is_free,
        new.backoff_base,
        new.timeout_ms,
        new.cwd,
        _json(new.env) if new.env else None,
        _json(new.tags) if new.tags else "[]",
        new.unique_key,
        now_ms,
        now_ms,
        new.batch,
    )


def _json(value: object) -> str:
    import json  # here, since most jobs are one command, and it takes 2 ms to load

    return json.dumps(value)
