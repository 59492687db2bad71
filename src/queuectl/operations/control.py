"""Cancel, retry, edit, hold, release, clone and purge jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from queuectl.clock import Clock
from queuectl.errors import InvalidInput, QueuectlError, StaleEdit, WrongState
from queuectl.jobs.dependencies import Dependency, DependencyState
from queuectl.jobs.edit import HOLD, RELEASE, RUN_NOW, JobEdit
from queuectl.jobs.fields import MAX_PARENTS
from queuectl.jobs.model import BulkResult, Job
from queuectl.jobs.spec import Defaults, NewJob, merge_fields, validate
from queuectl.jobs.states import WAITING, Event, State, states_that_take
from queuectl.logs.parent_logs import remove_folders
from queuectl.logs.rotation import remove_log
from queuectl.operations.bulk import apply_to_each, find_jobs, find_refusals, resolve_ids
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.store.types import Filter
from queuectl.text import WEBHOOK_QUEUE
from queuectl.units import iso
from queuectl.webhooks.rules import Origin, urls_set_by

CANCEL_POLL_SECONDS: Final = 0.02
# How often to check whether the worker of a job being cancelled has died.
RESCUE_SECONDS: Final = 0.5

CANCELLABLE: Final = frozenset(states_that_take(Event.CANCEL))
RETRYABLE: Final = frozenset(states_that_take(Event.RETRY))
_CANNOT_RETRY: Final = {
    State.COMPLETED: "it is completed; queuectl clone makes a new job of it",
    State.PENDING: "it runs as soon as it is due and a worker is free",
    State.PROCESSING: "it is running now; queuectl cancel ends it",
    State.BLOCKED: "it waits for other jobs; queuectl cancel cancels it",
}


def cancel(
    store: Store,
    clock: Clock,
    refs: Iterable[str],
    *,
    rescue: Callable[[], None],
    on_wait: Callable[[Sequence[str]], None] = lambda _: None,
    exact: bool = False,
) -> BulkResult:
    """Cancel jobs. Running ones are terminated by their workers; returns when all have ended.

    `rescue` recovers the jobs of dead workers of this host, for which a cancel would wait forever. `on_wait` is called with the
    jobs that are still running, whenever their number changes.
    """
    running: dict[str, int] = {}
    done: set[str] = set()

    def cancel_batch(ids: list[str]) -> Mapping[str, QueuectlError]:
        before = {job_id: answer.before for job_id, answer in store.cancel(ids).items()}
        started = [job_id for job_id, state in before.items() if state is State.PROCESSING]
        running.update((job.id, job.runs) for job in find_jobs(store, started).values())
        refused = find_refusals(
            ids,
            before,
            able=CANCELLABLE,
            verb="cancel",
            hint=lambda _: "only a job that waits or runs can be cancelled",
        )
        return _without_children_of_done(store, ids, refused, done, DependencyState.BROKE)

    answer = apply_to_each(store, refs, cancel_batch, exact=exact)
    rescue_at, reported = clock.monotonic(), 0
    while running := _still_running(store, running):
        if len(running) != reported:
            reported = len(running)
            on_wait(list(running))
        if clock.monotonic() >= rescue_at:
            rescue()
            rescue_at = clock.monotonic() + RESCUE_SECONDS
        else:
            clock.sleep(CANCEL_POLL_SECONDS)
    return answer


def retry(
    store: Store, refs: Iterable[str], *, states: frozenset[State] = RETRYABLE, exact: bool = False
) -> BulkResult:
    """Requeue failed, dead and cancelled jobs, due now."""

    done: set[str] = set()

    def retry_batch(ids: list[str]) -> Mapping[str, QueuectlError]:
        before = store.retry(ids, states=states)
        refused = find_refusals(ids, before, able=states, verb="retry", hint=_retry_hint) | dict(before.taken)
        return _without_children_of_done(store, ids, refused, done, DependencyState.WAITING)

    return apply_to_each(store, refs, retry_batch, exact=exact)


def _without_children_of_done(
    store: Store, ids: Sequence[str], refused: dict[str, QueuectlError], done: set[str], caused_by: DependencyState
) -> dict[str, QueuectlError]:
    """The errors without those of jobs that an earlier batch has changed already, together with a parent. Adds to `done`."""
    before = len(done)
    done.update(job_id for job_id in ids if job_id not in refused)
    if not before or not refused:
        return refused
    links = [link for link in store.parents(list(refused), limit=MAX_PARENTS * len(refused)) if link.state is caused_by]
    followers = {link.child for link in links if link.parent in done}
    while more := {link.child for link in links if link.parent in followers} - followers:
        followers |= more
    done |= followers
    return {job_id: error for job_id, error in refused.items() if job_id not in followers}


def _retry_hint(before: State) -> str:
    return _CANNOT_RETRY.get(before, "queuectl retry accepts failed and cancelled jobs, too")


def _still_running(store: Store, running: Mapping[str, int]) -> dict[str, int]:
    """Those of the runs being cancelled that have not ended."""
    return {
        job.id: job.runs
        for job in find_jobs(store, running).values()
        if job.state is State.PROCESSING and job.runs == running[job.id]
    }


CLAIMABLE: Final = frozenset(states_that_take(Event.CLAIM))


def edit(
    store: Store, refs: Iterable[str], change: JobEdit, *, as_of: int | None = None, exact: bool = False
) -> BulkResult:
    """Change waiting jobs. `as_of`: the `updated_at` of the job that the user saw; a job that has changed since is refused.

    Of a webhook delivery only the priority can be changed.
    """
    if change._replace(priority=None) != JobEdit():
        return _edit(store, refs, change, verb="edit", as_of=as_of, exact=exact, accepts_webhooks=False)
    return _edit(store, refs, change, verb="edit", as_of=as_of, exact=exact)


def hold(store: Store, refs: Iterable[str], *, exact: bool = False) -> BulkResult:
    """Keep jobs from being claimed until they are released."""
    return _edit(store, refs, HOLD, verb="hold", exact=exact)


def release(store: Store, refs: Iterable[str], *, exact: bool = False) -> BulkResult:
    return _edit(store, refs, RELEASE, verb="release", exact=exact)


def run_now(store: Store, refs: Iterable[str], *, exact: bool = False) -> BulkResult:
    """Make jobs due now, and release them."""
    return _edit(store, refs, RUN_NOW, verb="run", states=CLAIMABLE, exact=exact)


def _edit(
    store: Store,
    refs: Iterable[str],
    change: JobEdit,
    *,
    verb: str,
    states: frozenset[State] = WAITING,
    as_of: int | None = None,
    exact: bool = False,
    accepts_webhooks: bool = True,
) -> BulkResult:
    def act(ids: list[str]) -> Mapping[str, QueuectlError]:
        # Jobs cannot be moved into or out of that queue, so this is not a race.
        deliveries = Filter(ids=tuple(ids), queues=frozenset({WEBHOOK_QUEUE}))
        webhooks = {} if accepts_webhooks else {job.id: _delivery_error(job, verb) for job in store.jobs(deliveries)}
        ids = [job_id for job_id in ids if job_id not in webhooks]
        found = store.edit(ids, change, states=states, as_of=as_of) if ids else {}
        before = {job_id: answer.before for job_id, answer in found.items()}
        stale = {job_id: StaleEdit(job_id) for job_id, answer in found.items() if answer.is_stale}
        return {**webhooks, **stale, **find_refusals(ids, before, able=states, verb=verb, hint=_edit_hint)}

    return apply_to_each(store, refs, act, exact=exact)


def _delivery_error(job: Job, verb: str) -> QueuectlError:
    problem = f"{WEBHOOK_QUEUE} is reserved for webhook deliveries: cannot {verb} one"
    return InvalidInput(job.id, problem, hint="queuectl run-now, retry, hold and cancel accept webhook deliveries")


def _edit_hint(state: State) -> str:
    if state is State.BLOCKED:
        return "it waits for other jobs: queuectl graph shows them, queuectl cancel and then retry frees it from them"
    if state is State.PROCESSING:
        return "it is running now; queuectl cancel ends it"
    if state is State.COMPLETED:
        return "it is completed; queuectl clone makes a new job of it"
    return "it has ended; queuectl clone makes a new job of it, queuectl retry runs it again"


def clone(reads: Reads, ref: str, changes: Mapping[str, object]) -> NewJob:
    """A new job with the same fields, except `changes`. It has no history, a new ID, and no unique key.

    It is due at the time of a pending original, and has the unfinished parents of a blocked one.
    """
    job = reads.get(reads.resolve(ref))
    if job.queue == WEBHOOK_QUEUE:
        raise _delivery_error(job, "clone")
    fields: dict[str, Any] = {"command": job.command, "argv": job.argv, "env": dict(job.env), "tags": list(job.tags)}
    if job.secrets:
        fields["secrets"] = list(job.secrets)
    if job.key is not None:
        fields["key"] = job.key
    if job.places is not None and "key" not in changes:  # a limit of the old key
        fields["places"] = job.places
    if job.state is State.PENDING:
        fields["run_at"] = iso(job.run_at)
    if job.state is State.BLOCKED:
        links = reads.parents([job.id], limit=MAX_PARENTS)
        waiting = (
            Dependency(link.parent, link.when, link.otherwise)
            for link in links
            if link.state is DependencyState.WAITING
        )
        fields |= {"run_at": iso(job.run_at), "depends_on": [parent.to_json() for parent in waiting]}
    fields |= job.limits or {}
    if job.hooks:
        fields |= {f"on_{name}": url for name, (url, origin) in job.hooks.items() if origin == Origin.JOB}
    of_job = Defaults(
        priority=job.priority,
        max_retries=job.max_retries,
        first_is_free=job.first_is_free,
        backoff_base=job.backoff_base,
        timeout_ms=job.timeout_ms,
        cwd=job.cwd,
        queue=job.queue,
        by_queue={job.queue: (None, None, None, urls_set_by(Origin.QUEUE, job.hooks), None)},
        urls=urls_set_by(Origin.CONFIG, job.hooks),
    )
    return validate(merge_fields(fields, changes), of_job)


DEAD: Final = frozenset({State.DEAD})


def require_dead(store: Reads, ref: str) -> str:
    job = store.get(store.resolve(ref))
    if job.state is not State.DEAD:
        hint = f"queuectl show {job.id} shows a job in any state"
        raise WrongState(job.id, job.state, verb="show", where="from the DLQ", hint=hint)
    return job.id


def retry_dead(store: Store, refs: Iterable[str], *, exact: bool = False) -> BulkResult:
    return retry(store, refs, states=DEAD, exact=exact)


def purge_dead(store: Store, refs: Iterable[str], *, exact: bool = False) -> BulkResult:
    """Remove dead jobs with their history and logs."""

    def remove(ids: list[str]) -> Mapping[str, QueuectlError]:
        found = store.purge(ids)
        # The row is removed first: a log without a job is harmless, a job without its log is a loss.
        for state, log in found.values():
            if state is State.DEAD and log is not None:
                remove_folders(log)
                remove_log(log)
        before = {job_id: state for job_id, (state, _) in found.items()}
        return find_refusals(ids, before, able=DEAD, verb="purge", hint=lambda _: "only dead jobs can be purged")

    return apply_to_each(store, refs, remove, exact=exact)


def count_dead(store: Reads, refs: Iterable[str]) -> int:
    """The number of jobs that `purge_dead` would remove."""
    return sum(job.state is State.DEAD for job in find_jobs(store, resolve_ids(store, refs).done).values())
