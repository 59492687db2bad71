"""Every (state, event) pair, driven through the store: what TRANSITIONS has moves, everything else touches no row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Cancelled, Exited, Refused, Released
from queuectl.jobs.states import TRANSITIONS, Event, State, after
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job, unknown_claim
from tests.store.backends import Backend
from tests.store.hands import BAD, OK, Hands

JOB = "the-job"


class Life:
    """One job, and its last claim."""

    def __init__(self, store: Store, worker: Hands, backend: Backend, clock: FakeClock) -> None:
        self.store = store
        self.worker = worker
        self.backend = backend
        self.clock = clock
        self.claim: Claim = unknown_claim(JOB)

    def enter(self, state: State, *, last_failure: bool) -> None:
        """Bring the job into `state`; `last_failure`: one more failed run, if there is one, is its last."""
        retries = 1 if last_failure or state is State.DEAD else 5
        self.store.enqueue([new_job(JOB, max_retries=retries if state is not State.FAILED else 5)])
        match state:
            case State.PENDING:
                return
            case State.BLOCKED:
                self.backend.force(JOB, state=State.BLOCKED, ready=0)
            case State.CANCELLED:
                self.store.cancel([JOB])
            case State.PROCESSING:
                self.claim = self.worker.claim_one()
            case State.COMPLETED:
                self.claim = self.worker.run(OK)
            case State.FAILED | State.DEAD:
                self.claim = self.worker.run(BAD)
                self.clock.advance(60)  # a retry is due,
                self.worker.exchange()  # and let in
        assert self.store.get(JOB).state is state

    def claim_it(self) -> None:
        self.worker.claim(9)

    def end_with(self, outcome: Exited | Refused | Released) -> None:
        self.worker.end(self.claim, outcome)

    def cancel(self) -> None:
        if self.store.cancel([JOB])[JOB].before is State.PROCESSING:
            self.worker.end(self.claim, Cancelled(None))

    def lose(self, max_crashes: int) -> None:
        self.store.claims.rescue(self.worker.name, max_crashes=max_crashes)

    def revive(self) -> None:
        self.store.retry([JOB], states=frozenset(State))


HAPPENINGS: Final[dict[Event, Callable[[Life], None]]] = {
    Event.CLAIM: Life.claim_it,
    Event.SUCCEED: lambda life: life.end_with(OK),
    Event.FAIL: lambda life: life.end_with(BAD),
    Event.EXHAUST: lambda life: life.end_with(BAD),
    Event.RELEASE: lambda life: life.end_with(Released(None)),
    Event.REFUSE: lambda life: life.end_with(Refused("shell", "none here")),
    Event.CANCEL: Life.cancel,
    Event.LOSE: lambda life: life.lose(max_crashes=99),
    Event.POISON: lambda life: life.lose(max_crashes=1),
    Event.RETRY: Life.revive,
}
# What happens to a job by what happens to another: see test_edges.py.
WITHOUT_A_VERB: Final = {Event.UNBLOCK, Event.ORPHAN, Event.REBLOCK}


@pytest.mark.parametrize("event", HAPPENINGS)
@pytest.mark.parametrize("state", State)
def test_an_event_moves_a_job_as_the_table_says_or_not_at_all(
    store: Store, worker: Hands, backend: Backend, clock: FakeClock, state: State, event: Event
) -> None:
    life = Life(store, worker, backend, clock)
    life.enter(state, last_failure=event is Event.EXHAUST)
    before = backend.rows(), backend.rows("runs"), backend.rows("moves")
    HAPPENINGS[event](life)
    expected = after(state, event)
    if expected is None:
        assert (backend.rows(), backend.rows("runs"), backend.rows("moves")) == before
    else:
        assert store.get(JOB).state is expected


def test_every_event_has_a_verb_or_a_reason_for_having_none() -> None:
    assert set(HAPPENINGS) | WITHOUT_A_VERB == set(Event)
    assert {event for _, event in TRANSITIONS} == set(Event)
