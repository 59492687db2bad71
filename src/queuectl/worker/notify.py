"""Telling the service manager how we are: up, stopping, alive, and what we do, by systemd's protocol.

A datagram of NAME=value lines to the socket that $NOTIFY_SOCKET names. Written here and not taken from a library: it is one
`sendto`. Nothing that goes wrong with it is a reason for a worker to stop working.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

from queuectl import events
from queuectl.clock import Clock

# For the worker alone: a job that finds them would take the worker's words out of its mouth.
SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"
STATUS_EVERY: Final = 1.0  # at most: `systemctl status` is read by people


class Notifier:
    """A sink of events. `turn` is called by the loop before each sleep: a loop that hangs is silent, and that is its sense."""

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._address = _address(environ.get(SOCKET, ""))
        self._every = _every(environ) if self._address else None
        self._line: socket.socket | None = None
        self._beat_at = 0.0
        self._status_at = 0.0
        self._said = ""
        self._slots = 0
        self._serves = ""
        self._running: set[str] = set()
        self._done = 0
        self._state = ""

    @property
    def is_wanted(self) -> bool:
        return self._address is not None

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.JobStarted(claim, _) | events.JobAdopted(claim, _):
                self._running.add(claim.token)
            case events.JobEnded(claim, _, _):
                self._running.discard(claim.token)
                self._done += 1
            case events.JobLost(claim):
                self._running.discard(claim.token)
            case events.DeclaredLost():
                self._running.clear()
            case events.WorkerStarted(_, _, slots, queues):
                self._slots = slots
                self._serves = "all queues" if queues is None else f"queues {', '.join(queues)}"
            case events.WorkerResized(slots):
                self._slots = slots
            case events.WorkerStopping(_, now, _):
                self._state = "ending its jobs; " if now else "finishing; "
                self._send(f"STOPPING=1\nSTATUS={self._status()}")
            case events.StoreTrouble(problem, _):
                self._state = f"trouble: {' '.join(problem.split())}; "
            case events.StoreRecovered():
                self._state = ""
            case _:
                pass

    def ready(self) -> None:
        self._send(f"READY=1\nSTATUS={self._status()}")

    def turn(self) -> float | None:
        """Say that the loop turns, if it is time, and what it does. Returns in how many seconds to come again, at the latest."""
        if self._address is None:
            return None
        now = self._clock.monotonic()
        if self._every is not None and now >= self._beat_at:
            self._beat_at = now + self._every
            self._send("WATCHDOG=1")
        status = self._status()
        if status != self._said and now >= self._status_at:
            self._status_at = now + STATUS_EVERY
            self._said = status
            self._send(f"STATUS={status}")
        return None if self._every is None else max(0.0, self._beat_at - now)

    def _status(self) -> str:
        return f"{self._state}{len(self._running)} of {self._slots} slots busy, {self._done} runs done; serves {self._serves}"

    def _send(self, words: str) -> None:
        if self._address is None:
            return
        try:
            if self._line is None:
                self._line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
                self._line.setblocking(False)
            self._line.sendto(words.encode(errors="replace"), self._address)
        except OSError:
            pass  # a manager that does not listen will find out by itself, and the jobs go on


def _address(given: str) -> str | None:
    """A path, or a name in the kernel's own space. Anything else (a virtual machine's) is not for us."""
    if given.startswith("@"):
        return "\0" + given[1:]
    return given if given.startswith("/") else None


def _every(environ: Mapping[str, str]) -> float | None:
    """Twice as often as is asked for, so that one may be late. None: nobody waits for it, or for that of another process."""
    usec = environ.get(WATCHDOG, "")
    meant = environ.get(WATCHDOG_PID, str(os.getpid()))
    if not (usec.isascii() and usec.isdecimal()) or meant != str(os.getpid()):
        return None
    return int(usec) / 2_000_000 or None
