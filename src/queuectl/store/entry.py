"""A new job as a row, the same for every dialect. Apart from rows.py: `enqueue` needs nothing of what that one loads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from queuectl.job.newjob import NewJob, PackedLimits, QueueDefaults
from queuectl.job.rank import Ageing, ByEnqueues, Standing, rank

Row = tuple[Any, ...]
Keys = Sequence[tuple[str, str]]  # queue and key


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


NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


def replacements(ids: Sequence[str], seqs: Sequence[int], replaced: Mapping[str, str]) -> list[Replaced]:
    """`replaced`: by the id of a job that comes in, which one has to make way for it."""
    return [Replaced(replaced[id_], id_, seq - 1) for id_, seq in zip(ids, seqs, strict=True) if id_ in replaced]


def beyond(jobs: Sequence[NewJob], per_key: Mapping[str, int]) -> set[int]:
    """Which of these, by their place, come behind so many of their key that they can stand aside from the beginning. `per_key`: the
    limit of each queue that has one. Who goes first of a key is for `admit` to say, which has to follow."""
    seen: Counter[tuple[str, str]] = Counter()
    found = set()
    for place, job in enumerate(jobs):
        limit = per_key.get(job.queue) if job.places is None else job.places
        if job.key is not None and limit is not None:
            seen[job.queue, job.key] += 1
            if seen[job.queue, job.key] > limit:
                found.add(place)
    return found


def shares_keys(jobs: Sequence[NewJob]) -> bool:
    """Whether two of these have one key in one queue: one alone is never too many."""
    keys = [(job.queue, job.key) for job in jobs if job.key is not None]
    return len(set(keys)) < len(keys)


def lined_up(jobs: Sequence[NewJob], ids: Sequence[str], blocked: Collection[str]) -> Sequence[NewJob]:
    """The same without the keys of those that are blocked: they are not in the line, and take nobody's place in it."""
    if not blocked:
        return jobs
    return [job._replace(key=None) if id_ in blocked else job for job, id_ in zip(jobs, ids, strict=True)]


def arrivals(jobs: Sequence[NewJob], ids: Sequence[str], blocked: Collection[str]) -> Iterator[tuple[str, str, int]]:
    """How many come into each queue in which state. `blocked`: the ids of those that wait for others."""
    waiting = Counter(job.queue for job, id_ in zip(jobs, ids, strict=True) if id_ in blocked) if blocked else {}
    for queue, count in Counter(job.queue for job in jobs).items():
        waits = waiting.get(queue, 0)
        if waits:
            yield queue, "blocked", waits
        if count > waits:
            yield queue, "pending", count - waits


def new_row(new: NewJob, *, seq: int, job_id: str, now_ms: int, ageing: Ageing, aside: bool = False) -> Row:
    """The parameters of `enqueue`, in its order. `aside`: others of its key come first, if its time has come."""
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
        new.key,
        aside and run_at <= now_ms,
        new.places,
        _json(new.hooks) if new.hooks else None,
        _json(new.limits) if new.limits else None,
        _json(new.secrets) if new.secrets else None,
    )


def new_rows(wave: Wave, *, now_ms: int, ageing: Ageing, aside: Collection[int]) -> Iterator[Row]:
    """Those of a whole wave. `aside`: the places of those that stand aside, see `beyond`."""
    # Most of a large wave are alike but for number, id and command, and so are their rows, unless the rank goes by the number.
    may_be_alike = not aside and not isinstance(ageing, ByEnqueues)
    others: Row | None = None
    row: Row = ()
    for place, (job, id_, seq) in enumerate(zip(wave.jobs, wave.ids, wave.seqs, strict=True)):
        if may_be_alike and job[1:] == others:
            yield (seq, id_, job[0], *row[3:])
            continue
        row, others = new_row(job, seq=seq, job_id=id_, now_ms=now_ms, ageing=ageing, aside=place in aside), job[1:]
        yield row


def tag_rows(wave: Wave) -> Iterator[Row]:
    """The parameters of `tag`, in its order."""
    return ((tag, seq) for job, seq in zip(wave.jobs, wave.seqs, strict=True) for tag in job.tags)


def batches_of(jobs: Sequence[NewJob]) -> list[tuple[str, int]]:
    """How many come to each batch. In one order for all, so that nobody waits for each other."""
    return sorted(Counter(job.batch for job in jobs if job.batch is not None).items())


def defaults_of(rows: Iterable[Row]) -> QueueDefaults:
    """From those of `queue_defaults`."""
    found = {}
    for name, priority, retries, timeout_ms, *urls, said in rows:
        success, failure, dead = urls
        found[name] = (priority, retries, timeout_ms, (success, failure, dead), _limits(said))
    return found


def _limits(said: str | None) -> PackedLimits | None:
    if said is None:
        return None
    import json  # as below

    limits: dict[str, int] = json.loads(said)
    return limits


def _json(value: object) -> str:
    import json  # here, since most jobs are one command, and it takes 2 ms to load

    return json.dumps(value)
