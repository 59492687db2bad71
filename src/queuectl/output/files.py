"""Writing a job's log: our frame around what the job prints.

The job writes into the file by itself, so nothing is copied and a job is never blocked by us. Where the output of a run
lies is recorded in the store (`log_from`, `log_to`): a job may print lines that look like ours without effect.
"""

from __future__ import annotations

import errno
import os

from queuectl.job.model import Claim, from_ms, iso
from queuectl.job.outcome import Ending
from queuectl.job.settle import Settlement


def begin_log(claim: Claim, *, worker: str, now_ms: int) -> tuple[int, int]:
    """Begin the log of the next run: a descriptor to hand to the job, and where its output begins. Raises OSError."""
    # The first run of a job begins a new file: a job of the same id may have left one behind before it was removed.
    fresh = os.O_TRUNC if claim.run == 1 else 0
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | fresh
    try:
        fd = os.open(claim.log, flags, 0o600)
    except FileNotFoundError:  # somebody tidied up our directory
        os.makedirs(os.path.dirname(claim.log), mode=0o700, exist_ok=True)
        fd = os.open(claim.log, flags, 0o600)
    try:
        start = f"--- START {iso(from_ms(now_ms))} run={claim.run} worker={worker} ---\n".encode()
        size = 0 if fresh else os.fstat(fd).st_size
        if os.write(fd, start) < len(start):  # the disk had room for a part of it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.close(fd)
        raise
    return fd, size + len(start)


def end_log(path: str, log_from: int, settlement: Settlement, *, duration: float | None, now_ms: int) -> int:
    """Close the frame of a run and return where its output ended. Raises OSError."""
    # Opened anew: a descriptor kept for each running job would set a limit to their number.
    fd = os.open(path, os.O_APPEND | os.O_RDWR)
    try:
        log_to = max(os.fstat(fd).st_size, log_from)
        text = f"--- END {iso(from_ms(now_ms))} {_how(settlement)}{_took(duration)} ---\n"
        # A frame begins at the beginning of a line, also where the job's last line has no end.
        lead = b"" if log_to == log_from or os.pread(fd, 1, log_to - 1) == b"\n" else b"\n"
        os.write(fd, lead + text.encode(errors="replace"))
    finally:
        os.close(fd)
    return log_to


def _how(settlement: Settlement) -> str:
    match settlement.ending:
        case Ending.SIGNALLED:
            return f"signal={settlement.signal}"
        case Ending.UNSTARTABLE:
            return settlement.error or "unstartable"
        case Ending.COMPLETED | Ending.FAILED:
            return f"rc={settlement.exit_code}"
        case Ending.TIMEOUT | Ending.CANCELLED | Ending.RELEASED | Ending.LOST | Ending.RUNNING:
            return settlement.ending.value


def _took(duration: float | None) -> str:
    return "" if duration is None else f" duration={duration:.3f}s"
