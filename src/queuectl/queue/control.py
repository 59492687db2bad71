"""Calling jobs off and giving them another chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from queuectl.clock import Clock
from queuectl.errors import QueuectlError
from queuectl.job.fields import MOST_PARENTS
from queuectl.job.graph import EdgeState
from queuectl.job.lifecycle import Event, State, states_that_take
from queuectl.queue.pick import Answer, find, for_each, refuse
from queuectl.store.protocol import Store

POLL: Final = 0.02
# How often to look whether the worker that should end a run has itself gone.
RESCUE_EVERY: Final = 0.5

CANCELLABLE: Final = frozenset(states_that_take(Event.CANCEL))
REVIVABLE: Final = frozenset(states_that_take(Event.REVIVE))
_CANNOT_REVIVE: Final = {
    State.COMPLETED: "it has done its work; enqueue it again to run it again",
    State.PENDING: "it runs as soon as it is due and a worker is free",
    State.PROCESSING: "it is running now; queuectl cancel ends it",
    State.BLOCKED: "it waits for other jobs; queuectl cancel calls it off",
}


def cancel(
    store: Store,
    clock: Clock,
    refs: Iterable[str],
    *,
    rescue: Callable[[], None],
    on_wait: Callable[[Sequence[str]], None] = lambda _: None,
    exact: bool = False,
) -> Answer:
    """Call jobs off. A running one is ended by its worker; this returns when it is so.

    `rescue` deals with the jobs of dead workers of this host: a cancel must not wait for somebody who is gone. `on_wait` is
    told, whenever that changes, which jobs are still being ended.
    """
    running: dict[str, int] = {}
    done: set[str] = set()

    def call_off(ids: list[str]) -> Mapping[str, QueuectlError]:
        before = {job_id: answer.before for job_id, answer in store.cancel(ids).items()}
        begun = [job_id for job_id, state in before.items() if state is State.PROCESSING]
        running.update((job.id, job.runs) for job in find(store, begun).values())
        refused = refuse(ids, before, able=CANCELLABLE, verb="cancel", hint=_cannot_cancel)
        return _without_followers(store, ids, refused, done, EdgeState.BROKE)

    answer = for_each(store, refs, call_off, exact=exact)
    rescue_at, told = clock.monotonic(), 0
    while running := _unended(store, running):
        if len(running) != told:
            told = len(running)
            on_wait(list(running))
        if clock.monotonic() >= rescue_at:
            rescue()
            rescue_at = clock.monotonic() + RESCUE_EVERY
        else:
            clock.sleep(POLL)
    return answer


def retry(store: Store, refs: Iterable[str], *, states: frozenset[State] = REVIVABLE, exact: bool = False) -> Answer:
    """Back to pending, due now: jobs that failed, died or were cancelled."""

    done: set[str] = set()

    def revive(ids: list[str]) -> Mapping[str, QueuectlError]:
        revived = store.revive(ids, states=states)
        refused = {**refuse(ids, revived, able=states, verb="retry", hint=_cannot_revive), **revived.taken}
        return _without_followers(store, ids, refused, done, EdgeState.WAITING)

    return for_each(store, refs, revive, exact=exact)


def _without_followers(
    store: Store, ids: Sequence[str], refused: dict[str, QueuectlError], done: set[str], edge: EdgeState
) -> dict[str, QueuectlError]:
    """Of many jobs, some at a time: those that were not to be had any more because a parent of theirs, done before, has taken
    them with it by such an edge are not refused. Adds to `done`."""
    before = len(done)
    done.update(job_id for job_id in ids if job_id not in refused)
    if not before or not refused:
        return refused
    links = [link for link in store.parents(list(refused), limit=MOST_PARENTS * len(refused)) if link.state is edge]
    followers = {link.child for link in links if link.parent in done}
    while more := {link.child for link in links if link.parent in followers} - followers:
        followers |= more
    done |= followers
    return {job_id: error for job_id, error in refused.items() if job_id not in followers}


def _cannot_cancel(_: State) -> str:
    return "only a job that waits or runs can be cancelled"


def _cannot_revive(before: State) -> str:
    return _CANNOT_REVIVE.get(before, "queuectl retry takes failed and cancelled jobs too")


def _unended(store: Store, running: Mapping[str, int]) -> dict[str, int]:
    """Of the runs that were to be cancelled those that are not over, whatever has become of the other jobs since."""
    return {
        job.id: job.runs
        for job in find(store, running).values()
        if job.state is State.PROCESSING and job.runs == running[job.id]
    }
