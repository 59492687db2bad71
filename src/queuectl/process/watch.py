"""Processes that were adopted: children of a keeper whose worker is gone.

That they have ended can be seen by anybody; how, only their keeper knows, and writes it into its ledger.
"""

from __future__ import annotations

import os
import select
from typing import Final, NamedTuple

from queuectl.clock import TICK, boot_ticks
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Exited, Signalled
from queuectl.jobs.resources import NO_REPORT, ResourceReport
from queuectl.process.ledger import EndBegun, Finish, Footprint, Identity, read_ledger
from queuectl.process.table import entry


class Child(NamedTuple):
    """A process that was made for a run: the leader of a session and a group of its own."""

    pid: int
    started: int


class Untold:
    """It has ended, and nobody can say how."""


UNTOLD: Final = Untold()
# A keeper writes at once. One that does not cannot, for the disk is full, or has told its worker, who was gone before it could settle.
PATIENCE: Final = 5.0


class Adoption(NamedTuple):
    """A run of a worker that is gone, to be looked after by another. `ledger`: where its keeper writes its end. `ending`: why that
    worker was about to end it, if it was. `may_be_closed`: its log, by one of those who looked after it or began to rescue it, and
    was gone before that could be recorded."""

    claim: Claim
    footprint: Footprint
    ledger: str
    worker: str
    ending: EndBegun | None = None
    may_be_closed: bool = False


class _Adopted(NamedTuple):
    token: str
    ledger: str
    pin: int | None  # a descriptor of the process; None: it has ended
    gone_at: int  # when we saw that it has, in clock ticks since boot


class Watch:
    """Becomes readable when one of them ends, or one of the descriptors that were added is."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._adopted: dict[Child, _Adopted] = {}
        self._finishes: dict[Child, Finish] = {}

    def __contains__(self, child: Child) -> bool:
        return child in self._adopted

    def fileno(self) -> int:
        return self._poll.fileno()

    def add(self, fd: int) -> None:
        self._poll.register(fd, select.EPOLLIN)

    def close(self) -> None:
        for child in list(self._adopted):
            self.forget(child)
        self._poll.close()

    @property
    def is_restless(self) -> bool:
        """Whether one has ended whose end its keeper has still to write, or we to ask for."""
        return any(adopted.pin is None for adopted in self._adopted.values())

    def adopt(self, child: Child, token: str, ledger: str) -> float:
        """Returns how many seconds ago it began, also if it has ended since. Raises OSError where that cannot be seen now."""
        pin = _pin(child)
        self._adopted[child] = _Adopted(token, ledger, pin, boot_ticks())
        if pin is not None:
            self._poll.register(pin, select.EPOLLIN)
        try:
            self._finish(child)
        except OSError:
            self.forget(child)
            raise
        return (boot_ticks() - child.started) * TICK

    def peek(self, child: Child) -> Exited | Signalled | Untold | None:
        adopted = self._adopted[child]
        if adopted.pin is not None:
            if not is_readable(adopted.pin):
                return None
            adopted = self._unpin(child)
        if finish := self._finish(child):
            return finish.how
        keeper = read_ledger(adopted.ledger).keeper
        if keeper is not None and is_there(keeper) and (boot_ticks() - adopted.gone_at) * TICK < PATIENCE:
            return None  # it is about to write
        finish = self._finish(child)  # it may have done so before it went
        return finish.how if finish else UNTOLD

    def lasted(self, child: Child) -> float | None:
        finish = self._finish(child)
        return None if finish is None else (finish.at - child.started) * TICK

    def log_to(self, child: Child) -> int | None:
        finish = self._finish(child)
        return None if finish is None else finish.log_to

    def spent(self, child: Child) -> ResourceReport:
        finish = self._finish(child)
        return NO_REPORT if finish is None else finish.spent

    def forget(self, child: Child) -> None:
        self._unpin(child)
        del self._adopted[child]
        self._finishes.pop(child, None)

    def _finish(self, child: Child) -> Finish | None:
        if child not in self._finishes:
            adopted = self._adopted[child]
            found = read_ledger(adopted.ledger).runs.get(adopted.token)
            if found is None or found.finish is None:
                return None
            self._finishes[child] = found.finish
        return self._finishes[child]

    def _unpin(self, child: Child) -> _Adopted:
        adopted = self._adopted[child]
        if adopted.pin is not None:
            self._poll.unregister(adopted.pin)
            os.close(adopted.pin)
            adopted = self._adopted[child] = adopted._replace(pin=None, gone_at=boot_ticks())
        return adopted


def is_readable(fd: int) -> bool:
    # Not select(), which cannot count beyond 1,023.
    look = select.poll()
    look.register(fd, select.POLLIN)
    return bool(look.poll(0))


def is_there(process: Child | Identity) -> bool:
    """Whether it lives: its number alone may be somebody else's by now."""
    found = entry(process.pid)
    return found is not None and found.started == process.started and not found.is_over


def _pin(child: Child) -> int | None:
    try:
        pin = os.pidfd_open(child.pid)
    except ProcessLookupError:
        return None
    try:
        is_same = is_there(child)  # looked at while the descriptor keeps the number from changing hands
    except OSError:
        os.close(pin)
        raise
    if is_same:
        return pin
    os.close(pin)
    return None
