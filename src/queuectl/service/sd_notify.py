"""The sd_notify protocol of systemd: readiness, status and watchdog.

A notification is a datagram of NAME=value lines to the socket in $NOTIFY_SOCKET. Errors are ignored: they must not stop a worker.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Final

from queuectl import events
from queuectl.clock import Clock

# Removed from the environment of jobs: a job must not send notifications for its worker.
SOCKET: Final = "NOTIFY_SOCKET"
WATCHDOG: Final = "WATCHDOG_USEC"
WATCHDOG_PID: Final = "WATCHDOG_PID"
STATUS_INTERVAL: Final = 1.0  # seconds between changes of the status text


class Notifier:
    """A sink of events. The worker's loop calls `turn` before each sleep, so that the watchdog detects a loop that hangs."""

    def __init__(self, environ: Mapping[str, str], clock: Clock) -> None:
        self._clock = clock
        self._address = _address(environ.get(SOCKET, ""))
        self._watchdog_interval = _watchdog_interval(environ) if self._address else None
        self._socket: socket.socket | None = None
        self._watchdog_at = 0.0
        self._status_at = 0.0
        self._sent_status = ""
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
            case events.JobEnded(claim):
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
                self._state = f"problem: {' '.join(problem.split())}; "
            case events.StoreRecovered():
                self._state = ""
            case _:
                pass

    def ready(self) -> None:
        self._send(f"READY=1\nSTATUS={self._status()}")

    def turn(self) -> float | None:
        """Send the watchdog signal and the status if they are due. Returns the seconds until the next call is needed."""
        if self._address is None:
            return None
        now = self._clock.monotonic()
        if self._watchdog_interval is not None and now >= self._watchdog_at:
            self._watchdog_at = now + self._watchdog_interval
            self._send("WATCHDOG=1")
        status = self._status()
        if status != self._sent_status and now >= self._status_at:
            self._status_at = now + STATUS_INTERVAL
            self._sent_status = status
            self._send(f"STATUS={status}")
        return None if self._watchdog_interval is None else max(0.0, self._watchdog_at - now)

    def _status(self) -> str:
        return f"{self._state}{len(self._running)} of {self._slots} slots busy, {self._done} runs done; serves {self._serves}"

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
                self._socket.setblocking(False)
            self._socket.sendto(message.encode(errors="replace"), self._address)
        except OSError:
            pass  # jobs matter more than notifications


def _address(given: str) -> str | None:
    """A path, or a name in the abstract namespace. Other kinds (vsock) are not supported."""
    if given.startswith("@"):
        return "\0" + given[1:]
    return given if given.startswith("/") else None


def _watchdog_interval(environ: Mapping[str, str]) -> float | None:
    """Half of the requested interval. None: there is no watchdog, or it is for another process."""
    usec = environ.get(WATCHDOG, "")
    pid = environ.get(WATCHDOG_PID, str(os.getpid()))
    if not (usec.isascii() and usec.isdecimal()) or pid != str(os.getpid()):
        return None
    return int(usec) / 2_000_000 or None
