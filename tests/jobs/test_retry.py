from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queuectl.jobs.retry import RetryPolicy, allowed_failures, backoff_ms
from queuectl.units import MAX_DURATION_MS

HOUR = 3_600_000
NO_JITTER = RetryPolicy(max_ms=HOUR, jitter=0.0)

bases = st.floats(1, 1e308)
attempts = st.integers(1, 2_000_000)
limits = st.integers(0, MAX_DURATION_MS)
chances = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    "base, attempts, ms",
    [(2, 1, 2_000), (2, 2, 4_000), (2, 3, 8_000), (2, 11, 2_048_000), (2, 12, HOUR), (1, 50, 1_000), (1.5, 2, 2_250)],
)
def test_a_retry_waits_base_to_the_power_of_attempts(base: float, attempts: int, ms: int) -> None:
    assert backoff_ms(base, attempts, policy=NO_JITTER, chance=0.5) == ms


@given(bases, attempts, limits, st.floats(0, 1), chances)
@example(2.0, 5_000, HOUR, 1.0, 0.999)
@example(1e308, 1_000_000, 0, 1.0, 0.999)
def test_a_backoff_is_between_zero_and_the_limit(
    base: float, attempts: int, limit: int, jitter: float, chance: float
) -> None:
    assert 0 <= backoff_ms(base, attempts, policy=RetryPolicy(limit, jitter), chance=chance) <= limit


@given(bases, attempts, limits)
def test_the_next_backoff_is_never_shorter(base: float, attempts: int, limit: int) -> None:
    policy = RetryPolicy(limit, 0.0)
    this, following = (backoff_ms(base, count, policy=policy, chance=0.5) for count in (attempts, attempts + 1))
    assert this <= following


@given(bases, attempts, limits, st.floats(0, 1), chances)
def test_jitter_stays_in_its_band(base: float, attempts: int, limit: int, jitter: float, chance: float) -> None:
    exact = backoff_ms(base, attempts, policy=RetryPolicy(limit, 0.0), chance=chance)
    drawn = backoff_ms(base, attempts, policy=RetryPolicy(limit, jitter), chance=chance)
    assert exact * (1 - jitter) - 1 <= drawn <= exact * (1 + jitter) + 1


def test_jitter_uses_its_whole_band() -> None:
    policy = RetryPolicy(HOUR, 0.5)
    assert [backoff_ms(2, 1, policy=policy, chance=chance) for chance in (0, 0.5, 1)] == [1_000, 2_000, 3_000]


@pytest.mark.parametrize(
    "max_retries, first_is_free, failures", [(3, False, 3), (1, False, 1), (0, False, 1), (3, True, 4), (0, True, 1)]
)
def test_a_job_is_dead_after_max_retries_failures(max_retries: int, first_is_free: bool, failures: int) -> None:
    assert allowed_failures(max_retries, first_is_free=first_is_free) == failures
