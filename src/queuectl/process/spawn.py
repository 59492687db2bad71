"""The only maker of processes for jobs, and the only reaper."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple, Protocol

from queuectl.clock import Clock
from queuectl.job.outcome import Exited, Signalled
from queuectl.process import ending
from queuectl.process.libc import KNOWS_DIRECTORIES, Call, Words
from queuectl.process.making import Maker, Making
from queuectl.process.table import Entry, started

LONGEST_SHOWN: Final = 200


class Child(NamedTuple):
    """A process that we made: the leader of a session and a group of its own."""

    pid: int
    started: int


class Order(NamedTuple):
    """A process that we want: `base` and `env` are its environment, as NAME=value; `out` gets all it prints."""

    argv: Sequence[bytes]
    cwd: str
    base: Words
    env: Sequence[bytes]
    out: int


class CannotSpawn(Exception):
    """The process could not be made; the message says why, in words for the job's owner."""


class Begun(NamedTuple):
    """What became of an order, and when, by the monotonic clock."""

    child: Child | CannotSpawn
    at: float


class Processes(Protocol):
    """Everything that the worker's loop asks of the operating system about processes. The simulator has its own."""

    def begin(self, orders: Sequence[Order]) -> None:
        """Start programs, in this order. Returns when most of them are; `begun` says what became of them."""
        ...

    def begun(self, *, wait: bool = False) -> Sequence[Begun]:
        """What became of the orders since, in their order; with `wait`, of all there are."""
        ...

    def fileno(self) -> int:
        """Becomes readable when the last order is begun."""
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
    def __init__(self, clock: Clock, *, knows_directories: bool = KNOWS_DIRECTORIES) -> None:
        self._maker = Maker(clock)
        self._null = os.open(os.devnull, os.O_RDWR)
        self._here = os.open(".", os.O_PATH)
        self._knows_directories = knows_directories
        self._orders: deque[Order] = deque()  # begun, and not told yet
        self._early: list[Begun] = []
        self._own: set[int] = set()
        self._is_init = os.getpid() == 1

    def close(self) -> None:
        self._maker.close()
        os.close(self._null)
        os.close(self._here)

    def fileno(self) -> int:
        return self._maker.fileno()

    def begin(self, orders: Sequence[Order]) -> None:
        self._orders += orders
        self._maker.put([self._making(order) for order in orders])
        if not self._knows_directories:
            # Then the thread goes there itself, and takes us with it: nothing else may run until we are back.
            self._early += self._taken(wait=True)
            with contextlib.suppress(OSError):  # not ours to enter any more: no path of ours depends on where we are
                os.fchdir(self._here)

    def begun(self, *, wait: bool = False) -> Sequence[Begun]:
        found, self._early = [*self._early, *self._taken(wait=wait)], []
        return found

    def _making(self, order: Order) -> Making:
        cwd = order.cwd.encode()  # as it was given, whatever the locale of the worker is
        inside, enter = (cwd, None) if self._knows_directories else (None, cwd)
        # Everything we have open is close-on-exec, see `forbid_inheritance`.
        descriptors = (self._null, order.out, order.out)
        call = Call(order.argv, order.base, order.env, cwd=inside, descriptors=descriptors)
        return Making(call, _places(order), enter=enter)

    def _taken(self, *, wait: bool) -> Iterator[Begun]:
        for making in self._maker.take(wait=wait):
            order = self._orders.popleft()
            pid = making.call.pid
            if not making.is_made:
                yield Begun(CannotSpawn(_why(order, making)), making.at)
                continue
            self._own.add(pid)
            # Looked up only if the clock ticked meanwhile: a look into /proc costs a tenth of a start.
            known = making.before if making.before == making.after else started(pid) or 0
            yield Begun(Child(pid, known), making.at)

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
        if not self._is_init or self._orders:  # one of those may be ours, and have ended before we know its number
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


def _places(order: Order) -> Sequence[bytes]:
    """Where a program may be: looked for on the PATH that the job will have, not on ours."""
    program = order.argv[0]
    if b"/" in program:
        return (program,)
    words = chain(order.base.words, order.env)
    path = next((word[5:] for word in words if word.startswith(b"PATH=")), os.fsencode(os.defpath))
    return [os.path.join(folder, program) for folder in path.split(b":")]  # an empty entry is the working directory


def _why(order: Order, making: Making) -> str:
    """In words, why none of the programs could be run. The kernel gives a number for all there is to do in between."""
    cwd, name = order.cwd.encode(), _shown(order.argv[0])
    try:
        os.stat(os.path.join(cwd, b"."))
    except (OSError, ValueError) as exc:
        return f"the working directory {_shown(cwd)} cannot be entered: {_words(exc)}"
    for program, error in zip(making.programs, making.errors, strict=True):
        if error == errno.ENOENT and os.path.exists(os.path.join(cwd, program)):  # so it was not the program
            return f"{_shown(program)}: its interpreter is missing (see its first line)"
    error = max(making.errors, key=lambda error: error not in (errno.ENOENT, errno.ENOTDIR))
    match error:
        case errno.ENOENT | errno.ENOTDIR:
            return f"no such program: {name}"
        case errno.EACCES:
            return f"not executable: {name}"
        case errno.E2BIG:
            return "the command and its environment are too long for this system"
        case errno.EAGAIN | errno.ENOMEM:
            return f"the system has no room for another process: {os.strerror(error).lower()}"
        case _:
            return f"{name}: {os.strerror(error).lower()}"


def _shown(path: bytes) -> str:
    """On one line, and not for ever: an error is read by people."""
    text = path.decode("utf-8", "replace")
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:LONGEST_SHOWN])
    return line if len(text) <= LONGEST_SHOWN else line + "…"


def _words(exc: Exception) -> str:
    return (getattr(exc, "strerror", None) or str(exc)).lower()
