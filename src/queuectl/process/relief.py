"""The next process that pumps, for a pump that may not have more descriptors.

The limit is one of each process. So a pump that is full hands the reading ends of further pipes to another process, its relief,
which is a pump as well, and may be full, too: then that one has a relief of its own. Whoever hands over waits for an answer,
and holds no lock on a log meanwhile, for which the other one might wait.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import marshal
import os
import socket
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from queuectl.process.starting import start_beside

# To a relief: read this pipe from now on; its job has ended, and with what line; it was never made; how long a log may be.
TAKE, FINISH, CLOSE, LIMIT = range(4)

Masks = Sequence[tuple[str, bytes]]  # secrets of a run, by name

# More than a path, a line of ours, and the secrets of a job.
LONGEST: Final = 64 * 1024


class Gone(OSError):
    """There is no relief (any more): whoever prints into one of its pipes gets SIGPIPE, as if the keeper itself were gone."""

    def __init__(self) -> None:
        super().__init__(errno.EPIPE, os.strerror(errno.EPIPE))


class Handed(NamedTuple):
    """A pipe that a relief reads. Everything raises Gone."""

    relief: _Line
    number: int

    def finish(self, end: bytes | None) -> int | None:
        """As Pump.finish."""
        log_to: int | None = self.relief.ask((FINISH, self.number, end))
        return log_to

    def close(self) -> None:
        self.relief.ask((CLOSE, self.number))


class Relief:
    """As the one knows it that is full: raised when it is needed, and again when it is gone."""

    def __init__(self) -> None:
        self._line: _Line | None = None

    def raise_it(self, limit: int) -> _Line:
        """Raises OSError, if no process can be made."""
        if self._line is None or self._line.is_gone:
            self._line = _Line(limit)
        return self._line

    def take(self, fd: int, log: str, log_from: int, limit: int, masks: Masks) -> Handed:
        """Read this pipe. Raises OSError, if nobody could take it."""
        line = self.raise_it(limit)
        try:
            return line.take(fd, log, log_from, masks)
        except Gone:
            return self.raise_it(limit).take(fd, log, log_from, masks)

    def limit_to(self, limit: int) -> None:
        if self._line is not None:
            with contextlib.suppress(Gone):
                self._line.ask((LIMIT, limit))


class _Line:
    """To a relief, as long as that one is there. It goes with us, and with the last who prints."""

    def __init__(self, limit: int) -> None:
        """Raises OSError."""
        environment = os.environ  # noqa: TID251 - what our own Python was started with
        self._pid, self._socket = start_beside("relieve.py", [str(limit)], environment, socket.SOCK_SEQPACKET)
        self._numbers = itertools.count()
        self.is_gone = False

    def take(self, fd: int, log: str, log_from: int, masks: Masks) -> Handed:
        number = next(self._numbers)
        if error := self.ask((TAKE, number, log, log_from, list(masks)), [fd]):
            raise OSError(error, os.strerror(error))
        return Handed(self, number)

    def ask(self, message: tuple[Any, ...], descriptors: Sequence[int] = ()) -> Any:
        if self.is_gone:
            raise Gone
        try:
            socket.send_fds(self._socket, [marshal.dumps(message)], descriptors)
            answer = self._socket.recv(LONGEST)
        except OSError:
            answer = b""
        if not answer:
            self._bury()
            raise Gone
        return marshal.loads(answer)  # noqa: S302 - from ourselves

    def _bury(self) -> None:
        self.is_gone = True
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, os.WNOHANG)
