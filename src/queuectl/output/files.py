"""Writing a job's log: our frame around what the job prints.

Where the output of a run lies is recorded in the store (`log_from`, `log_to`): a job may print lines that look like ours
without effect.
"""

from __future__ import annotations

import os

from queuectl.job.model import Claim
from queuectl.job.settle import Settlement
from queuectl.output.frames import end_line, start_line
from queuectl.output.writing import Writing


def begin_log(claim: Claim, *, worker: str, now_ms: int, limit: int) -> int:
    """Begin the log of the next run, and return where its output begins. Raises OSError."""
    try:
        log = Writing(claim.log, limit=limit, create=True)
    except FileNotFoundError:  # somebody tidied up our directory
        os.makedirs(os.path.dirname(claim.log), mode=0o700, exist_ok=True)
        log = Writing(claim.log, limit=limit, create=True)
    with log:
        # The first run of a job begins a new file: a job of the same id may have left one behind before it was removed.
        if claim.run == 1 and log.size:
            log.empty()
        log.append_line(start_line(claim.run, worker=worker, now_ms=now_ms))
        return log.size


def end_log(
    path: str, log_from: int, settlement: Settlement, *, duration: float | None, now_ms: int, limit: int
) -> int:
    """Close the frame of a run and return where its output ended. Raises OSError."""
    with Writing(path, limit=limit) as log:
        log_to = max(log.size, log_from)
        line = end_line(
            settlement.ending,
            exit_code=settlement.exit_code,
            signal=settlement.signal,
            error=settlement.error,
            duration=duration,
            now_ms=now_ms,
        )
        log.append_line(line)
    return log_to
