"""Commands that this process runs itself, beside everything else: secret providers, and alert commands where no worker is alive.

Each runs in a session of its own, without an input. It has a time limit and a limit of what it may print; then it is killed, with all
that it has started. The gate (policy/gate.py) decides whether a command may run, and as which user.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections import deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.process.between import Between
from queuectl.process.libc import Words
from queuectl.process.making import Making

AT_ONCE: Final = 8
READ: Final = 1 << 16
READS: Final = 64  # at a look
LOOK_EVERY_MS: Final = 100
REAP_LOOKS: Final = 20


class Question(NamedTuple):
    """A command. `timeout`: in seconds. `longest`: bytes of output. `program`: the file to execute; None: found as argv[0] on the PATH of
    `environment`. `between`: what the new process does before it runs the program. `name`: what problems call the command. `is_log`:
    stderr counts as output, and of too much output the end is kept."""

    argv: Sequence[str]
    timeout: float
    longest: int
    environment: Mapping[str, str]
    cwd: str
    program: str | None = None
    between: Between | None = None
    name: str = ""
    is_log: bool = False


class Unanswered(NamedTuple):
    """`output`: what it had printed."""

    problem: str
    output: bytes = b""


Answer = bytes | Unanswered


class _Asked:
    __slots__ = ("deadline", "fd", "pid", "pin", "question", "said")

    def __init__(self, question: Question, pid: int, pin: int, fd: int, deadline: float) -> None:
        self.question = question
        self.pid = pid
        self.pin = pin  # a descriptor of the process: readable when it has ended
        self.fd = fd
        self.deadline = deadline
        self.said = b""


class Asking:
    """Becomes readable when there may be an answer."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._waiting: deque[tuple[Hashable, Question]] = deque()
        self._asked: dict[Hashable, _Asked] = {}
        self._answers: dict[Hashable, Answer] = {}
        self._ended: set[int] = set()  # by us, and not seen to be gone

    def fileno(self) -> int:
        return self._poll.fileno()

    def bury(self) -> Collection[int]:
        """Those that were ended and are gone. Returns the children that are still ours to bury."""
        self._bury()
        return {asked.pid for asked in self._asked.values()} | self._ended

    def ask(self, key: Hashable, question: Question, *, now: float) -> None:
        self._waiting.append((key, question))
        self._begin(now)

    def answers(self, now: float) -> dict[Hashable, Answer]:
        """Those that have come since, each once."""
        for key, asked in [*self._asked.items()]:
            if (answer := self._look(asked, now)) is not None:
                self._answers[key] = answer
                self._close(key)
        self._bury()
        self._begin(now)
        found, self._answers = self._answers, {}
        return found

    def drop(self, key: Hashable) -> None:
        """Nobody wants to know any more."""
        self._waiting = deque(item for item in self._waiting if item[0] != key)
        self._answers.pop(key, None)
        if key in self._asked:
            self._end(self._asked[key])
            self._close(key)

    def wake_times(self) -> Iterator[float]:
        return (asked.deadline for asked in self._asked.values())

    def close(self) -> None:
        self._waiting.clear()
        for key in [*self._asked]:
            self.drop(key)
        self._bury()
        self._poll.close()

    def _begin(self, now: float) -> None:
        while self._waiting and len(self._asked) < AT_ONCE:
            key, question = self._waiting.popleft()
            begun = self._start(question, now)
            if isinstance(begun, Unanswered):
                self._answers[key] = begun
            else:
                self._asked[key] = begun

    def _start(self, question: Question, now: float) -> _Asked | Unanswered:
        opened: list[int] = []
        try:
            opened += os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            fd, out = opened
            os.set_blocking(out, True)  # it is the program's, which has not asked for that
            opened.append(null := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
            argv = [os.fsencode(word) for word in question.argv]
            base = Words([os.fsencode(f"{name}={value}") for name, value in question.environment.items()])
            made = Making(
                _places(question),
                argv,
                base,
                [],
                cwd=os.fsencode(question.cwd),
                descriptors=(null, out, out if question.is_log else null),
                between=question.between,
            ).run()
            if made.errors:
                return Unanswered(f"{_name(question)} cannot be run: {os.strerror(made.errors[-1]).lower()}")
            try:
                pin = os.pidfd_open(made.pid)
            except OSError:  # too many are open: a child that nobody watches would be one too many
                os.killpg(made.pid, signal.SIGKILL)
                self._ended.add(made.pid)
                raise
            opened.remove(fd)
            self._poll.register(fd, select.EPOLLIN)
            self._poll.register(pin, select.EPOLLIN)
            return _Asked(question, made.pid, pin, fd, now + question.timeout)
        except OSError as exc:
            return Unanswered(f"{_name(question)} cannot be run: {(exc.strerror or str(exc)).lower()}")
        finally:
            for one in opened:
                os.close(one)

    def _look(self, asked: _Asked, now: float) -> Answer | None:
        name, longest, is_log = _name(asked.question), asked.question.longest, asked.question.is_log
        status = os.waitid(os.P_PID, asked.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        # Read after that: the pipe holds all that it has printed. Its children that still run are not waited for. A bounded
        # number of reads, since a command may print faster than we read.
        for _ in range(READS):
            if (len(asked.said) > longest and not is_log) or not (more := _read(asked.fd)):
                break
            asked.said = (asked.said + more)[-longest:] if is_log else asked.said + more
        if len(asked.said) > longest:
            self._end(asked)
            return Unanswered(f"{name} printed more than {longest:,} bytes")
        if status is None:
            if now < asked.deadline:
                return None
            self._end(asked)
            return Unanswered(f"{name} did not end within {asked.question.timeout:g} s", asked.said)
        self._end(asked)  # what it may have started, too: its number is its own until it is buried
        if status.si_code != os.CLD_EXITED:
            return Unanswered(f"{name} was killed by signal {status.si_status}", asked.said)
        if status.si_status:
            return Unanswered(f"{name} ended with exit code {status.si_status}", asked.said)
        return asked.said

    def _end(self, asked: _Asked) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(asked.pid, signal.SIGKILL)
        self._ended.add(asked.pid)

    def _close(self, key: Hashable) -> None:
        asked = self._asked.pop(key)
        for fd in (asked.fd, asked.pin):
            self._poll.unregister(fd)
            os.close(fd)

    def _bury(self) -> None:
        for pid in [*self._ended]:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            self._ended.discard(pid)


def ask_now(question: Question, clock: Clock) -> Answer:
    """Run one command and wait for its end, at most as long as its time limit."""
    asking, watch = Asking(), select.poll()
    try:
        asking.ask("", question, now=clock.monotonic())
        watch.register(asking, select.POLLIN)
        while not (answers := asking.answers(clock.monotonic())):
            watch.poll(LOOK_EVERY_MS)
        return answers[""]
    finally:
        asking.close()
        # Only a process that waits for a disk survives SIGKILL for so long.
        for _ in range(REAP_LOOKS):
            if not asking.bury():
                break
            select.poll().poll(LOOK_EVERY_MS)


def _name(question: Question) -> str:
    return question.name or question.argv[0]


def _places(question: Question) -> Sequence[bytes]:
    program = os.fsencode(question.program or question.argv[0])
    if b"/" in program:
        return (program,)
    path = question.environment.get("PATH", os.defpath)
    return [os.path.join(os.fsencode(folder or "."), program) for folder in path.split(":")]


def _read(fd: int) -> bytes:
    """Empty: there is nothing now, or never again."""
    try:
        return os.read(fd, READ)
    except BlockingIOError:
        return b""
