"""What can be done to jobs from a page: in which states, how it is called, and what takes it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from queuectl.errors import UnknownName
from queuectl.job.lifecycle import State
from queuectl.job.model import Job
from queuectl.job.nearest import nearest
from queuectl.queue.pick import Answer, find
from queuectl.store.protocol import Chosen
from queuectl.web.api.bulk import ACTIONS, ANY
from queuectl.web.desk import Desk
from queuectl.web.pages.notices import MOST_LINES, Notice
from queuectl.web.pages.wording import plural

MOST_UNDONE: Final = 100_000  # ids that are remembered for it


class Verb(NamedTuple):
    name: str  # as the API has it
    label: str
    done: str
    about: str
    # The verb that restores the jobs exactly. Verbs without one ask first. Retry has none: it resets the error and the
    # attempt count, and a worker may claim the job at once.
    undo: str | None = None
    is_grave: bool = False  # it kills or removes something

    @property
    def able(self) -> frozenset[State]:
        return ACTIONS[self.name].able

    @property
    def is_choosy(self) -> bool:
        """Whether a job can be in such a state and have nothing done to it: it is so already."""
        return ACTIONS[self.name].wants is not ANY

    def fits(self, job: Job) -> bool:
        """Whether it makes sense to offer it for this job."""
        return job.state in self.able and self.makes_a_difference(job)

    def makes_a_difference(self, job: Job | Chosen) -> bool:
        return ACTIONS[self.name].wants(job)


VERBS: Final[Mapping[str, Verb]] = {
    verb.name: verb
    for verb in (
        Verb("run-now", "Run now", "due now", "Make due now, without waiting for a delay or backoff."),
        Verb("retry", "Retry", "retried", "Requeue and start over: the error and the attempt count are reset."),
        Verb("hold", "Hold", "held", "Workers do not claim held jobs until they are released.", "release"),
        Verb("release", "Release", "released", "Let workers claim held jobs again.", "hold"),
        Verb(
            "cancel",
            "Cancel",
            "cancelled",
            "Running jobs are killed. A retry starts over from the beginning.",
            is_grave=True,
        ),
        Verb("purge", "Purge", "purged", "Remove with history and logs. This cannot be undone.", is_grave=True),
    )
}


def verb_of(name: str | None) -> Verb:
    if name is None or name not in VERBS:
        raise UnknownName("action", name or "", nearest=nearest(name or "", VERBS), known=list(VERBS))
    return VERBS[name]


def do_to_named(desk: Desk, verb: Verb, ids: Sequence[str], *, exact: bool = False) -> Notice:
    """Not to those that are so already: taking it back would take back what was done before."""
    known = find(desk.reads, ids)
    wanted = [one for one in ids if one not in known or verb.makes_a_difference(known[one])]
    return do(desk, verb, wanted, exact=exact)


def do(desk: Desk, verb: Verb, ids: Sequence[str], *, exact: bool = False) -> Notice:
    answer = ACTIONS[verb.name].do(desk, desk.open_store(), ids, exact) if ids else Answer([], [])
    return _tell(verb, answer)


def _tell(verb: Verb, answer: Answer) -> Notice:
    text = f"Job {answer.done[0]} {verb.done}" if len(answer.done) == 1 else f"{len(answer.done):,} jobs {verb.done}"
    lines = tuple(error.message for _, error in answer.refused[:MOST_LINES])
    if len(answer.refused) > len(lines):
        lines += (f"and {len(answer.refused) - len(lines):,} more",)
    if not answer.done:
        return Notice("refused", f"Nothing was {verb.done}" if lines else "There was nothing to do", lines)
    if lines:
        text += f", {plural(len(answer.refused), 'was refused', 'were refused')}"
    undo = None
    if verb.undo is not None and len(answer.done) <= MOST_UNDONE:
        undo = partial(_undo, VERBS[verb.undo], tuple(answer.done))
    return Notice("part" if lines else "done", text, lines, undo)


def _undo(verb: Verb, ids: tuple[str, ...], desk: Desk) -> Notice:
    return do(desk, verb, ids, exact=True)._replace(undo=None)
