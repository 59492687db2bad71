"""The dead letter queue: the jobs in state `dead`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from queuectl.errors import JobNotFound, WrongState
from queuectl.job.lifecycle import State
from queuectl.queue.control import revive
from queuectl.queue.pick import AT_ONCE, Answer, find, for_each, pick
from queuectl.store.protocol import Filter, Reads, Store

DEAD: Final = frozenset({State.DEAD})


def dead_ids(store: Reads) -> list[str]:
    """Every dead job, in the order they were enqueued; the line they go back to has the same order."""
    return [job.id for job in store.jobs(Filter(states=DEAD), descending=False)]


def require_dead(store: Reads, ref: str) -> str:
    job = store.get(store.resolve(ref))
    if job.state is not State.DEAD:
        hint = f"queuectl show {job.id} shows a job in any state"
        raise WrongState(job.id, job.state, verb="show", where="from the DLQ", hint=hint)
    return job.id


def retry(store: Store, refs: Iterable[str]) -> Answer:
    return for_each(store, refs, lambda job_id: revive(store, job_id, states=DEAD))


def retry_all(store: Store, ids: Iterable[str]) -> Answer:
    """The same for `dead_ids`: nothing has to be looked up, and who has left the DLQ meanwhile is no longer meant."""
    done: list[str] = []
    for some in _portions(ids):
        before = store.revive(some, states=DEAD)
        done += (job_id for job_id in some if before.get(job_id) is State.DEAD)
    return Answer(done, [])


def purge(store: Store, refs: Iterable[str]) -> Answer:
    """Remove dead jobs with their history and logs."""
    return for_each(store, refs, lambda job_id: _purge(store, job_id))


def purge_all(store: Store, ids: Iterable[str]) -> Answer:
    """As `retry_all`."""
    done: list[str] = []
    for some in _portions(ids):
        found = store.purge(some)
        gone = {job_id: log for job_id, (before, log) in found.items() if before is State.DEAD}
        _remove(gone.values())
        done += (job_id for job_id in some if job_id in gone)
    return Answer(done, [])


def count_dead(store: Reads, refs: Iterable[str]) -> int:
    """How many of these are jobs that `purge` would remove."""
    return sum(job.state is State.DEAD for job in find(store, pick(store, refs).done).values())


def _purge(store: Store, job_id: str) -> None:
    if (found := store.purge([job_id]).get(job_id)) is None:
        raise JobNotFound(job_id)
    before, log = found
    if before is not State.DEAD:
        raise WrongState(job_id, before, verb="purge", hint="only dead jobs can be purged")
    _remove([log])


def _remove(logs: Iterable[str | None]) -> None:
    # The record goes first: a log without a job is litter, a job without its log would be a loss.
    for log in logs:
        if log is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(log)


def _portions(ids: Iterable[str]) -> Iterator[list[str]]:
    """So many at a time that others, who wait for us to be done, wait for a moment only."""
    left = iter(ids)
    while some := list(islice(left, AT_ONCE)):
        yield some
