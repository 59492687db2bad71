"""From the rows of what is counted to numbers, the same for every dialect. Apart from counting.py, which `enqueue` loads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from queuectl.job.lifecycle import State
from queuectl.job.outcome import Ending
from queuectl.job.points import Counts
from queuectl.store.counting import OUTSIDE

Row = tuple[Any, ...]

_FAILED_ENDINGS: Final = {Ending.FAILED, Ending.TIMEOUT, Ending.SIGNALLED, Ending.UNSTARTABLE}


def tally_of(rows: Iterable[Row]) -> dict[str, dict[State, int]]:
    """From the columns of `tally`."""
    tally: dict[str, dict[State, int]] = {}
    for queue, state, jobs in rows:
        tally.setdefault(queue, dict.fromkeys(State, 0))[State(state)] = jobs
    return tally


def totals_of(moves: Iterable[Row]) -> dict[str, dict[str, int]]:
    """From the columns of `moves`."""
    totals: dict[str, dict[str, int]] = {}
    for queue, was, now, ending, jobs in moves:
        of = totals.setdefault(queue, dict.fromkeys(Counts._fields, 0))
        of["enqueued"] += jobs * (was == OUTSIDE)
        of["started"] += jobs * (now == State.PROCESSING)
        of["completed"] += jobs * (now == State.COMPLETED)
        of["dead"] += jobs * (now == State.DEAD)
        retried = (was, now) == (State.FAILED, State.PROCESSING) or (
            now == State.PENDING and was in (State.FAILED, State.DEAD, State.CANCELLED)
        )
        of["retried"] += jobs * retried
        of["failed"] += jobs * (ending in _FAILED_ENDINGS)
        of["rescued"] += jobs * (ending == Ending.LOST)
    return totals


def oldest_of(rows: Iterable[Row], *, now_ms: int) -> dict[str, int]:
    """For how long, from the columns of `oldest_waiting`."""
    return {queue: max(0, now_ms - since) for queue, since in rows}
