"""Wait for wake-ups, as a sleeping worker does."""

from __future__ import annotations

import select

from queuectl.store.claims import Wakeup
from tests.wait import PATIENCE


def wakes(wakeup: Wakeup, within: float = PATIENCE) -> bool:
    """Whether a process that sleeps on it would wake up. A notification may have to come from another host."""
    ready, _, _ = select.select([wakeup], [], [], within)
    return bool(ready)


def drain(wakeup: Wakeup) -> bool:
    """Consume all wake-ups that were sent before this call. Whether there were any.

    `Wakeup.drain` is not enough: on PostgreSQL a notification may still be on its way, and would be taken for a later one.
    """
    has_any: bool = getattr(wakeup, "catch_up", wakeup.drain)()
    return has_any
