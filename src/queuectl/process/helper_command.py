"""Commands that this process runs itself and whose output it reads: secret providers, and alert commands if no worker is alive.

Each runs in its own session, without input. It has a time limit and a limit of its output; then it is killed with all processes of its
group. The gate (policy/gate.py) decides whether a command may run, and as which user.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
from collections import deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.process import tree
from queuectl.process.spawn import (
    NO_SETUP,
    CannotSpawn,
    ChildSetup,
    Command,
    spawn,
    start_programs_with_default_signals,
)

MAX_RUNNING: Final = 8
READ_SIZE: Final = 1 << 16
MAX_READS: Final = 64  # in one turn: a command may print faster than we read
CHECK_EVERY: Final = 0.05  # whether it has ended: its children may hold its output open
REAP_TIMEOUT: Final = 2.0


class HelperCommand(NamedTuple):
    """`timeout`: in seconds. `max_output`: in bytes. `program`: the file to execute; None: argv[0], looked up on the PATH of `environment`.
    `name`: what error messages call the command. `is_log`: stderr counts as output, and the end of too much output is kept."""

    argv: Sequence[str]
    timeout: float
    max_output: int
    environment: Mapping[str, str]
    cwd: str
    program: str | None = None
    setup: ChildSetup = NO_SETUP
    name: str = ""
    is_log: bool = False


class HelperFailure(NamedTuple):
    """`output`: what it had printed."""

    problem: str
    output: bytes = b""


class _Running:
    __slots__ = ("check_at", "command", "deadline", "is_open", "output", "pid", "reader")

    def __init__(self, command: HelperCommand, pid: int, reader: int, now: float) -> None:
        self.command = command
        self.pid = pid
        self.reader = reader
        self.is_open = True  # the other end of the pipe, as far as we know
        self.deadline = now + command.timeout
        self.check_at = now
        self.output = b""


class HelperRunner:
    """Runs commands beside the loop of its process. Its descriptor becomes readable when one prints something or ends."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._waiting: deque[tuple[Hashable, HelperCommand]] = deque()
        self._running: dict[Hashable, _Running] = {}
        self._results: dict[Hashable, bytes | HelperFailure] = {}
        self._killed: set[int] = set()  # not reaped yet

    def fileno(self) -> int:
        return self._selector.fileno()  # epoll and kqueue have one

    def start(self, key: Hashable, command: HelperCommand, *, now: float) -> None:
        self._waiting.append((key, command))
        self._start_waiting(now)

    def results(self, now: float) -> dict[Hashable, bytes | HelperFailure]:
        """The output or failure of those that have ended since the last call."""
        for key, running in [*self._running.items()]:
            if (result := self._poll(running, now)) is not None:
                self._results[key] = result
                self._close(key)
        self.reap()
        self._start_waiting(now)
        found, self._results = self._results, {}
        return found

    def cancel(self, key: Hashable) -> None:
        self._waiting = deque(item for item in self._waiting if item[0] != key)
        self._results.pop(key, None)
        if (running := self._running.get(key)) is not None:
            self._kill(running)
            self._close(key)

    def wake_times(self) -> Iterator[float]:
        return (min(running.check_at, running.deadline) for running in self._running.values())

    def reap(self) -> Collection[int]:
        """Reap those that were killed and have ended. Returns the children that are still to be reaped here."""
        for pid in [*self._killed]:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            self._killed.discard(pid)
        return {running.pid for running in self._running.values()} | self._killed

    def close(self) -> None:
        self._waiting.clear()
        for key in [*self._running]:
            self.cancel(key)
        self.reap()
        self._selector.close()

    def _start_waiting(self, now: float) -> None:
        while self._waiting and len(self._running) < MAX_RUNNING:
            key, command = self._waiting.popleft()
            try:
                self._running[key] = self._start(command, now)
            except CannotSpawn as exc:
                self._results[key] = HelperFailure(f"{_name(command)} cannot be run: {exc}")
            except OSError as exc:
                problem = (exc.strerror or str(exc)).lower()
                self._results[key] = HelperFailure(f"{_name(command)} cannot be run: {problem}")

    def _start(self, command: HelperCommand, now: float) -> _Running:
        with contextlib.ExitStack() as opened:
            null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            opened.callback(os.close, null)
            reader, writer = os.pipe()
            opened.callback(os.close, writer)
            with contextlib.ExitStack() as failed:
                failed.callback(os.close, reader)
                pid = spawn(_encoded(command), stdin=null, stdout=writer, stderr=writer if command.is_log else null)
                failed.pop_all()
        os.set_blocking(reader, False)  # only our end: the other one belongs to the command
        self._selector.register(reader, selectors.EVENT_READ)
        return _Running(command, pid, reader, now)

    def _poll(self, running: _Running, now: float) -> bytes | HelperFailure | None:
        """Its output or failure; None if it has not ended."""
        command, name = running.command, _name(running.command)
        running.check_at = now + CHECK_EVERY
        has_ended = not tree.is_alive(running.pid)
        # Read after that: then the pipe holds all that it has printed. Its children that still run are not waited for.
        self._read(running)
        if len(running.output) > command.max_output:
            self._kill(running)
            return HelperFailure(f"{name} printed more than {command.max_output:,} bytes")
        if not has_ended:
            if now < running.deadline:
                return None
            self._kill(running)
            return HelperFailure(f"{name} did not end within {command.timeout:g} s", running.output)
        self._kill(running)  # its children, too: the number of its group is its own until it is reaped
        self._killed.discard(running.pid)
        _, status = os.waitpid(running.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            return HelperFailure(f"{name} was killed by signal {-code}", running.output)
        if code:
            return HelperFailure(f"{name} ended with exit code {code}", running.output)
        return running.output

    def _read(self, running: _Running) -> None:
        limit, is_log = running.command.max_output, running.command.is_log
        for _ in range(MAX_READS):
            if not running.is_open or (len(running.output) > limit and not is_log):
                return
            try:
                data = os.read(running.reader, READ_SIZE)
            except BlockingIOError:
                return
            if not data:
                running.is_open = False
                self._selector.unregister(running.reader)
            running.output += data
            if is_log:
                running.output = running.output[-limit:]

    def _kill(self, running: _Running) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing of it is left, or it has become root
            os.killpg(running.pid, signal.SIGKILL)
        self._killed.add(running.pid)

    def _close(self, key: Hashable) -> None:
        running = self._running.pop(key)
        if running.is_open:
            self._selector.unregister(running.reader)
        os.close(running.reader)


def run_helper(command: HelperCommand, clock: Clock) -> bytes | HelperFailure:
    """Run one command and wait for its end, at most as long as its time limit. Returns its output."""
    with contextlib.suppress(ValueError):  # not the main thread: the dashboard does so when it starts
        start_programs_with_default_signals()
    runner = HelperRunner()
    with selectors.DefaultSelector() as selector:
        try:
            runner.start("", command, now=clock.monotonic())
            selector.register(runner, selectors.EVENT_READ)
            while not (results := runner.results(clock.monotonic())):
                selector.select(CHECK_EVERY)
            return results[""]
        finally:
            runner.close()
            # Only a process blocked on disk I/O survives SIGKILL for longer.
            deadline = clock.monotonic() + REAP_TIMEOUT
            while runner.reap() and clock.monotonic() < deadline:
                clock.sleep(CHECK_EVERY)


def _name(command: HelperCommand) -> str:
    return command.name or command.argv[0]


def _encoded(command: HelperCommand) -> Command:
    return Command(
        [os.fsencode(argument) for argument in command.argv],
        {os.fsencode(name): os.fsencode(value) for name, value in command.environment.items()},
        os.fsencode(command.cwd),
        program=None if command.program is None else os.fsencode(command.program),
        setup=command.setup,
    )
