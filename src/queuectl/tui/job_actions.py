"""Actions on jobs: which states allow them, what they ask before, and what they report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from queuectl.client_bulk import Selection
from queuectl.jobs.model import Job
from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.operations import control
from queuectl.store.reads import Reads
from queuectl.store.types import Chosen, Filter
from queuectl.text import escape_control, plural
from queuectl.tui.session import Session


class Verb(NamedTuple):
    label: str
    done: str  # past participle
    about: str  # the effect, below the question
    able: frozenset[State]
    perform: Callable[[Selection], Mapping[str, Any]]
    asks: bool = False  # also for a single job; many always ask
    wants: Callable[[Chosen], bool] = lambda _: True  # whether a job in such a state would change


def _prune(jobs: Selection) -> Mapping[str, Any]:
    return {"done": [state for state, count in jobs.prune().items() for _ in range(count)], "refused": []}


VERBS: Final[Mapping[str, Verb]] = {
    "cancel": Verb(
        "Cancel",
        "cancelled",
        "Running jobs are killed. A retry starts from the beginning.",
        control.CANCELLABLE,
        Selection.cancel,
        asks=True,
    ),
    "retry": Verb("Retry", "retried", "Resets the error and the attempt count.", control.RETRYABLE, Selection.retry),
    "hold": Verb(
        "Hold",
        "held",
        "Workers do not claim held jobs until they are released.",
        WAITING,
        Selection.hold,
        wants=lambda job: not job.held,
    ),
    "release": Verb(
        "Release",
        "released",
        "Workers may claim the jobs again.",
        WAITING,
        Selection.release,
        wants=lambda job: job.held,
    ),
    "run-now": Verb(
        "Run now", "made due", "Skips the rest of the delay or backoff.", control.CLAIMABLE, Selection.run_now
    ),
    "purge": Verb(
        "Purge", "purged", "Also removes the history and logs. This cannot be undone.", FINAL, _prune, asks=True
    ),
}


class Affected(NamedTuple):
    """The jobs that an action would change, and those that it would skip, by state."""

    able: Mapping[State, int]
    skipped: Mapping[State, int]

    @property
    def total(self) -> int:
        return sum(self.able.values())


def restricted(where: Filter, states: frozenset[State]) -> Filter | None:
    """`where`, restricted to these states; None if none is left."""
    left = states & (where.states or states)
    return where._replace(states=left) if left else None


def count_affected(reads: Reads, where: Filter, verb: Verb) -> Affected:
    wanted = [state for state in State if not where.states or state in where.states]
    if where.ids:
        chosen = reads.choose(where)
        counts = {state: sum(job.state is state for job in chosen) for state in wanted}
    else:
        counts = {state: reads.count(where._replace(states=frozenset({state}))) for state in wanted}
    able = {state: count for state, count in counts.items() if state in verb.able and count}
    if (verb is VERBS["hold"] or verb is VERBS["release"]) and (fit := restricted(where, verb.able)) is not None:
        # The counters do not have the number of held jobs.
        changed = [job.state for job in reads.choose(fit) if verb.wants(job)]
        able = {state: changed.count(state) for state in able if state in changed}
    skipped = {state: count - able.get(state, 0) for state, count in counts.items() if count > able.get(state, 0)}
    return Affected(able, skipped)


def question(verb: Verb, affected: Affected) -> tuple[str, str]:
    """The question before an action on many jobs, and the text below it."""
    lines = [format_counts(affected.able)]
    if affected.skipped:
        lines.append(f"Skipped: {format_counts(affected.skipped)}")
    return f"{verb.label} {plural(affected.total, 'job')}?", "\n".join([*lines, "", verb.about])


def format_counts(counts: Mapping[State, int]) -> str:
    return ", ".join(f"{count:,} {state.value}" for state, count in counts.items())


def perform(session: Session, where: Filter, verb: Verb) -> str:
    """Act on all jobs that match, and return the message."""
    able = restricted(where, verb.able)
    result = verb.perform(session.selection(able)) if able is not None else {"done": [], "refused": []}
    text = f"{plural(len(result['done']), 'job')} {verb.done}"
    if refused := result["refused"]:
        text += f", {len(refused):,} refused: {refused[0]['message']}"
    return text


def perform_on(session: Session, job: Job, name: str) -> str:
    """Act on one job, and return the message. Raises the error if it is refused."""
    match name:
        case "cancel":
            session.cancel(job.id)
        case "retry":
            session.retry(job.id)
        case "hold":
            session.hold(job.id)
        case "release":
            session.release(job.id)
        case "run-now":
            session.run_now(job.id)
        case _:
            return perform(session, Filter(ids=(job.id,)), VERBS[name])
    return f"{VERBS[name].done} {job.id}"


def refusal(verb: Verb, job: Job) -> str | None:
    """Why an action that asks is not offered for a job."""
    if job.state in verb.able:
        return None
    return f"cannot {verb.label.lower()} {escape_control(job.id)}: it is {job.state.value}"
