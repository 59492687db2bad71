"""Runs of a dead worker that this worker has adopted. Their parent is the dead worker's supervisor, which writes their ends into its journal."""

from __future__ import annotations

import os
import select
import selectors
from typing import Final, NamedTuple

from queuectl.clock import TICK
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Exited, Signalled
from queuectl.process import tree
from queuectl.process.journal import Exit, Record, Termination, read_journal
from queuectl.process.model import Child
from queuectl.process.system import system


class UnknownExit:
    """The process has ended, and its supervisor did not record how."""


UNKNOWN_EXIT: Final = UnknownExit()
# A supervisor writes at once. One that does not has no space on its disk, or its worker died before it could record the end.
WRITE_TIMEOUT: Final = 5.0


class Adoption(NamedTuple):
    """A run to adopt. `journal`: the file in which its supervisor writes its end. `termination`: why its worker was terminating it."""

    claim: Claim
    record: Record
    journal: str
    worker: str
    termination: Termination | None = None


class _Adopted(NamedTuple):
    token: str
    journal: str
    pidfd: int | None  # None: it has ended, or there are no pidfds here
    ended_at: int | None  # when we noticed, in clock ticks


class AdoptedRuns:
    """Its descriptor becomes readable when one of them ends, or one of the descriptors that were added is readable."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._runs: dict[Child, _Adopted] = {}
        self._exits: dict[Child, Exit] = {}

    def __contains__(self, child: Child) -> bool:
        return child in self._runs

    def fileno(self) -> int:
        return self._selector.fileno()  # epoll and kqueue have one

    def add_source(self, fd: int) -> None:
        self._selector.register(fd, selectors.EVENT_READ)

    def remove_source(self, fd: int) -> None:
        self._selector.unregister(fd)

    def close(self) -> None:
        for child in list(self._runs):
            self.forget(child)
        self._selector.close()

    @property
    def needs_polling(self) -> bool:
        """Whether one has ended whose end is still to be written, or has no descriptor that reports it."""
        return any(run.pidfd is None for run in self._runs.values())

    def adopt(self, child: Child, token: str, journal: str) -> float:
        """Returns how many seconds ago it was started, also if it has ended since. Raises OSError if that cannot be seen now."""
        pidfd = system.open_pidfd(child)
        self._runs[child] = _Adopted(token, journal, pidfd, None)
        if pidfd is not None:
            self._selector.register(pidfd, selectors.EVENT_READ)
        try:
            self._exit(child)
        except OSError:
            self.forget(child)
            raise
        # Without /proc, start times are rounded to seconds.
        return max(0, system.now_ticks() - child.started) * TICK

    def poll(self, child: Child) -> Exited | Signalled | UnknownExit | None:
        """How it ended, None if it runs."""
        run = self._runs[child]
        if run.ended_at is None:
            is_running = not _is_readable(run.pidfd) if run.pidfd is not None else tree.is_running(child)
            if is_running:
                return None
            run = self._mark_ended(child)
        if ended := self._exit(child):
            return ended.how
        assert run.ended_at is not None
        supervisor = read_journal(run.journal).supervisor
        waited = (system.now_ticks() - run.ended_at) * TICK
        if supervisor is not None and tree.is_running(supervisor) and waited < WRITE_TIMEOUT:
            return None  # it is about to write
        ended = self._exit(child)  # it may have written before it died
        return ended.how if ended else UNKNOWN_EXIT

    def exit(self, child: Child) -> Exit | None:
        return self._exit(child)

    def duration(self, child: Child) -> float | None:
        ended = self._exit(child)
        return None if ended is None else max(0, ended.at - child.started) * TICK

    def forget(self, child: Child) -> None:
        self._mark_ended(child)
        del self._runs[child]
        self._exits.pop(child, None)

    def _exit(self, child: Child) -> Exit | None:
        if child not in self._exits:
            run = self._runs[child]
            found = read_journal(run.journal).runs.get(run.token)
            if found is None or found.exit is None:
                return None
            self._exits[child] = found.exit
        return self._exits[child]

    def _mark_ended(self, child: Child) -> _Adopted:
        run = self._runs[child]
        if run.pidfd is not None:
            self._selector.unregister(run.pidfd)
            os.close(run.pidfd)
        if run.ended_at is None:
            run = self._runs[child] = run._replace(pidfd=None, ended_at=system.now_ticks())
        return run


def _is_readable(fd: int) -> bool:
    watch = select.poll()  # not select(), which cannot count beyond 1,023
    watch.register(fd, select.POLLIN)
    return bool(watch.poll(0))
