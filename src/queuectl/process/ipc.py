"""Messages between a worker and its supervisor: dictionaries of plain values, each behind its length, over a socket pair.

Neither end ever blocks: a supervisor that is stopped or stuck must not stop its worker. What the socket does not take is kept and sent
when it becomes writable. Both ends run the same interpreter, and nothing else can write to the socket: so `marshal` will do, which takes bytes
as they are. With JSON a job cost 15 µs more.

Runs are named by the tokens of their claims. To the supervisor:

    {"op": "environment", "variables": ["A=1"]}    the environment that most runs share, sent once
    {"op": "capacity", "runs": 8}                  how many runs without a fixed slot may exist at once
    {"op": "start", "runs": [{"token": …}, …]}     each is answered in `started`, once there is capacity for it
    {"op": "withdraw", "runs": [token]}            those that are not started yet are answered in `started`: they will not be
    {"op": "log_limit", "bytes": 67108864}
    {"op": "terminating", "runs": {token: "timeout"}}  the worker is about to send signals: keep the PIDs of these until `finish`
    {"op": "finish", "runs": [token]}              no process of these is left: close their logs and reap them
    {"op": "recorded", "runs": [token]}            the store has their ends: forget them
    {"op": "ping"}

To the worker, all in one object: `started`, `leaders` (first processes that have ended while their runs are being terminated),
`exited`, `output` (where the output of a run begins), `pong`, and `stays` if the supervisor outlives the worker.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import socket
from typing import Any, Final

_READ_SIZE: Final = 1 << 18
_LENGTH_BYTES: Final = 4
_VERSION: Final = 4  # of the format: since Python 3.4

Message = dict[str, Any]


class Disconnected(Exception):
    """The other end has closed the channel, or is dead."""


class Channel:
    """One end. Everything raises Disconnected."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._socket.setblocking(False)
        self._incoming = bytearray()
        self._outgoing = bytearray()

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def close_writing(self) -> None:
        """Send nothing more; the other end can still answer."""
        with contextlib.suppress(OSError):  # it was the first to close
            self._socket.shutdown(socket.SHUT_WR)

    def send_descriptor(self, descriptor: int) -> None:
        """Before the first message."""
        try:
            socket.send_fds(self._socket, [b"\n"], [descriptor])
        except OSError as exc:
            raise Disconnected from exc

    def receive_descriptor(self) -> int:
        """Wait for what `send_descriptor` sends."""
        self._socket.setblocking(True)
        try:
            _, descriptors, *_ = socket.recv_fds(self._socket, 1, 1)
        except OSError as exc:
            raise Disconnected from exc
        finally:
            self._socket.setblocking(False)
        if not descriptors:
            raise Disconnected
        os.set_inheritable(descriptors[0], False)  # Python 3.11 ignores the flag for it
        return descriptors[0]

    @property
    def has_outgoing(self) -> bool:
        return bool(self._outgoing)

    def send(self, message: Message) -> None:
        data = marshal.dumps(message, _VERSION)
        self._outgoing += len(data).to_bytes(_LENGTH_BYTES, "big") + data
        self.flush()

    def flush(self) -> None:
        """Send as much as the socket takes now."""
        try:
            while self._outgoing:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            pass  # continued when it is writable
        except OSError as exc:
            raise Disconnected from exc

    def receive(self) -> list[Message]:
        """The messages that have come since the last call."""
        is_open = True
        try:
            while data := self._socket.recv(_READ_SIZE):
                self._incoming += data
                if len(data) < _READ_SIZE:
                    break
            else:
                is_open = False
        except BlockingIOError:
            pass
        except OSError as exc:
            raise Disconnected from exc
        messages = self._parse()
        if not is_open and not messages:
            raise Disconnected
        return messages

    def _parse(self) -> list[Message]:
        """Take the complete messages out of what has come."""
        messages, at, data = [], 0, self._incoming
        while (begin := at + _LENGTH_BYTES) <= len(data):
            end = begin + int.from_bytes(data[at:begin], "big")
            if end > len(data):
                break
            messages.append(marshal.loads(data[begin:end]))  # noqa: S302 - from the other half of this program
            at = end
        del data[:at]
        return messages

    def wait(self, seconds: float) -> bool:
        """Wait until something can be received, at most this long. Returns whether it can."""
        watch = select.poll()
        watch.register(self._socket, select.POLLIN)
        return bool(watch.poll(seconds * 1000))
