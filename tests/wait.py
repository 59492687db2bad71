"""Waiting for a condition, never for a time: the only place where tests sleep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

AT_MOST = 0.2


def wait_until(
    condition: Callable[[], T], *, timeout: float = 20, every: float = 0.02, what: str = "the condition"
) -> T:
    """What `condition` gives as soon as that is true. Raises AssertionError, naming `what`, after `timeout` seconds.

    One that takes long to ask, as a command does, is asked less often: whoever waits leaves the processors to the others.
    """
    deadline = time.monotonic() + timeout
    while True:
        # Asked once more after the deadline: a machine that slept through it must not fail a test that has passed.
        began = time.monotonic()
        late = began >= deadline
        if value := condition():
            return value
        if late:
            raise AssertionError(f"waited {timeout:g} s in vain for {what}; last seen: {value!r}")
        time.sleep(max(every, min(2 * (time.monotonic() - began), AT_MOST)))


async def until(condition: Callable[[], object], *, what: str) -> None:
    """The same for a test that shares a loop with what it waits for."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, f"waited 20 s in vain for {what}"
        await asyncio.sleep(0.02)
