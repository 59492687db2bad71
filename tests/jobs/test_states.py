from __future__ import annotations

import pytest

from queuectl.jobs.states import FINAL, TRANSITIONS, WAITING, Event, State, after, is_final, states_that_take


def test_only_a_retry_or_reblock_leaves_a_final_state() -> None:
    leaving = {(state, event) for state, event in TRANSITIONS if state in FINAL}
    assert leaving == {
        (State.DEAD, Event.RETRY),
        (State.CANCELLED, Event.RETRY),
        (State.CANCELLED, Event.REBLOCK),
    }


def test_no_event_leaves_completed() -> None:
    assert all(after(State.COMPLETED, event) is None for event in Event)


def test_every_state_waits_runs_or_is_final() -> None:
    assert WAITING | {State.PROCESSING} | FINAL == set(State)
    assert not WAITING & FINAL
    assert {state for state in State if is_final(state)} == FINAL


def test_a_claim_is_the_only_way_into_processing() -> None:
    assert {event for (_, event), to in TRANSITIONS.items() if to is State.PROCESSING} == {Event.CLAIM}
    assert set(states_that_take(Event.CLAIM)) == {State.PENDING, State.FAILED}


def test_everything_that_has_not_ended_can_be_cancelled() -> None:
    assert set(states_that_take(Event.CANCEL)) == set(State) - FINAL
    assert all(after(state, Event.CANCEL) is State.CANCELLED for state in states_that_take(Event.CANCEL))


def test_every_state_can_be_reached_and_every_event_can_happen() -> None:
    reached = {State.PENDING, State.BLOCKED}
    for _ in State:
        reached |= {to for (state, _), to in TRANSITIONS.items() if state in reached}
    assert reached == set(State)
    assert {event for _, event in TRANSITIONS} == set(Event)


@pytest.mark.parametrize("state", sorted(set(State) - {State.COMPLETED}))
def test_every_state_but_completed_leads_to_completed_in_the_end(state: State) -> None:
    reached = {state}
    for _ in State:
        reached |= {to for (before, _), to in TRANSITIONS.items() if before in reached}
    assert State.COMPLETED in reached


@pytest.mark.parametrize(
    "state, event, to",
    [
        (State.PENDING, Event.CLAIM, State.PROCESSING),
        (State.PROCESSING, Event.LOSE, State.PENDING),
        (State.PROCESSING, Event.RELEASE, State.PENDING),
        (State.FAILED, Event.RETRY, State.PENDING),
        (State.PENDING, Event.RETRY, None),
        (State.PROCESSING, Event.RETRY, None),
        (State.BLOCKED, Event.RETRY, None),
        (State.BLOCKED, Event.CLAIM, None),
    ],
)
def test_an_event_leads_to_a_state_or_is_impossible(state: State, event: Event, to: State | None) -> None:
    assert after(state, event) is to
