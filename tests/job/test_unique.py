"""What becomes of a job whose key another one has."""

from __future__ import annotations

import pytest

from queuectl.job.lifecycle import FINAL, WAITING, State
from queuectl.job.unique import Fate, Holder, fate, refusal, refused_retry, replaced_by
from tests.factories import new_job
from tests.job.said import assert_well_said

NOW = 1_000_000
POLICIES = (None, "skip", "error", "replace")


def decided(if_exists: str | None, state: State | None, *, unique_for_ms: int | None = None, age: int = 0) -> Fate:
    new = new_job(unique_key="k", unique_for_ms=unique_for_ms, if_exists=if_exists)
    return fate(new, None if state is None else Holder("a", state, NOW - age), now_ms=NOW)


@pytest.mark.parametrize("if_exists", POLICIES)
def test_a_key_that_nobody_has_is_free(if_exists: str | None) -> None:
    assert decided(if_exists, None, unique_for_ms=1000) is Fate.ADD


@pytest.mark.parametrize("if_exists", POLICIES)
@pytest.mark.parametrize("state", sorted(FINAL))
def test_the_key_of_a_job_that_has_ended_is_free(if_exists: str | None, state: State) -> None:
    assert decided(if_exists, state) is Fate.ADD


@pytest.mark.parametrize("state", sorted(set(State) - FINAL))
def test_the_key_of_a_job_that_waits_or_runs_is_taken(state: State) -> None:
    assert decided(None, state, age=10**9) is decided("skip", state) is Fate.SKIP
    assert decided("error", state) is Fate.REFUSE


@pytest.mark.parametrize("state", sorted(WAITING))
def test_a_job_that_waits_is_replaced(state: State) -> None:
    assert decided("replace", state) is Fate.REPLACE


def test_a_job_that_runs_is_not_replaced() -> None:
    assert decided("replace", State.PROCESSING) is Fate.REFUSE


@pytest.mark.parametrize("state", sorted(FINAL))
@pytest.mark.parametrize("if_exists, then", [("skip", Fate.SKIP), ("error", Fate.REFUSE), ("replace", Fate.REFUSE)])
def test_for_the_time_that_is_asked_for_the_end_of_a_job_changes_nothing(
    state: State, if_exists: str, then: Fate
) -> None:
    assert decided(if_exists, state, unique_for_ms=1000, age=999) is then
    assert decided(if_exists, state, unique_for_ms=1000, age=1000) is Fate.ADD


def test_a_time_that_is_over_does_not_free_the_key_of_a_job_that_waits() -> None:
    assert decided("skip", State.PENDING, unique_for_ms=1000, age=5000) is Fate.SKIP


@pytest.mark.parametrize("if_exists, state", [("error", "pending"), ("replace", "processing"), ("replace", "dead")])
def test_a_refusal_names_the_key_the_job_and_a_way_on(if_exists: str, state: str) -> None:
    error = refusal(new_job(unique_key="k", if_exists=if_exists), Holder("a", State(state), NOW), place=3)
    assert_well_said(error)
    assert error.message == f"the key 'k' is taken by the job 'a', which is {state}"
    assert (error.key, error.holder, error.state, error.place) == ("k", "a", state, 3)


def test_a_refused_retry_names_both_jobs() -> None:
    error = refused_retry("old", "k", Holder("new", State.PROCESSING, NOW))
    assert_well_said(error)
    assert error.message == "cannot retry 'old': the key 'k' is taken by the job 'new', which is processing"


def test_a_replaced_job_says_by_whom() -> None:
    assert replaced_by("b") == "cancelled: replaced by b"
