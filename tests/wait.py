"""Wait for conditions, never for a fixed time. Tests sleep only here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

AT_MOST = 0.2
PATIENCE = 30.0  # seconds: a loaded host needs several for what takes milliseconds otherwise


def wait_until(
    condition: Callable[[], T], *, timeout: float = PATIENCE, every: float = 0.02, what: str = "the condition"
) -> T:
    """Return the value of `condition` as soon as it is true. Raise AssertionError with `what` after `timeout` seconds.

    A slow condition, such as a command, is evaluated less often, to leave the processors to other processes.
    """
    deadline = time.monotonic() + timeout
    while True:
        # Evaluated once more after the deadline, because the process may have been suspended.
        began = time.monotonic()
        late = began >= deadline
        if value := condition():
            return value
        if late:
            raise AssertionError(f"timeout after {timeout:g} s waiting for {what}; last value: {value!r}")
        time.sleep(max(every, min(2 * (time.monotonic() - began), AT_MOST)))


async def until(condition: Callable[[], object], *, what: str) -> None:
    """Like `wait_until`, for a test that runs in the event loop that it waits for."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"timeout after {PATIENCE:g} s waiting for {what}"
        await asyncio.sleep(0.02)
