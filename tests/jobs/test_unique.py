"""Unique jobs: decisions about a key that is in use."""

from __future__ import annotations

import pytest

from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.jobs.unique import Holder, UniqueAction, decide_unique, key_error, replaced_by, retry_key_error
from tests.factories import new_job
from tests.messages import assert_readable

NOW = 1_000_000
POLICIES = (None, "skip", "error", "replace")


def decided(
    if_exists: str | None, state: State | None, *, unique_for_ms: int | None = None, age: int = 0
) -> UniqueAction:
    new = new_job(unique_key="k", unique_for_ms=unique_for_ms, if_exists=if_exists)
    return decide_unique(new, None if state is None else Holder("a", state, NOW - age), now_ms=NOW)


@pytest.mark.parametrize("if_exists", POLICIES)
def test_a_key_without_a_holder_is_free(if_exists: str | None) -> None:
    assert decided(if_exists, None, unique_for_ms=1000) is UniqueAction.ADD


@pytest.mark.parametrize("if_exists", POLICIES)
@pytest.mark.parametrize("state", sorted(FINAL))
def test_the_key_of_a_job_that_has_ended_is_free(if_exists: str | None, state: State) -> None:
    assert decided(if_exists, state) is UniqueAction.ADD


@pytest.mark.parametrize("state", sorted(set(State) - FINAL))
def test_the_key_of_a_job_that_waits_or_runs_is_taken(state: State) -> None:
    assert decided(None, state, age=10**9) is decided("skip", state) is UniqueAction.SKIP
    assert decided("error", state) is UniqueAction.REFUSE


@pytest.mark.parametrize("state", sorted(WAITING))
def test_a_waiting_job_is_replaced(state: State) -> None:
    assert decided("replace", state) is UniqueAction.REPLACE


def test_a_running_job_is_not_replaced() -> None:
    assert decided("replace", State.PROCESSING) is UniqueAction.REFUSE


@pytest.mark.parametrize("state", sorted(FINAL))
@pytest.mark.parametrize(
    "if_exists, then", [("skip", UniqueAction.SKIP), ("error", UniqueAction.REFUSE), ("replace", UniqueAction.REFUSE)]
)
def test_within_unique_for_an_ended_job_keeps_its_key(state: State, if_exists: str, then: UniqueAction) -> None:
    assert decided(if_exists, state, unique_for_ms=1000, age=999) is then
    assert decided(if_exists, state, unique_for_ms=1000, age=1000) is UniqueAction.ADD


def test_after_unique_for_a_waiting_job_keeps_its_key() -> None:
    assert decided("skip", State.PENDING, unique_for_ms=1000, age=5000) is UniqueAction.SKIP


@pytest.mark.parametrize("if_exists, state", [("error", "pending"), ("replace", "processing"), ("replace", "dead")])
def test_the_error_names_the_key_the_job_and_what_to_do(if_exists: str, state: str) -> None:
    error = key_error(new_job(unique_key="k", if_exists=if_exists), Holder("a", State(state), NOW), place=3)
    assert_readable(error)
    assert error.message == f"the key 'k' is taken by the job 'a', which is {state}"
    assert (error.key, error.holder, error.state, error.place) == ("k", "a", state, 3)


def test_a_refused_retry_names_both_jobs() -> None:
    error = retry_key_error("old", "k", Holder("new", State.PROCESSING, NOW))
    assert_readable(error)
    assert error.message == "cannot retry 'old': the key 'k' is taken by the job 'new', which is processing"


def test_the_error_of_a_replaced_job_names_the_new_one() -> None:
    assert replaced_by("b") == "cancelled: replaced by b"
