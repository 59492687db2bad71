"""The dead letter queue: the jobs in state `dead`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Final

from queuectl.errors import QueuectlError, WrongState
from queuectl.job.lifecycle import State
from queuectl.output.parents import remove_folders
from queuectl.queue import control
from queuectl.queue.pick import Answer, find, for_each, pick, refuse
from queuectl.store.protocol import Reads, Store

DEAD: Final = frozenset({State.DEAD})


def require_dead(store: Reads, ref: str) -> str:
    job = store.get(store.resolve(ref))
    if job.state is not State.DEAD:
        hint = f"queuectl show {job.id} shows a job in any state"
        raise WrongState(job.id, job.state, verb="show", where="from the DLQ", hint=hint)
    return job.id


def retry(store: Store, refs: Iterable[str], *, exact: bool = False) -> Answer:
    return control.retry(store, refs, states=DEAD, exact=exact)


def purge(store: Store, refs: Iterable[str], *, exact: bool = False) -> Answer:
    """Remove dead jobs with their history and logs."""

    def remove(ids: list[str]) -> Mapping[str, QueuectlError]:
        found = store.purge(ids)
        # The record goes first: a log without a job is litter, a job without its log would be a loss.
        for state, log in found.values():
            if state is State.DEAD and log is not None:
                remove_folders(log)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(log)
        before = {job_id: state for job_id, (state, _) in found.items()}
        return refuse(ids, before, able=DEAD, verb="purge", hint=_cannot_purge)

    return for_each(store, refs, remove, exact=exact)


def count_dead(store: Reads, refs: Iterable[str]) -> int:
    """How many of these are jobs that `purge` would remove."""
    return sum(job.state is State.DEAD for job in find(store, pick(store, refs).done).values())


def _cannot_purge(_: State) -> str:
    return "only dead jobs can be purged"
