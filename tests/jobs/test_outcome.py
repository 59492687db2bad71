from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import (
    Cancelled,
    Ending,
    Exited,
    GivenBack,
    NotStarted,
    Outcome,
    Refused,
    Released,
    Settlement,
    Signalled,
    TimedOut,
    failure_text,
    settle,
    settle_abandoned,
    settle_lost,
)
from queuectl.jobs.retry import RetryPolicy
from queuectl.jobs.states import State

POLICY = RetryPolicy(max_ms=3_600_000, jitter=0.0)


def claim(
    *, attempts: int = 0, crashes: int = 0, max_retries: int = 3, first_is_free: bool = False, base: float = 2.0
) -> Claim:
    return Claim(
        seq=1,
        id="job",
        token="token",
        run=1,
        command="true",
        argv=None,
        queue="default",
        attempts=attempts,
        crashes=crashes,
        max_retries=max_retries,
        first_is_free=first_is_free,
        backoff_base=base,
        timeout_ms=None,
        cwd="/",
        env=None,
        log="/log",
    )


def end(held: Claim, outcome: Outcome) -> Settlement:
    return settle(held, outcome, policy=POLICY, chance=0.5)


FAILURES = [
    (Exited(1), Ending.FAILED, 1, None, "exit code 1"),
    (Exited(126), Ending.FAILED, 126, None, "exit code 126 (found, but not executable)"),
    (Exited(127), Ending.FAILED, 127, None, "exit code 127 (command not found)"),
    (Signalled(9), Ending.SIGNALLED, None, 9, "killed by signal 9 (SIGKILL)"),
    (Signalled(40), Ending.SIGNALLED, None, 40, "killed by signal 40"),
    (NotStarted("no such directory: /x"), Ending.UNSTARTABLE, None, None, "could not start: no such directory: /x"),
    (TimedOut(1_500, Signalled(15)), Ending.TIMEOUT, None, 15, "timeout after 1.5s"),
    (TimedOut(1_500, Exited(3)), Ending.TIMEOUT, 3, None, "timeout after 1.5s"),
]
NOT_COUNTED = [
    (Released(Signalled(15)), Ending.RELEASED, State.PENDING),
    (Released(Exited(1)), Ending.RELEASED, State.PENDING),
    (Released(None), Ending.RELEASED, State.PENDING),
    (Cancelled(Signalled(9)), Ending.CANCELLED, State.CANCELLED),
    (Cancelled(Exited(0)), Ending.CANCELLED, State.CANCELLED),
    (Cancelled(None), Ending.CANCELLED, State.CANCELLED),
]


def test_exit_code_0_completes_the_job() -> None:
    done = end(claim(attempts=1, crashes=1), Exited(0))
    assert (done.state, done.ending, done.exit_code, done.error) == (State.COMPLETED, Ending.COMPLETED, 0, None)
    assert (done.attempts, done.crashes) == (1, 1)


@pytest.mark.parametrize("outcome, ending, exit_code, signal, error", FAILURES)
def test_a_failure_counts_as_an_attempt_and_is_retried_after_the_backoff(
    outcome: Outcome, ending: Ending, exit_code: int | None, signal: int | None, error: str
) -> None:
    done = end(claim(attempts=1, crashes=1), outcome)
    assert (done.state, done.ending) == (State.FAILED, ending)
    assert (done.exit_code, done.signal, done.error) == (exit_code, signal, error)
    assert (done.attempts, done.crashes, done.retry_in_ms) == (2, 1, 4_000)


@pytest.mark.parametrize("outcome, ending, exit_code, signal, error", FAILURES)
def test_the_last_failure_makes_a_job_dead(
    outcome: Outcome, ending: Ending, exit_code: int | None, signal: int | None, error: str
) -> None:
    done = end(claim(attempts=2), outcome)
    assert (done.state, done.ending, done.attempts, done.retry_in_ms) == (State.DEAD, ending, 3, 0)
    assert (done.exit_code, done.signal, done.error) == (exit_code, signal, error)


