"""The relief of a pump, see relief.py: told what to read, and otherwise without a will of its own.

It goes when whoever raised it has gone, and the last with one of its pipes: so it outlives the keeper for those only whom jobs
have left behind, and who may print.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import select
import signal
import socket
import sys
from typing import Any

from queuectl.process.orders import WIRE
from queuectl.process.pipe import Pipe
from queuectl.process.pump import Pump
from queuectl.process.relief import CLOSE, FINISH, LIMIT, LONGEST, TAKE, Masks


class Relieving:
    def __init__(self, line: socket.socket, limit: int) -> None:
        self._line = line
        self._pump = Pump(limit)
        self._pipes: dict[int, Pipe] = {}  # by number: those whose jobs have not ended

    def serve(self) -> None:
        watch = select.poll()
        watch.register(self._pump, select.POLLIN)
        watch.register(self._line, select.POLLIN)
        is_told = True
        while is_told or self._pump:
            patience = self._pump.patience()
            ready = {fd for fd, _ in watch.poll(None if patience is None else patience * 1000)}
            if self._line.fileno() in ready and not self._hear():
                watch.unregister(self._line)
                is_told = False
            self._pump.turn()

    def _hear(self) -> bool:
        """Whether there is somebody who can tell us something."""
        try:
            data, descriptors, *_ = socket.recv_fds(self._line, LONGEST, 1)
            if not data:
                return False
            answer = self._obey(marshal.loads(data), descriptors)  # noqa: S302 - from ourselves
            self._line.send(marshal.dumps(answer))
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _obey(self, message: tuple[Any, ...], descriptors: list[int]) -> int | None:
        match message:
            case (int(order), int(number), str(log), int(log_from), list(masks)) if order == TAKE:
                return self._take(number, log, log_from, masks, descriptors)
            case (int(order), int(number), end) if order == FINISH:
                return self._pump.finish(self._pipes.pop(number), end)
            case (int(order), int(number)) if order == CLOSE:
                self._pump.close(self._pipes.pop(number))
            case (int(order), int(limit)) if order == LIMIT:
                self._pump.limit_to(limit)
        return None

    def _take(self, number: int, log: str, log_from: int, masks: Masks, descriptors: list[int]) -> int:
        """Returns 0, or the number of the error."""
        if not descriptors:  # there was no room for it, and the kernel has left it out
            return errno.EMFILE
        os.set_inheritable(descriptors[0], False)
        try:
            self._pipes[number] = self._pump.take(descriptors[0], log, log_from, masks)
        except OSError as exc:
            return exc.errno or errno.EMFILE
        return 0


def main() -> None:
    # As for a keeper: whoever ends a whole service means the worker, and the jobs.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)
    os.set_inheritable(WIRE, False)
    with contextlib.closing(socket.socket(fileno=WIRE)) as line:
        Relieving(line, int(sys.argv[-1])).serve()
