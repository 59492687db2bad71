"""Several ids in one command: what can be done is done, and each refusal is kept with its reason."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from queuectl.clock import SystemClock
from queuectl.errors import Conflict, JobNotFound, NotFound, QueuectlError, WrongState
from queuectl.job.lifecycle import State
from queuectl.job.model import Job
from queuectl.store.protocol import Filter, Reads


class Refusal(NamedTuple):
    id: str  # as it was given
    error: QueuectlError


class Answer(NamedTuple):
    """What became of the ids that a command was given, each at most once and in the order given."""

    done: list[str]
    refused: list[Refusal]

    def to_dict(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "refused": [{"id": ref, "code": error.code, "message": error.message} for ref, error in self.refused],
        }


# As many ids as one question to a store names, and one change: whoever waits for it to be done waits for a moment only.
AT_ONCE: Final = 500
# Between two changes: whoever else waits for SQLite's one lock asks for it every 2 ms, and would not get it before the last one.
PAUSE: Final = 0.005

Act = Callable[[list[str]], Mapping[str, QueuectlError]]


def for_each(
    store: Reads,
    refs: Iterable[str],
    act: Act,
    *,
    exact: bool = False,
    rest: Callable[[float], None] = SystemClock.sleep,
) -> Answer:
    """Resolve each ref and `act` on the jobs that they name, some at a time, each once, whatever spellings of it were given.

    `act` tells which it refused, and why. What is raised ends the command. `exact`: these are the ids of jobs that were there
    a moment ago, not to be taken for the beginnings of others if they are gone. `rest` lets others in between two times.
    """
    tried: set[str] = set()
    answer = Answer([], [])
    left = iter(refs)
    while some := list(islice(left, AT_ONCE)):
        if tried:
            rest(PAUSE)
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
                answer.refused.append(Refusal(ref, error))
            else:
                answer.done.append(str(job_id))
    return answer


def _resolve(store: Reads, ref: str) -> str | QueuectlError:
    try:
        return store.resolve(ref)
    except (NotFound, Conflict) as error:
        return error


def refuse(
    ids: Iterable[str], before: Mapping[str, State], *, able: Collection[State], verb: str, hint: Callable[[State], str]
) -> dict[str, QueuectlError]:
    """Of `ids` those that were in none of the `able` states `before` the store was told to `verb` them, and why that is."""
    refused: dict[str, QueuectlError] = {}
    for job_id in ids:
        state = before.get(job_id)
        if state is None:
            refused[job_id] = JobNotFound(job_id)
        elif state not in able:
            refused[job_id] = WrongState(job_id, state, verb=verb, hint=hint(state))
    return refused


def find(store: Reads, ids: Iterable[str]) -> dict[str, Job]:
    """The jobs with exactly these ids, in their order; one that there is not (any more) is left out."""
    found: dict[str, Job] = {}
    left = iter(ids)
    while some := tuple(islice(left, AT_ONCE)):
        jobs = {job.id: job for job in store.jobs(Filter(ids=some))}
        found.update((job_id, jobs[job_id]) for job_id in some if job_id in jobs)
    return found


def pick(store: Reads, refs: Iterable[str]) -> Answer:
    """The full ids of the jobs that there are."""
    return for_each(store, refs, lambda _: {}, rest=lambda _: None)
