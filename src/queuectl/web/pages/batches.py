"""The pages of batches: their progress, and one batch with its failures and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from queuectl.jobs.fingerprint import fingerprint
from queuectl.jobs.model import Job
from queuectl.jobs.states import FINAL, State
from queuectl.operations import wait as use
from queuectl.operations.pages import encode_cursor
from queuectl.operations.wait import NOT_COMPLETED, Progress
from queuectl.store.types import Filter
from queuectl.store_threads import WebSession
from queuectl.text import plural
from queuectl.units import from_ms
from queuectl.web.api.operation import read_cursor
from queuectl.web.pages.actions import VERBS, Verb
from queuectl.web.pages.jobs import table
from queuectl.web.pages.render import PageRequest, View, with_query

PAGE_SIZE: Final = 50
MAX_JOBS_SHOWN: Final = 20
MAX_FAILURES_READ: Final = 1_000  # the latest ones
MAX_GROUPS: Final = 20

# The parts of a progress bar, the finished ones first.
DRAWN: Final = (State.COMPLETED, State.DEAD, State.CANCELLED, State.PROCESSING, State.FAILED)


class Piece(NamedTuple):
    """A part of a progress bar that is 100 wide."""

    kind: str
    x: float
    width: float


class Failures(NamedTuple):
    """Failed jobs of a batch that failed in the same way."""

    fingerprint: str
    error: str  # of the newest
    last_output: str | None  # of the newest
    jobs: int
    newest: Job
    states: tuple[str, ...]


def show(session: WebSession, ask: PageRequest) -> View:
    text, match = ask.query.one("cursor"), ask.query.one("name") or ""
    after: tuple[int, str] | None = None
    if text is not None:
        at, name = read_cursor(text, int, str)
        after = (at, name)
    # One more than shown, to know whether there is another page.
    found = use.progress_page(session.reads, limit=PAGE_SIZE + 1, after=after, match=match)
    here = [("name", match)] if match else []
    next_url = None
    if len(found) > PAGE_SIZE:
        last = found[PAGE_SIZE - 1].batch
        next_url = with_query("/batches", [*here, ("cursor", encode_cursor([last.created_at, last.name]))])
    values: dict[str, Any] = {
        "batches": [_row(one) for one in found[:PAGE_SIZE]],
        "match": match,
        "next_url": next_url,
        "first_url": with_query("/batches", here) if text is not None else None,
    }
    return View("batches.html", "Batches", values)


def show_one(session: WebSession, ask: PageRequest) -> View:
    name = ask.param("name")
    found = use.progress(session.reads, name)
    jobs = Filter(batches=frozenset({name}))
    failed = list(
        session.reads.jobs(jobs._replace(states=frozenset({State.DEAD, State.FAILED})), limit=MAX_FAILURES_READ)
    )
    values: dict[str, Any] = {
        **_row(found),
        "counts": {state.value: jobs for state, jobs in found.batch.states.items()},
        "on_complete": found.batch.on_complete,
        "on_complete_job": found.batch.on_complete_job,
        "completed_at": None if found.batch.completed_at is None else from_ms(found.batch.completed_at),
        "failures": group_failures(failed)[:MAX_GROUPS],
        "most_read": MAX_FAILURES_READ if len(failed) == MAX_FAILURES_READ else None,
        **table(session.reads, (), ("batch", name)),
        "jobs": list(session.reads.jobs(jobs, limit=MAX_JOBS_SHOWN)),
        "actions": _actions(found),
    }
    return View("batch.html", f"Batch {name}", values)


class Offer(NamedTuple):
    """An action on the jobs of a batch in these states."""

    verb: Verb
    label: str
    states: list[str]


def _actions(found: Progress) -> list[Offer]:
    offers = []
    if found.batch.open:
        offers.append(Offer(VERBS["cancel"], "Cancel the batch", _able(VERBS["cancel"])))
    if ended := [(state, jobs) for state in NOT_COMPLETED if (jobs := found.batch.states[state])]:
        kinds = " and ".join(state.value for state, _ in ended)
        label = f"Retry {plural(sum(jobs for _, jobs in ended), f'{kinds} job')}"
        offers.append(Offer(VERBS["retry"], label, [state.value for state, _ in ended]))
    return offers


def _able(verb: Verb) -> list[str]:
    return [state.value for state in State if state in verb.action.able]


def _row(one: Progress) -> dict[str, Any]:
    batch = one.batch
    return {
        "name": batch.name,
        "jobs_added": batch.added,
        "done": one.done,
        "failed": one.failed,
        "running": one.running,
        "waiting": one.waiting,
        "removed": one.removed,
        "is_open": bool(batch.open),
        "rate": one.rate,
        "left_ms": one.left_ms,
        "took_ms": one.took_ms,
        "ended": [(state.value, batch.states[state]) for state in DRAWN if state in FINAL and batch.states[state]],
        "created_at": from_ms(batch.created_at),
        "percent": 100 * (batch.added - batch.open) // max(1, batch.added),
        "pieces": pieces({State.COMPLETED: one.done, **{s: batch.states[s] for s in DRAWN[1:]}}, batch.added),
    }


def pieces(counts: Mapping[State, int], total: int) -> list[Piece]:
    """The parts of a progress bar, in this order; the rest of the bar is waiting."""
    found, x = [], 0.0
    for state, jobs in counts.items():
        if jobs:
            width = min(100 - x, 100 * jobs / max(1, total))
            found.append(Piece(state.value, round(x, 2), round(width, 2)))
            x += width
    return found


def group_failures(jobs: Iterable[Job]) -> list[Failures]:
    """Groups of jobs that failed in the same way, the largest first. `jobs`: the newest first."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(fingerprint(job.state, job.error, job.last_output) or "", []).append(job)
    return sorted(
        (
            Failures(
                kind,
                of[0].error or "",
                of[0].last_output,
                len(of),
                of[0],
                tuple(sorted({job.state.value for job in of})),
            )
            for kind, of in groups.items()
        ),
        key=lambda group: -group.jobs,
    )
