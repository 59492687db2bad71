"""Messages between a worker and its keeper: both ends are ours, and of the same Python."""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import socket
from typing import Any, Final

_HEAD: Final = 4
_AT_ONCE: Final = 1 << 18


class HungUp(Exception):
    """There is nobody at the other end (any more)."""


class Wire:
    """One end."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._left = b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def hang_up(self) -> None:
        """Nothing more is sent; what the other end says can still be heard."""
        with contextlib.suppress(OSError):  # it has gone before us
            self._socket.shutdown(socket.SHUT_WR)

    def hand_over(self, descriptor: int) -> None:
        """Before anything else is said. Raises HungUp."""
        try:
            socket.send_fds(self._socket, [b"."], [descriptor])
        except (BrokenPipeError, ConnectionResetError) as exc:
            raise HungUp from exc

    def take_over(self) -> int:
        """What `hand_over` sends, closed when we become another program. Raises HungUp."""
        try:
            _, (descriptor,), *_ = socket.recv_fds(self._socket, 1, 1)
        except (ConnectionResetError, ValueError) as exc:
            raise HungUp from exc
        os.set_inheritable(descriptor, False)  # Python 3.11 takes no notice of a flag that says so
        return descriptor

    def send(self, message: Any) -> None:
        """Raises HungUp."""
        data = marshal.dumps(message)
        try:
            self._socket.sendall(len(data).to_bytes(_HEAD, "little") + data)
        except (BrokenPipeError, ConnectionResetError) as exc:
            raise HungUp from exc

    @property
    def has_news(self) -> bool:
        """Whether `receive` would not wait."""
        look = select.poll()  # not select(), which cannot count beyond 1,023
        look.register(self._socket, select.POLLIN)
        return bool(look.poll(0))

    def receive(self) -> list[Any]:
        """Wait for something, and return all the messages that are complete by then. Raises HungUp."""
        try:
            data = self._socket.recv(_AT_ONCE)
        except ConnectionResetError as exc:
            raise HungUp from exc
        if not data:
            raise HungUp
        self._left += data
        found = []
        while len(self._left) >= _HEAD:
            end = _HEAD + int.from_bytes(self._left[:_HEAD], "little")
            if len(self._left) < end:
                break
            found.append(marshal.loads(self._left[_HEAD:end]))  # noqa: S302 - from ourselves
            self._left = self._left[end:]
        return found
