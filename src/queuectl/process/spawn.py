"""The only maker of processes for jobs, and the only reaper."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from queuectl.job.outcome import Exited, Signalled
from queuectl.process import ending
from queuectl.process.table import Entry, started


class Child(NamedTuple):
    """A process that we made: the leader of a session and a group of its own."""

    pid: int
    started: int


class CannotSpawn(Exception):
    """The process could not be made; the message says why, in words for the job's owner."""


class Processes(Protocol):
    """Everything that the worker's loop asks of the operating system about processes. The simulator has its own."""

    def spawn(self, argv: Sequence[bytes], *, cwd: str, env: Mapping[bytes, bytes], out: int) -> Child: ...

    def peek(self, child: Child) -> Exited | Signalled | None:
        """How the child ended, None if it runs. It stays a zombie, and its pid stays its own, until `reap`."""
        ...

    def reap(self, child: Child) -> None: ...

    def family(self, child: Child, token: str) -> list[Entry]:
        """The living processes of the run that this unreaped child leads."""
        ...

    def send(self, number: int, to: Sequence[Entry]) -> None: ...

    def reap_strays(self) -> None:
        """Bury the children of others that were left to us: as pid 1 nobody else will."""
        ...


class SystemProcesses:
    def __init__(self) -> None:
        self._null = os.open(os.devnull, os.O_RDWR)
        self._own: dict[int, subprocess.Popen[bytes]] = {}
        self._is_init = os.getpid() == 1

    def spawn(self, argv: Sequence[bytes], *, cwd: str, env: Mapping[bytes, bytes], out: int) -> Child:
        try:
            process = subprocess.Popen(  # noqa: S603 - running what users enqueue is the product
                argv,
                stdin=self._null,
                stdout=out,
                stderr=out,
                cwd=cwd,
                env=env,
                start_new_session=True,
                # Everything we have open is close-on-exec (see `forbid_inheritance`): no need to walk the descriptors.
                close_fds=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as exc:
            raise CannotSpawn(_why(exc, cwd, argv[0])) from exc
        self._own[process.pid] = process
        return Child(process.pid, started(process.pid) or 0)

    def peek(self, child: Child) -> Exited | Signalled | None:
        try:
            status = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # somebody else reaped it: how it ended cannot be known any more
            return Exited(255)
        if status is None:
            return None
        return Exited(status.si_status) if status.si_code == os.CLD_EXITED else Signalled(status.si_status)

    def reap(self, child: Child) -> None:
        process = self._own.pop(child.pid)
        process.wait()

    def family(self, child: Child, token: str) -> list[Entry]:
        return ending.family(child.pid, token)

    def send(self, number: int, to: Sequence[Entry]) -> None:
        ending.send(number, to)

    def reap_strays(self) -> None:
        if not self._is_init:
            return
        while True:
            try:
                status = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if status is None or status.si_pid in self._own:
                return
            os.waitpid(status.si_pid, 0)


def forbid_inheritance() -> None:
    """Keep from our children whatever descriptors we were started with, but 0, 1 and 2."""
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        fd = int(name)
        if fd > 2:
            try:
                flags = fcntl.fcntl(fd, fcntl.F_GETFD)
                fcntl.fcntl(fd, fcntl.F_SETFD, flags | fcntl.FD_CLOEXEC)
            except OSError as exc:
                if exc.errno != errno.EBADF:  # the descriptor of the listing itself is closed by now
                    raise


def _why(exc: Exception, cwd: str, program: bytes) -> str:
    if not isinstance(exc, OSError):
        return str(exc)
    if exc.filename is not None and os.fsencode(exc.filename) == os.fsencode(cwd):
        return f"the working directory {cwd} cannot be entered: {_words(exc)}"
    name = os.fsdecode(program)
    match exc.errno:
        case errno.ENOENT:
            return f"no such program: {name}"
        case errno.EACCES:
            return f"not executable: {name}"
        case errno.E2BIG:
            return "the command and its environment are too long for this system"
        case errno.EAGAIN | errno.ENOMEM:
            return f"the system has no room for another process: {_words(exc)}"
        case _:
            return f"{name}: {_words(exc)}"


def _words(exc: OSError) -> str:
    return (exc.strerror or str(exc)).lower()
