"""The exit status for each branch of the tree of errors."""

from __future__ import annotations

from queuectl.cli.failure import Interrupted
from queuectl.errors import QueuectlError, UsageError, WaitTimeout

DONE = 0
REFUSED = 1
USAGE = 2
TIMED_OUT = 124
INTERRUPTED = 130  # 128 + SIGINT
BROKEN_PIPE = 141  # 128 + SIGPIPE: what a shell sees of a program that the signal ended


def exit_status(error: QueuectlError) -> int:
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, WaitTimeout):
        return TIMED_OUT
    if isinstance(error, Interrupted):
        return INTERRUPTED
    return REFUSED
