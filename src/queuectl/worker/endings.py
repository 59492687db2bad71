"""Ending runs that would go on: TERM to everything that belongs to them, a time of grace, then KILL.

A run that is being ended is over when its leader has ended *and* nothing of its family lives any more. Until then the
leader is not reaped: as a zombie it keeps its pid, and with it the number of the group, from being given out again.
"""

from __future__ import annotations

import signal
from typing import Final

from queuectl.process.spawn import Processes
from queuectl.worker.running import Running, Why

LOOK_EVERY: Final = 0.02


def begin_ending(run: Running, why: Why, processes: Processes, *, now: float, grace: float) -> None:
    """Ask a run to end. A run that is being ended already keeps its first reason."""
    if run.why is not None:
        return
    run.why = why
    run.kill_at = now + grace
    run.look_at = now + LOOK_EVERY
    processes.send(signal.SIGTERM, processes.family(run.child, run.claim.token))
    # A stopped process would sleep through its TERM.
    processes.send(signal.SIGCONT, processes.family(run.child, run.claim.token))


def press_ending(run: Running, processes: Processes, *, now: float) -> bool:
    """Go on with the ending of a run whose leader may have ended. True when nothing of its family lives any more."""
    if run.look_at is not None and now < run.look_at:
        return False
    family = processes.family(run.child, run.claim.token)
    if run.kill_at is not None and now >= run.kill_at:
        processes.send(signal.SIGKILL, family)
        family = processes.family(run.child, run.claim.token)
    run.look_at = now + LOOK_EVERY
    return not family
