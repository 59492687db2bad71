"""Several ids in one command: what can be done is done, and each refusal is kept with its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, NamedTuple

from queuectl.errors import Conflict, NotFound, QueuectlError
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


def for_each(store: Reads, refs: Iterable[str], act: Callable[[str], None]) -> Answer:
    """Resolve each ref and `act` on the job it names, once, whatever spellings of it were given.

    NotFound and Conflict refuse that one id; everything else that goes wrong ends the command.
    """
    tried: set[str] = set()
    answer = Answer([], [])
    for ref in refs:
        if ref in tried:
            continue
        tried.add(ref)
        try:
            job_id = store.resolve(ref)
            if job_id != ref and job_id in tried:
                continue
            tried.add(job_id)
            act(job_id)
        except (NotFound, Conflict) as error:
            answer.refused.append(Refusal(ref, error))
        else:
            answer.done.append(job_id)
    return answer


# As many ids as one question to a store names.
AT_ONCE: Final = 500


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
    return for_each(store, refs, lambda _: None)
