"""Ending runs that would go on: TERM to everything that belongs to them, a time of grace, then KILL.

A run that is being ended is over when its leader has ended *and* nothing of its family lives any more. Until then the
leader is not reaped: as a zombie it keeps its pid, and with it the number of the group, from being given out again.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterable
from typing import Final

from queuectl.process.protocol import Processes
from queuectl.process.table import Entry
from queuectl.worker.running import Running, Why

LOOK_EVERY: Final = 0.02


def begin_endings(runs: Collection[Running], why: Why, processes: Processes, *, now: float, grace: float) -> None:
    """Ask runs to end that are not being ended already: those keep their first reason."""
    for run in runs:
        run.why = why
        run.kill_at = run.look_at = now + grace
    processes.leave_ends([run.child for run in runs])
    members = [member for family in _families(runs, processes).values() for member in family]
    processes.send(signal.SIGTERM, members)
    processes.send(signal.SIGCONT, members)  # a stopped process would sleep through its TERM


def press_endings(runs: Iterable[Running], processes: Processes, *, now: float) -> set[int]:
    """Go on with what is being ended. Returns the slots of the runs of which nothing lives any more.

    Looks only where it matters: after the end of the leader, and once the grace is over.
    """
    due = [run for run in runs if run.why is not None and now >= run.look_at]
    for run in due:
        run.look_at = now + LOOK_EVERY
    families = _families(due, processes)
    for run in due:
        family = families[run.claim.token]
        # Also where nobody is seen: a look at the table misses who forks and ends while it is read.
        if now >= run.kill_at or not family:
            processes.kill_group(run.child)
        if now >= run.kill_at:
            processes.send(signal.SIGKILL, family)
    return {run.slot for run in due if not families[run.claim.token]}


def _families(runs: Collection[Running], processes: Processes) -> dict[str, list[Entry]]:
    return processes.families({run.claim.token: run.child for run in runs}) if runs else {}
