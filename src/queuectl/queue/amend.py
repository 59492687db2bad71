"""Changing one's mind about jobs that wait, and doing the same once more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from queuectl.errors import InvalidInput, QueuectlError, StaleEdit
from queuectl.job.change import HOLD, RELEASE, RUN_NOW, Change
from queuectl.job.fields import MOST_PARENTS
from queuectl.job.graph import Dependency, EdgeState
from queuectl.job.hooks import Said, said_by
from queuectl.job.lifecycle import WAITING, Event, State, states_that_take
from queuectl.job.model import Job, iso
from queuectl.job.names import WEBHOOKS
from queuectl.job.newjob import NewJob
from queuectl.job.spec import Defaults, merge, validate
from queuectl.queue.pick import Answer, for_each, refuse
from queuectl.store.protocol import Filter, Reads, Store

CLAIMABLE: Final = frozenset(states_that_take(Event.CLAIM))


def edit(store: Store, refs: Iterable[str], change: Change, *, as_of: int | None = None, exact: bool = False) -> Answer:
    """`as_of`: when the job was last updated that somebody has looked at and decided about; one that has changed is refused.
    Of a call only the place in the line changes: what it says, and whom to, is nobody's to write but ours."""
    if change._replace(priority=None) != Change():
        return _amend(store, refs, change, verb="edit", as_of=as_of, exact=exact, calls=False)
    return _amend(store, refs, change, verb="edit", as_of=as_of, exact=exact)


def hold(store: Store, refs: Iterable[str], *, exact: bool = False) -> Answer:
    """No worker takes them until they are released."""
    return _amend(store, refs, HOLD, verb="hold", exact=exact)


def release(store: Store, refs: Iterable[str], *, exact: bool = False) -> Answer:
    return _amend(store, refs, RELEASE, verb="release", exact=exact)


def run_now(store: Store, refs: Iterable[str], *, exact: bool = False) -> Answer:
    """Due now, and no longer held."""
    return _amend(store, refs, RUN_NOW, verb="run", states=CLAIMABLE, exact=exact)


def _amend(
    store: Store,
    refs: Iterable[str],
    change: Change,
    *,
    verb: str,
    states: frozenset[State] = WAITING,
    as_of: int | None = None,
    exact: bool = False,
    calls: bool = True,
) -> Answer:
    def act(ids: list[str]) -> Mapping[str, QueuectlError]:
        # No job comes into that queue, or leaves it: what is seen here stays so.
        theirs = {} if calls else {job.id: _is_call(job, verb) for job in store.jobs(_calls_among(ids))}
        ids = [job_id for job_id in ids if job_id not in theirs]
        found = store.amend(ids, change, states=states, as_of=as_of) if ids else {}
        before = {job_id: answer.before for job_id, answer in found.items()}
        stale = {job_id: StaleEdit(job_id) for job_id, answer in found.items() if answer.is_stale}
        return {**theirs, **stale, **refuse(ids, before, able=states, verb=verb, hint=_cannot)}

    return for_each(store, refs, act, exact=exact)


def _calls_among(ids: list[str]) -> Filter:
    return Filter(ids=tuple(ids), queues=frozenset({WEBHOOKS}))


def _is_call(job: Job, verb: str) -> QueuectlError:
    problem = f"{WEBHOOKS} is for calls of webhooks only: cannot {verb} one"
    return InvalidInput(job.id, problem, hint="queuectl run-now, retry, hold and cancel do work on calls")


def _cannot(state: State) -> str:
    if state is State.BLOCKED:
        return "it waits for other jobs: queuectl graph shows them, queuectl cancel and then retry frees it from them"
    if state is State.PROCESSING:
        return "it is running now; queuectl cancel ends it"
    if state is State.COMPLETED:
        return "it has done its work; queuectl clone makes a new job of it"
    return "it has ended; queuectl clone makes a new job of it, queuectl retry gives it another chance"


def clone(reads: Reads, ref: str, changes: Mapping[str, object]) -> NewJob:
    """A new job with the same fields, but for `changes`. It has no past, an id of its own, and no unique key, which the other has;
    it is due when that one is, if that has a time of its own still to come, and waits for those jobs that that one still waits
    for."""
    job = reads.get(reads.resolve(ref))
    if job.queue == WEBHOOKS:
        raise _is_call(job, "clone")
    fields: dict[str, Any] = {"command": job.command, "argv": job.argv, "env": dict(job.env), "tags": list(job.tags)}
    if job.secrets:
        fields["secrets"] = list(job.secrets)
    if job.key is not None:
        fields["key"] = job.key
    if job.places is not None and "key" not in changes:  # they are places of that key
        fields["places"] = job.places
    if job.state is State.PENDING:
        fields["run_at"] = iso(job.run_at)
    if job.state is State.BLOCKED:
        links = reads.parents([job.id], limit=MOST_PARENTS)
        waiting = (
            Dependency(link.parent, link.when, link.otherwise) for link in links if link.state is EdgeState.WAITING
        )
        fields |= {"run_at": iso(job.run_at), "depends_on": [parent.to_json() for parent in waiting]}
    fields |= job.limits or {}
    if job.hooks:
        fields |= {f"on_{name}": url for name, (url, said) in job.hooks.items() if said == Said.JOB}
    of_job = Defaults(
        priority=job.priority,
        max_retries=job.max_retries,
        first_is_free=job.first_is_free,
        backoff_base=job.backoff_base,
        timeout_ms=job.timeout_ms,
        cwd=job.cwd,
        queue=job.queue,
        by_queue={job.queue: (None, None, None, said_by(Said.QUEUE, job.hooks), None)},
        urls=said_by(Said.CONFIG, job.hooks),
    )
    return validate(merge(fields, changes), of_job)
