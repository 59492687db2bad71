"""The lines that we write between what jobs print.

Where the output of a run lies is recorded in the store (`log_from`, `log_to`), not recognized: a job may print lines that look like these
without effect.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from queuectl.clock import stamp
from queuectl.jobs.outcome import Ending

LOST: Final = b" bytes could not be written: "
MAX_MARKER_BYTES: Final = 8 * 1024  # far more than any: the name of a worker and a reason are short


def start_line(number: int, *, worker: str, now_ms: int) -> bytes:
    return f"--- START {_stamp(now_ms)} run={number} worker={worker} ---\n".encode()


def end_line(
    ending: Ending | None,
    *,
    exit_code: int | None,
    signal: int | None,
    error: str | None,
    duration: float | None,
    now_ms: int,
) -> bytes:
    how = _format_ending(ending, exit_code=exit_code, signal=signal, error=error)
    took = "" if duration is None else f" duration={duration:.3f}s"
    return f"--- END {_stamp(now_ms)} {how}{took} ---\n".encode(errors="replace")


def is_end_line(line: bytes) -> bool:
    """Whether it looks like one; a job may print such a line, too."""
    return line.startswith(b"--- END ") and line.endswith(b" ---\n")


def gap_line(count: int) -> bytes:
    """In place of output that the database does not have."""
    return b"--- %d bytes not kept ---\n" % count


def gone_line(count: int, limit: bytes) -> bytes:
    """In place of output that the log does not have any more. `limit`: as text."""
    return b"--- %d bytes of earlier output are gone (log-limit %b) ---\n" % (count, limit)


def lost_line(count: int, problem: str) -> bytes:
    """In place of output that could not be written."""
    return b"--- %d%b%b ---\n" % (count, LOST, problem.encode("utf-8", "replace"))


def is_lost_line(line: bytes) -> bool:
    """Whether it looks like one; a job may print such a line, too."""
    return line.startswith(b"--- ") and LOST in line and line.endswith(b" ---\n")


_stamp = lru_cache(maxsize=2)(stamp)  # several markers are written within a millisecond


def _format_ending(ending: Ending | None, *, exit_code: int | None, signal: int | None, error: str | None) -> str:
    match ending:
        case Ending.SIGNALLED:
            return f"signal={signal}"
        case Ending.UNSTARTABLE | None:
            return error or "unstartable"
        case Ending.COMPLETED | Ending.FAILED:
            return f"rc={exit_code}"
        case Ending.TIMEOUT | Ending.CANCELLED | Ending.RELEASED | Ending.LOST | Ending.RUNNING:
            return ending.value
