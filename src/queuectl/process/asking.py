"""Commands of the host that are asked for something beside all else that goes on: nobody waits for them.

Each runs in a session of its own, without a shell and without an input; what it prints on stderr is nobody's business. It has a
time to answer in, and a length that an answer may have; then it is ended, with all that it has started.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections import deque
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl.process.libc import Words
from queuectl.process.making import Making

AT_ONCE: Final = 8
READ: Final = 1 << 16


class Question(NamedTuple):
    """`longest`: bytes of an answer. `timeout`: in seconds."""

    argv: Sequence[str]
    timeout: float
    longest: int


class Unanswered(NamedTuple):
    problem: str


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

    def __init__(self, *, environment: Mapping[str, str], cwd: str) -> None:
        self._environment = environment
        self._cwd = cwd
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
            base = Words([os.fsencode(f"{name}={value}") for name, value in self._environment.items()])
            places = _places(argv[0], self._environment.get("PATH", os.defpath))
            made = Making(places, argv, base, [], cwd=os.fsencode(self._cwd), descriptors=(null, out, null)).run()
            if made.errors:
                return Unanswered(f"{question.argv[0]} cannot be run: {os.strerror(made.errors[-1]).lower()}")
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
            return Unanswered(f"{question.argv[0]} cannot be run: {(exc.strerror or str(exc)).lower()}")
        finally:
            for one in opened:
                os.close(one)

    def _look(self, asked: _Asked, now: float) -> Answer | None:
        name, longest = asked.question.argv[0], asked.question.longest
        status = os.waitid(os.P_PID, asked.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        # Read after that: all that it has said is there. Whoever it has left behind is not waited for.
        while len(asked.said) <= longest and (more := _read(asked.fd)):
            asked.said += more
        if len(asked.said) > longest:
            self._end(asked)
            return Unanswered(f"{name} printed more than {longest:,} bytes")
        if status is None:
            if now < asked.deadline:
                return None
            self._end(asked)
            return Unanswered(f"{name} did not answer within {asked.question.timeout:g} s")
        self._end(asked)  # what it may have started, too: its number is its own until it is buried
        if status.si_code != os.CLD_EXITED:
            return Unanswered(f"{name} was killed by signal {status.si_status}")
        return asked.said if status.si_status == 0 else Unanswered(f"{name} ended with exit code {status.si_status}")

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


def _places(program: bytes, path: str) -> Sequence[bytes]:
    if b"/" in program:
        return (program,)
    return [os.path.join(os.fsencode(folder or "."), program) for folder in path.split(":")]


def _read(fd: int) -> bytes:
    """Empty: there is nothing now, or never again."""
    try:
        return os.read(fd, READ)
    except BlockingIOError:
        return b""
