"""Messages between a worker and its keeper, with descriptors: both ends are ours, and of the same Python."""

from __future__ import annotations

import array
import marshal
import socket
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

_HEAD: Final = 4
_AT_ONCE: Final = 1 << 18
_MOST_DESCRIPTORS: Final = 253  # that a message can carry, by the kernel


class HungUp(Exception):
    """There is nobody at the other end (any more)."""


class Wire:
    """One end. What is received carries its descriptors in the order in which they were sent: `descriptors`."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._left = b""
        self.descriptors: deque[int] = deque()

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def send(self, message: Any, descriptors: Sequence[int] = ()) -> None:
        """Raises HungUp. Descriptors are duplicated: those that were given may be closed."""
        data = marshal.dumps(message)
        frame = len(data).to_bytes(_HEAD, "little") + data
        carried = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        try:
            sent = self._socket.sendmsg([frame], carried)
            if sent < len(frame):
                self._socket.sendall(frame[sent:])
        except (BrokenPipeError, ConnectionResetError) as exc:
            raise HungUp from exc

    def receive(self) -> list[Any]:
        """Wait for something, and return all the messages that are complete by then. Raises HungUp."""
        room = socket.CMSG_LEN(_MOST_DESCRIPTORS * array.array("i").itemsize)
        try:
            data, carried, _, _ = self._socket.recvmsg(_AT_ONCE, room, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError as exc:
            raise HungUp from exc
        for _, _, some in carried:
            self.descriptors += array.array("i", some[: len(some) - len(some) % array.array("i").itemsize])
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
