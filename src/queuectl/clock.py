"""The only module that asks for the time.

Two clocks, never mixed: the wall clock says *when* something happened and may jump; the monotonic clock says *how long*
something took and never does. Timeouts, leases and durations use the second one.
"""

from __future__ import annotations

import os
import time
from typing import Final, Protocol

TICK: Final = 1 / os.sysconf("SC_CLK_TCK")  # of the kernel's process table, in seconds
_TICK_NS: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall clock: milliseconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


class CancelEvent(Protocol):
    """The part of `threading.Event` that is used here, without importing threading."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float) -> bool: ...


class Cancelled(Exception):
    """The work is not needed any more: the client disconnected, or the thread was closed."""


class CancellableClock(SystemClock):
    """A clock whose `sleep` raises Cancelled when the client of its thread disconnects."""

    __slots__ = ("left",)

    def __init__(self, left: CancelEvent) -> None:
        self.left = left

    def sleep(self, seconds: float) -> None:  # type: ignore[override] # there it is a function of the module
        if self.left.wait(seconds):
            raise Cancelled


def boot_ticks() -> int:
    """Clock ticks since boot, the unit of process start times."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // _TICK_NS


def wall_ticks() -> int:
    """Clock ticks of the wall clock, for systems where process start times are wall clock times."""
    return time.time_ns() // _TICK_NS


def stamp(ms: int) -> str:
    """Format a time as `iso` does (ISO 8601, UTC, milliseconds, Z), without importing datetime."""
    seconds, rest = divmod(ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03d}Z"
