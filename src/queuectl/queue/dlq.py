"""The dead letter queue: the jobs in state `dead`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Final

from queuectl.errors import WrongState
from queuectl.job.lifecycle import State
from queuectl.queue.control import revive
from queuectl.queue.pick import Answer, for_each
from queuectl.store.protocol import Filter, Reads, Store

DEAD: Final = frozenset({State.DEAD})


def dead_ids(store: Reads) -> list[str]:
    """Every dead job, in the order they were enqueued; the line they go back to has the same order."""
    return [job.id for job in store.jobs(Filter(states=DEAD), descending=False)]


def require_dead(store: Reads, ref: str) -> str:
    job = store.get(store.resolve(ref))
    if job.state is not State.DEAD:
        hint = f"queuectl show {job.id} shows a job in any state"
        raise WrongState(job.id, job.state, verb="show from the DLQ", hint=hint)
    return job.id


def retry(store: Store, refs: Iterable[str]) -> Answer:
    return for_each(store, refs, lambda job_id: revive(store, job_id, states=DEAD))


def purge(store: Store, refs: Iterable[str]) -> Answer:
    """Remove dead jobs with their history and logs."""
    return for_each(store, refs, lambda job_id: _purge(store, job_id))


def _purge(store: Store, job_id: str) -> None:
    before, log = store.purge(job_id)
    if before is not State.DEAD:
        raise WrongState(job_id, before, verb="purge", hint="only dead jobs can be purged")
    if log is not None:
        # The record goes first: a log without a job is litter, a job without its log would be a loss.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(log)
