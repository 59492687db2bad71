"""Why is it not running yet? One line for whoever waits for a job."""

from __future__ import annotations

from queuectl.job.lifecycle import WAITING, State
from queuectl.job.model import from_ms, iso


def reason(
    state: State, *, run_at_ms: int, now_ms: int, attempts: int, allowed: int, held: bool, served: bool | None
) -> str | None:
    """What a waiting job waits for; None for a job that does not wait.

    `allowed` is the number of failed runs that makes it dead; `served` says whether a live worker serves its queue,
    None if nobody has looked.
    """
    if state not in WAITING:
        return None
    if state is State.BLOCKED:
        return "waits for other jobs"
    if held:
        return "held"
    if run_at_ms > now_ms:
        moment = iso(from_ms(run_at_ms))
        if state is State.FAILED:
            return f"retry at {moment}, attempt {attempts + 1} of {allowed}"
        return f"not due until {moment}"
    if served is False:
        return "no live worker serves its queue"
    return "waits for a free slot"
