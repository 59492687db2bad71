"""Calling jobs off and giving them another chance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from queuectl.clock import Clock
from queuectl.errors import JobNotFound, WrongState
from queuectl.job.lifecycle import WAITING, Event, State, states_that_take
from queuectl.queue.pick import Answer, find, for_each
from queuectl.store.protocol import Store

POLL: Final = 0.02
# How often to look whether the worker that should end a run has itself gone.
RESCUE_EVERY: Final = 0.5

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
) -> Answer:
    """Call jobs off. A running one is ended by its worker; this returns when it is so.

    `rescue` deals with the jobs of dead workers of this host: a cancel must not wait for somebody who is gone. `on_wait` is
    told, whenever that changes, which jobs are still being ended.
    """
    running: dict[str, int] = {}

    def call_off(job_id: str) -> None:
        before = store.cancel(job_id).before
        if before is State.PROCESSING:
            running[job_id] = store.get(job_id).runs
        elif before not in WAITING:
            raise WrongState(job_id, before, verb="cancel", hint="only a job that waits or runs can be cancelled")

    answer = for_each(store, refs, call_off)
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


def retry(store: Store, refs: Iterable[str]) -> Answer:
    """Back to pending, due now: jobs that failed, died or were cancelled."""
    return for_each(store, refs, lambda job_id: revive(store, job_id, states=REVIVABLE))


def revive(store: Store, job_id: str, *, states: frozenset[State]) -> None:
    before = store.revive([job_id], states=states).get(job_id)
    if before is None:
        raise JobNotFound(job_id)
    if before not in states:
        hint = _CANNOT_REVIVE.get(before, "queuectl retry takes failed and cancelled jobs too")
        raise WrongState(job_id, before, verb="retry", hint=hint)


def _unended(store: Store, running: Mapping[str, int]) -> dict[str, int]:
    """Of the runs that were to be cancelled those that are not over, whatever has become of the other jobs since."""
    return {
        job.id: job.runs
        for job in find(store, running).values()
        if job.state is State.PROCESSING and job.runs == running[job.id]
    }
