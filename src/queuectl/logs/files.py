"""Writing a job's log: our frame around what the job prints.

Where the output of a run lies is recorded in the store (`log_from`, `log_to`): a job may print lines that look like ours
without effect.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from queuectl.logs.frames import end_line, is_end_line
from queuectl.logs.writing import Writing

if TYPE_CHECKING:  # a keeper, which starts with every worker, has no use for the rules
    from queuectl.jobs.outcome import Settlement


def begin_log(path: str, line: bytes, *, is_first: bool, limit: int, reader: int | None = None) -> Writing:
    """Begin the log of the next run with this line; behind it the output begins. `reader`: who may read it besides us.
    Raises OSError."""
    try:
        log = Writing(path, limit=limit, create=True)
    except FileNotFoundError:  # somebody tidied up our directory
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        log = Writing(path, limit=limit, create=True)
    try:
        # The first run of a job begins a new file: a job of the same id may have left one behind before it was removed.
        if is_first and log.size:
            log.empty()
        if reader is not None or log.is_shared:
            log.share(reader)
        log.append_line(line)
    except OSError:
        log.close()
        raise
    return log


def end_log(
    path: str,
    log_from: int,
    settlement: Settlement,
    *,
    duration: float | None,
    now_ms: int,
    limit: int,
    may_be_closed: bool = False,
) -> int:
    """Close the frame of a run and return where its output ended. Raises OSError.

    `may_be_closed`: by somebody who was gone before that could be recorded. Only then is such a line looked for.
    """
    with Writing(path, limit=limit) as log:
        log_to = max(log.size, log_from)
        if may_be_closed and is_end_line(last := log.last_line(log_to - log_from)):
            return log_to - len(last)
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


def end_lost_log(path: str, log_from: int, settlement: Settlement, *, now_ms: int, limit: int) -> int:
    """The same, of a run of which nobody knows how it ended, nor how long it took."""
    return end_log(path, log_from, settlement, duration=None, now_ms=now_ms, limit=limit, may_be_closed=True)
