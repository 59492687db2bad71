"""The only maker of processes for jobs, and the only reaper."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from queuectl.clock import boot_ticks
from queuectl.job.outcome import Exited, Signalled
from queuectl.process import ending
from queuectl.process.table import Entry, started

LONGEST_SHOWN: Final = 200

_DUP2: Final = os.POSIX_SPAWN_DUP2
_SIGNALS: Final = tuple(map(int, signal.valid_signals()))


class Child(NamedTuple):
    """A process that we made: the leader of a session and a group of its own."""

    pid: int
    started: int


class CannotSpawn(Exception):
    """The process could not be made; the message says why, in words for the job's owner."""


class Processes(Protocol):
    """Everything that the worker's loop asks of the operating system about processes. The simulator has its own."""

    def spawn(self, argv: Sequence[bytes], *, cwd: str, env: Mapping[bytes, bytes], out: int) -> Child:
        """Start a program; `out` gets all it prints. May leave us in `cwd`: see `rest`. Raises CannotSpawn."""
        ...

    def rest(self) -> None:
        """After a row of starts: be where we were before."""
        ...

    def peek(self, child: Child) -> Exited | Signalled | None:
        """How the child ended, None if it runs. It stays a zombie, and its pid stays its own, until `reap`."""
        ...

    def reap(self, child: Child) -> None: ...

    def families(self, runs: Mapping[str, Child]) -> dict[str, list[Entry]]:
        """By token, the living processes of the runs that these unreaped children lead."""
        ...

    def send(self, number: int, to: Sequence[Entry]) -> None: ...

    def kill_group(self, child: Child) -> None:
        """KILL to the whole group of an unreaped child, in one step: who forks faster than we look cannot escape it."""
        ...

    def reap_strays(self) -> None:
        """Bury the children of others that were left to us: as pid 1 nobody else will."""
        ...


class SystemProcesses:
    def __init__(self) -> None:
        self._null = os.open(os.devnull, os.O_RDWR)
        self._here = os.open(".", os.O_PATH)
        self._place: str | None = None  # the directory of a job that we are in
        self._own: set[int] = set()
        self._is_init = os.getpid() == 1

    def spawn(self, argv: Sequence[bytes], *, cwd: str, env: Mapping[bytes, bytes], out: int) -> Child:
        # posix_spawn and not subprocess, which costs more than all the rest of a start: it prepares in Python what this
        # does in C. It knows no directory, so we go there; nothing else runs in this process meanwhile.
        if cwd != self._place:
            _enter(cwd)
            self._place = cwd
        before = boot_ticks()
        pid = self._spawn(argv, env, out)
        after = boot_ticks()
        self._own.add(pid)
        # Looked up only if the clock ticked meanwhile: a look into /proc costs a tenth of a start.
        return Child(pid, before if before == after else started(pid) or 0)

    def rest(self) -> None:
        if self._place is not None:
            self._place = None
            with contextlib.suppress(OSError):  # not ours to enter any more: no path of ours depends on where we are
                os.fchdir(self._here)

    def _spawn(self, argv: Sequence[bytes], env: Mapping[bytes, bytes], out: int) -> int:
        failure: Exception = FileNotFoundError(errno.ENOENT, "not found")
        for program in _places(argv[0], env):
            try:
                # Everything we have open is close-on-exec (see `forbid_inheritance`), and our mask is empty. All signals
                # are named, also those that are at their default: for each that is not, the C library asks the kernel.
                return os.posix_spawn(
                    program,
                    list(argv),
                    env,
                    file_actions=[(_DUP2, self._null, 0), (_DUP2, out, 1), (_DUP2, out, 2)],
                    setsid=True,
                    setsigdef=_SIGNALS,
                )
            except (FileNotFoundError, NotADirectoryError) as exc:
                if os.path.exists(program):  # then it was not the program that was not found
                    raise CannotSpawn(f"{_shown(program)}: its interpreter is missing (see its first line)") from exc
            except PermissionError as exc:
                failure = exc  # a later directory may have one that we may run
            except (OSError, ValueError) as exc:
                failure = exc
                break
        raise CannotSpawn(_why(failure, argv[0])) from failure

    def peek(self, child: Child) -> Exited | Signalled | None:
        try:
            status = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # somebody else reaped it: how it ended cannot be known any more
            return Exited(255)
        if status is None:
            return None
        return Exited(status.si_status) if status.si_code == os.CLD_EXITED else Signalled(status.si_status)

    def reap(self, child: Child) -> None:
        self._own.discard(child.pid)
        try:
            os.waitpid(child.pid, 0)
        except ChildProcessError:
            pass  # as in `peek`

    def families(self, runs: Mapping[str, Child]) -> dict[str, list[Entry]]:
        return ending.families({token: child.pid for token, child in runs.items()})

    def send(self, number: int, to: Sequence[Entry]) -> None:
        ending.send(number, to)

    def kill_group(self, child: Child) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left, or only who has become root
            os.killpg(child.pid, signal.SIGKILL)

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


def _enter(cwd: str) -> None:
    try:
        os.chdir(cwd.encode())  # as it was given, whatever the locale of the worker is
    except (OSError, ValueError) as exc:
        raise CannotSpawn(f"the working directory {_shown(cwd.encode())} cannot be entered: {_words(exc)}") from exc


def _places(program: bytes, env: Mapping[bytes, bytes]) -> Sequence[bytes]:
    """Where a program may be: looked for on the PATH that the job will have, not on ours."""
    if b"/" in program:
        return (program,)
    folders = env.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    return [os.path.join(folder, program) for folder in folders]  # an empty entry is the working directory


def _why(exc: Exception, program: bytes) -> str:
    if not isinstance(exc, OSError):
        return str(exc)
    name = _shown(program)
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


def _shown(path: bytes) -> str:
    """On one line, and not for ever: an error is read by people."""
    text = path.decode("utf-8", "replace")
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:LONGEST_SHOWN])
    return line if len(text) <= LONGEST_SHOWN else line + "…"


def _words(exc: Exception) -> str:
    return (getattr(exc, "strerror", None) or str(exc)).lower()
