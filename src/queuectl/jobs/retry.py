"""Exponential backoff: a failed job is retried after `base ** attempts` seconds, capped, with optional jitter."""

from __future__ import annotations

import math
from typing import NamedTuple


class RetryPolicy(NamedTuple):
    """The settings of the backoff; the base is a field of the job."""

    max_ms: int
    jitter: float  # 0 to 1: the delay is drawn from delay * [1 - jitter, 1 + jitter]


def backoff_ms(base: float, attempts: int, *, policy: RetryPolicy, chance: float) -> int:
    """The delay before the next run, in milliseconds. `chance` is uniform in [0, 1)."""
    # Compare logarithms first: 2.0 ** 5000 raises OverflowError, and the result would be capped anyway.
    if base > 1 and attempts * math.log(base) > math.log(max(policy.max_ms, 1) / 1000):
        delay = float(policy.max_ms)
    else:
        delay = base**attempts * 1000
    spread = 1 + policy.jitter * (2 * chance - 1)
    return min(policy.max_ms, round(delay * spread))


def allowed_failures(max_retries: int, *, first_is_free: bool) -> int:
    """The number of failed attempts after which a job is dead: at least one."""
    return max(1, max_retries + first_is_free)
