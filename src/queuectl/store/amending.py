"""The seam for changes to jobs that wait, and what they come to, the same for every dialect."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from queuectl.job.change import Change
from queuectl.job.lifecycle import WAITING, State
from queuectl.job.rank import Ageing, Standing, rank
from queuectl.store.ids import Ids
from queuectl.store.rows import Subject


class Amended(NamedTuple):
    """`before`: the state the job was, and is, in. `is_stale`: somebody else has changed it since."""

    before: State
    is_stale: bool


class Amendable(Protocol):
    def amend(
        self, ids: Ids, change: Change, *, states: frozenset[State] = WAITING, as_of: int | None = None
    ) -> dict[str, Amended]:
        """Change those that wait in one of `states`, in one transaction. Returns an answer for each job that there is; one that
        is stale, or in another state, stays as it is.

        Their place in the line is the one they would have, had they been enqueued so; of a job that has not run yet, a new
        time to run is also when it could first have run. With `as_of`, only those that were updated at that very moment.
        """
        ...


class NewPlace(NamedTuple):
    """Where a job stands after a change, and when it runs."""

    seq: int
    priority: int
    rank: int
    eligible_at: int
    run_at: int
    ready: bool
    held: bool


def new_place(job: Subject, change: Change, *, ageing: Ageing, now_ms: int) -> NewPlace:
    priority = job.standing.priority if change.priority is None else change.priority
    wanted = change.run_at(now_ms)
    run_at = job.run_at if wanted is None else wanted
    eligible_at = job.standing.eligible_ms if wanted is None or job.runs else run_at
    held = job.held if change.held is None else change.held
    # One that was let in stays so, also if the clock has been put back since.
    is_due = run_at <= now_ms or (job.ready and wanted is None)
    return NewPlace(
        seq=job.seq,
        priority=priority,
        rank=rank(ageing, Standing(priority, job.seq, eligible_at, job.standing.missed)),
        eligible_at=eligible_at,
        run_at=run_at,
        ready=is_due and not held and job.state is not State.BLOCKED,
        held=held,
    )


def new_rules(change: Change) -> dict[str, Any]:
    """What becomes the same for all of them: parameters of `amend`, null for what stays as it is."""
    return {
        "command": change.command,
        "argv": None if change.argv is None else json.dumps(change.argv),
        "queue": change.queue,
        "max_retries": change.max_retries,
        "first_is_free": change.first_is_free,
        "timeout_ms": change.timeout_ms,
        "secrets": None if change.secrets is None else json.dumps(change.secrets),
        "hooks": None if change.hooks is None else json.dumps(change.hooks),
        "limits": None if change.limits is None else json.dumps(change.limits),
    }


def is_amendable(job: Subject, states: frozenset[State], as_of: int | None) -> bool:
    return job.state in WAITING and job.state in states and as_of in (None, job.updated_at)


def amended(found: Sequence[Subject], as_of: int | None) -> dict[str, Amended]:
    return {job.id: Amended(job.state, is_stale=as_of not in (None, job.updated_at)) for job in found}
