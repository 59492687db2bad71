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


class Bell(Protocol):
    """As an event of `threading`, which who has one thread need not load."""

    def set(self) -> None: ...
    def is_set(self) -> bool: ...
    def wait(self, timeout: float) -> bool: ...


class Left(Exception):
    """Nobody is there any more to go on for."""


class Leaving(SystemClock):
    """The clock of whoever works in a thread for somebody who may leave: then its sleep ends, and so do those who wait by it."""

    __slots__ = ("left",)

    def __init__(self, left: Bell) -> None:
        self.left = left

    def sleep(self, seconds: float) -> None:  # type: ignore[override] # there it is a function of the module
        if self.left.wait(seconds):
            raise Left


def boot_ticks() -> int:
    """Clock ticks since boot: what the kernel stamps a new process with, see process/table.py."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // _TICK_NS


def stamp(ms: int) -> str:
    """A moment as all times are written for programs: ISO 8601, UTC, milliseconds, Z. For whoever has no use for datetime, which
    takes long to load; others say `iso`."""
    seconds, rest = divmod(ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:03d}Z"
