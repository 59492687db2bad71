"""Apply an action to several IDs: to all that allow it, with an error for each of the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Final

from queuectl.clock import SystemClock
from queuectl.errors import Conflict, JobNotFound, NotFound, QueuectlError, WrongState
from queuectl.jobs.model import BulkResult, Job, Refusal
from queuectl.jobs.states import State
from queuectl.store.reads import Reads
from queuectl.store.types import Filter

# IDs per query and transaction: small enough for other writers to wait only briefly.
BULK_BATCH_SIZE: Final = 500
# Between two transactions: other writers poll the lock of SQLite every 2 ms and would not get it otherwise.
BULK_PAUSE_SECONDS: Final = 0.005

BulkAction = Callable[[list[str]], Mapping[str, QueuectlError]]


def apply_to_each(
    store: Reads,
    refs: Iterable[str],
    act: BulkAction,
    *,
    exact: bool = False,
    rest: Callable[[float], None] = SystemClock.sleep,
) -> BulkResult:
    """Resolve each ref and call `act` with the IDs in batches, each ID once.

    `act` returns the IDs it refused with their errors. An exception ends the whole operation. `exact`: the refs are full IDs, not
    prefixes. `rest` pauses between two batches.
    """
    tried: set[str] = set()
    result = BulkResult([], [])
    left = iter(refs)
    while some := list(islice(left, BULK_BATCH_SIZE)):
        if tried:
            rest(BULK_PAUSE_SECONDS)
        meant: dict[str, str | QueuectlError] = {}
        for ref in some:
            if ref not in tried:
                tried.add(ref)
                job_id = ref if exact else _resolve(store, ref)
                if job_id == ref or job_id not in tried:
                    meant[ref] = job_id
                    tried.add(ref if isinstance(job_id, QueuectlError) else job_id)
        ids = [job_id for job_id in meant.values() if isinstance(job_id, str)]
        errors = act(ids) if ids else {}
        for ref, job_id in meant.items():
            error = job_id if isinstance(job_id, QueuectlError) else errors.get(job_id)
            if error is not None:
                result.refused.append(Refusal(ref, error))
            else:
                result.done.append(str(job_id))
    return result


def _resolve(store: Reads, ref: str) -> str | QueuectlError:
    try:
        return store.resolve(ref)
    except (NotFound, Conflict) as error:
        return error


def find_refusals(
    ids: Iterable[str], before: Mapping[str, State], *, able: Collection[State], verb: str, hint: Callable[[State], str]
) -> dict[str, QueuectlError]:
    """The errors of those `ids` that were in none of the `able` states `before` the action."""
    refused: dict[str, QueuectlError] = {}
    for job_id in ids:
        state = before.get(job_id)
        if state is None:
            refused[job_id] = JobNotFound(job_id)
        elif state not in able:
            refused[job_id] = WrongState(job_id, state, verb=verb, hint=hint(state))
    return refused


def find_jobs(store: Reads, ids: Iterable[str]) -> dict[str, Job]:
    """The jobs with exactly these IDs, in this order, without those that do not exist."""
    found: dict[str, Job] = {}
    left = iter(ids)
    while some := tuple(islice(left, BULK_BATCH_SIZE)):
        jobs = {job.id: job for job in store.jobs(Filter(ids=some))}
        found.update((job_id, jobs[job_id]) for job_id in some if job_id in jobs)
    return found


def resolve_ids(store: Reads, refs: Iterable[str]) -> BulkResult:
    """The full IDs of the jobs that exist."""
    return apply_to_each(store, refs, lambda _: {}, rest=lambda _: None)
