"""Making a process with a nice value of its own, by a thread that has it: a nice value is one of each thread, and passes on to
what that one makes. A thread that has become nicer may not become what it was, so there is one for each such process."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Final, TypeVar

Result = TypeVar("Result")

NICEST: Final = 19


def nicely(nice: int, do: Callable[[], Result]) -> Result:
    """Returns what `do` does. Raises RuntimeError where there is no room for another thread."""
    found: list[Result] = []

    def work() -> None:
        be_nicer(nice, threading.get_native_id())
        found.append(do())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    return found[0]


def be_nicer(nice: int, who: int = 0) -> None:
    """So much more than this process is; where that is less, and we may not, as it is."""
    wanted = os.getpriority(os.PRIO_PROCESS, os.getpid()) + nice
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, who, max(-NICEST - 1, min(NICEST, wanted)))
