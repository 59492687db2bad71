"""How long jobs are kept after their end. Those that wait or run are kept, whatever is set."""

from __future__ import annotations

from queuectl.job.lifecycle import State
from queuectl.job.settings import Settings


def retention(settings: Settings) -> dict[State, int | None]:
    """For each final state, for how many milliseconds after the end; None: for ever."""
    return {
        State.COMPLETED: settings.retain_completed_ms,
        # Nobody waits for what was called off, and nothing has gone wrong with it.
        State.CANCELLED: settings.retain_completed_ms,
        State.DEAD: settings.retain_dead_ms,
    }
