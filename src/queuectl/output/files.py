"""Writing a job's log: our frame around what the job prints.

The job writes into the file by itself, so nothing is copied and a job is never blocked by us. Where the output of a run
lies is recorded in the store (`log_from`, `log_to`): a job may print lines that look like ours without effect.
"""

from __future__ import annotations

import errno
import os
import stat

from queuectl.job.model import Claim
from queuectl.job.settle import Settlement
from queuectl.output.frames import end_line, start_line


def begin_log(claim: Claim, *, worker: str, now_ms: int) -> tuple[int, int]:
    """Begin the log of the next run: a descriptor to hand to the job, and where its output begins. Raises OSError."""
    # Neither through a link, which may lead anywhere, nor waiting for a reader of something that is no file at all.
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(claim.log, flags, 0o600)
    except FileNotFoundError:  # somebody tidied up our directory
        os.makedirs(os.path.dirname(claim.log), mode=0o700, exist_ok=True)
        fd = os.open(claim.log, flags, 0o600)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        size = status.st_size
        # The first run of a job begins a new file: a job of the same id may have left one behind before it was removed.
        if claim.run == 1 and size:
            os.ftruncate(fd, 0)
            size = 0
        start = start_line(claim.run, worker=worker, now_ms=now_ms)
        if os.write(fd, start) < len(start):  # the disk had room for a part of it
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.close(fd)
        raise
    return fd, size + len(start)


def end_log(path: str, log_from: int, settlement: Settlement, *, duration: float | None, now_ms: int) -> int:
    """Close the frame of a run and return where its output ended. Raises OSError."""
    # Opened anew: a descriptor kept for each running job would set a limit to their number.
    fd = os.open(path, os.O_APPEND | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        log_to = max(os.fstat(fd).st_size, log_from)
        line = end_line(
            settlement.ending,
            exit_code=settlement.exit_code,
            signal=settlement.signal,
            error=settlement.error,
            duration=duration,
            now_ms=now_ms,
        )
        # A frame begins at the beginning of a line, also where the job's last line has no end.
        lead = b"" if log_to == log_from or os.pread(fd, 1, log_to - 1) == b"\n" else b"\n"
        os.write(fd, lead + line)
    finally:
        os.close(fd)
    return log_to