@pytest.mark.parametrize("outcome, ending, state", NOT_COUNTED)
def test_a_run_that_the_worker_ended_does_not_count_as_an_attempt(
    outcome: Outcome, ending: Ending, state: State
) -> None:
    done = end(claim(attempts=2, crashes=1), outcome)
    assert (done.state, done.ending, done.attempts, done.crashes, done.retry_in_ms) == (state, ending, 2, 1, 0)
    assert done.error


@pytest.mark.parametrize("outcome", [TimedOut(1_000, Exited(0)), Cancelled(Exited(0)), Released(Exited(0))])
def test_a_terminated_job_never_shows_exit_code_0(outcome: Outcome) -> None:
    assert end(claim(), outcome).exit_code is None


@pytest.mark.parametrize(
    "max_retries, first_is_free, runs", [(3, False, 3), (1, False, 1), (0, False, 1), (3, True, 4), (0, True, 1)]
)
def test_a_job_that_always_fails_is_dead_after_its_runs(max_retries: int, first_is_free: bool, runs: int) -> None:
    held, states = claim(max_retries=max_retries, first_is_free=first_is_free), []
    while State.DEAD not in states:
        done = end(held, Exited(1))
        states.append(done.state)
        held = held._replace(attempts=done.attempts)
    assert states == [State.FAILED] * (runs - 1) + [State.DEAD]


def test_a_lost_run_counts_as_a_crash_and_not_as_an_attempt() -> None:
    done = settle_lost(claim(attempts=2, crashes=1), 3)
    assert (done.state, done.ending, done.attempts, done.crashes) == (State.PENDING, Ending.LOST, 2, 2)
    assert (done.exit_code, done.signal, done.error) == (None, None, "its worker died")


def test_a_job_that_keeps_crashing_its_worker_becomes_dead() -> None:
    done = settle_lost(claim(attempts=1, crashes=2), 3)
    assert (done.state, done.attempts, done.crashes) == (State.DEAD, 1, 3)
    assert done.error == "its worker died while it ran, 3 times"
    assert settle_lost(claim(), 1).error == "its worker died while it ran, 1 time"


@pytest.mark.parametrize(
    "unbegun, is_cancelled, ending, crashes",
    [((), False, Ending.LOST, 2), (("token",), False, None, 1), (("token",), True, Ending.CANCELLED, 1)],
)
def test_only_a_job_that_may_have_started_counts_the_crash_of_its_worker(
    unbegun: tuple[str, ...], is_cancelled: bool, ending: Ending | None, crashes: int
) -> None:
    done = settle_abandoned(claim(attempts=1, crashes=1), 3, unbegun, is_cancelled=is_cancelled)
    assert (done.ending, done.crashes, done.attempts) == (ending, crashes, 1)


@given(
    st.sampled_from([case[0] for case in (*FAILURES, *NOT_COUNTED)] + [Exited(0)]),
    st.integers(0, 1_000_000),
    st.integers(0, 1_000_000),
    st.booleans(),
    st.floats(1, 1e308),
)
def test_every_outcome_except_success_has_an_error_of_one_line(
    outcome: Outcome, attempts: int, max_retries: int, first_is_free: bool, base: float
) -> None:
    done = end(claim(attempts=attempts, max_retries=max_retries, first_is_free=first_is_free, base=base), outcome)
    assert (done.error is None) is (done.state is State.COMPLETED)
    assert done.error is None or (done.error and done.error.isprintable())
    assert 0 <= done.retry_in_ms <= POLICY.max_ms


def test_a_job_that_a_policy_rejects_is_dead_at_once_without_an_attempt() -> None:
    refused = end(claim(attempts=1, crashes=1), Refused("programs", "/bin/rm is not among them"))
    assert (refused.state, refused.ending) == (State.DEAD, None)
    assert (refused.attempts, refused.crashes) == (1, 1)
    assert refused.error == "refused by policy: programs: /bin/rm is not among them"


def test_a_job_that_was_released_before_it_started_has_no_run() -> None:
    done = settle(claim(), GivenBack("no slot"), policy=POLICY, chance=0.5)
    assert done.is_given_back
    assert (done.state, done.ending) == (State.PENDING, None)


def test_the_text_of_a_failure_has_what_is_known_about_it() -> None:
    assert failure_text("exit code 3", "no such table") == "exit code 3: no such table"
    assert failure_text("exit code 3", None) == "exit code 3"
    assert not failure_text(None, None)
