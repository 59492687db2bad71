"""The lines of ours around what a job prints: the same in a log that was written here and in one made up from the store."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from queuectl.clock import stamp
from queuectl.jobs.outcome import Ending

# No frame line comes near this: a worker's name and a reason are short.
LONGEST_FRAME: Final = 8 * 1024


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
    how = _how(ending, exit_code=exit_code, signal=signal, error=error)
    took = "" if duration is None else f" duration={duration:.3f}s"
    return f"--- END {_stamp(now_ms)} {how}{took} ---\n".encode(errors="replace")


def is_end_line(line: bytes) -> bool:
    """Whether it looks like one; a job may print such a line, too."""
    return line.startswith(b"--- END ") and line.endswith(b" ---\n")


def gap_line(count: int) -> bytes:
    """In the place of output that is not there (any more)."""
    return b"--- %d bytes not kept ---\n" % count


_stamp = lru_cache(maxsize=2)(stamp)  # several frames are written within a millisecond


def _how(ending: Ending | None, *, exit_code: int | None, signal: int | None, error: str | None) -> str:
    match ending:
        case Ending.SIGNALLED:
            return f"signal={signal}"
        case Ending.UNSTARTABLE | None:
            return error or "unstartable"
        case Ending.COMPLETED | Ending.FAILED:
            return f"rc={exit_code}"
        case Ending.TIMEOUT | Ending.CANCELLED | Ending.RELEASED | Ending.LOST | Ending.RUNNING:
            return ending.value
