"""Signal dispositions and the signal mask that this process hands on to the programs that it starts."""

from __future__ import annotations

import signal
from collections.abc import Sequence

# Python ignores these two itself and restores them in each program that it starts.
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def ignored_from_start() -> Sequence[int]:
    """The signals that our parent made us ignore, as nohup, cron and a shell with `trap ''` or `&` do."""
    numbers = signal.valid_signals() - set(_OF_PYTHON)
    return [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]


def start_programs_with_default_signals() -> None:
    """Give programs that this process starts default dispositions and an empty mask. Call it in the main thread.

    A handler becomes the default in a new program, an ignored signal stays ignored. So a handler that does nothing replaces
    the latter: this process still ignores the signal.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in ignored_from_start():
        signal.signal(number, lambda *_: None)
