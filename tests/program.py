"""The real program in separate processes, as a user runs it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from queuectl.process.system import PORTABLE_VARIABLE
from tests import in_process
from tests.e2e.processes import children, has_let_go
from tests.wait import PATIENCE, wait_until
from tests.warm import Ended, Forked, living, warm

COMMAND = (sys.executable, "-m", "queuectl")
# A command prefix that starts a program as nohup, cron and scripts may do it: with ignored signals and all signals blocked.
STRANGELY = (
    sys.executable,
    "-c",
    """
import os, signal, sys
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTSTP, signal.SIGRTMIN + 3):
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.execv(sys.argv[1], sys.argv[1:])
""",
)
# Variables of the caller's terminal, which would change the output.
OF_THE_TERMINAL = frozenset({"CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR"})


class Completed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def raw(self) -> bytes:
        """stdout as bytes, for output that is not UTF-8."""
        return self.out.encode("utf-8", "surrogateescape")

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def environment(home: Path, extra: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Return the environment of this process without settings of queuectl except the data directory. In `extra`, None removes a variable."""
    env = {
        name: value
        for name, value in os.environ.items()
        if (not name.startswith("QUEUECTL_") or name == PORTABLE_VARIABLE) and name not in OF_THE_TERMINAL
    }
    for name, value in {"QUEUECTL_HOME": str(home), **(extra or {})}.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = value
    return env


def run(
    words: Sequence[str], *, input: bytes | None, env: Mapping[str, str], cwd: Path | None, timeout: float
) -> Ended:
    """Run the program in this process or forked from a process that has loaded all modules, if that makes no difference."""
    if (ended := in_process.run(words, input=input, env=env, cwd=cwd)) is not None:
        return ended
    if (ended := warm.run(words, input=input, env=env, cwd=cwd, timeout=timeout)) is not None:
        return ended
    source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
    done = subprocess.run([*COMMAND, *words], capture_output=True, env=env, cwd=cwd, timeout=timeout, **source)
    return Ended(done.returncode, done.stdout, done.stderr)


class Program:
    """`queuectl("enqueue", "true", check=0)` runs the program and returns its exit code and output.

    `env` has additional variables for all runs.
    """

    def __init__(self, home: Path, env: Mapping[str, str | None] | None = None) -> None:
        self.home = home
        self.env = dict(env or {})
        self.forks = True  # False: start a worker as a new interpreter

    def environment(self, extra: Mapping[str, str | None] | None = None) -> dict[str, str]:
        return environment(self.home, {**self.env, **(extra or {})})

    def __call__(
        self,
        *args: str | Path,
        input: str | bytes | None = None,
        env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None,
        timeout: float = 60,
        check: int | None = None,
    ) -> Completed:
        """`check` is the expected exit code. Without `input`, stdin is empty. The text may contain surrogate escapes."""
        words = [str(word) for word in args]
        fed = input.encode() if isinstance(input, str) else input
        done = run(words, input=fed, env=self.environment(env), cwd=cwd, timeout=timeout)
        texts = (text.decode("utf-8", "surrogateescape") for text in (done.out, done.err))
        result = Completed(done.code, *texts)
        assert check is None or result.code == check, f"queuectl {words} exited {result.code}, not {check}: {result}"
        return result

    def start(
        self, *args: str | Path, env: Mapping[str, str | None] | None = None, cwd: Path | None = None, **popen: Any
    ) -> subprocess.Popen[bytes]:
        """Start the program as a background process. The caller terminates it."""
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, **popen}
        return subprocess.Popen([*COMMAND, *map(str, args)], env=self.environment(env), cwd=cwd, **streams)

    def start_worker(
        self, *args: str | Path, log: Path, env: Mapping[str, str | None] | None = None
    ) -> subprocess.Popen[bytes] | Forked:
        """Start a worker that prints to a file. It is forked as in `run`, unless a test examines its start."""
        words = ["worker", "start", *map(str, args)]
        with log.open("wb") as file, open(os.devnull, "rb") as nothing:
            if self.forks:
                streams = (nothing.fileno(), file.fileno(), file.fileno())
                if forked := warm.start(words, streams=streams, env=self.environment(env), cwd=None):
                    return forked
            return self.start(*words, env=env, stdout=file, stderr=file)


class WorkerProcess:
    """A worker in the foreground, started by a test. `stdout` and `stderr` go to one file: see `output`."""

    def __init__(
        self, queuectl: Program, log: Path, *args: str | Path, env: Mapping[str, str | None] | None = None
    ) -> None:
        self._queuectl = queuectl
        self._log = log
        self.process = queuectl.start_worker(*args, log=log, env=env)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> str:
        return self._log.read_text("utf-8", "surrogateescape")

    def listed(self) -> dict[str, Any] | None:
        """Its entry in `worker list`."""
        workers = self._queuectl("worker", "list", "--json", check=0).json
        return next((worker for worker in workers if worker["pid"] == self.pid), None)

    def wait_until_ready(self, timeout: float = PATIENCE) -> WorkerProcess:
        """Wait until it is registered, or has exited (`--drain` without jobs)."""

        def is_ready() -> bool:
            if (code := self.process.poll()) is not None:
                assert code == 0, f"the worker exited {code}: {self.output}"
                return True
            # The worker prints this line after its registration, so no query is needed.
            return f"(pid {self.pid}) serves" in self.output

        wait_until(is_ready, timeout=timeout, what="the worker to be ready")
        return self

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        """Kill the worker like a crash. Return when its lock is free: its supervisor holds the lock a little longer."""
        found = children(self.pid) if os.path.isdir("/proc/self") else []
        supervisors = [one for one in found if "run_supervisor" in one.words or "warm_server" in one.words]
        self.process.kill()
        self.process.wait()
        wait_until(lambda: all(has_let_go(one.pid) for one in supervisors), what="its supervisor to release the lock")

    def crash(self) -> None:
        """Kill the worker with its supervisor, like the OOM killer or a removed container, so that results of jobs are unknown."""
        self.process.send_signal(signal.SIGSTOP)  # otherwise it would detect the death of its supervisor
        for child in children(self.pid):
            os.kill(child.pid, signal.SIGKILL)
        self.kill()

    def wait(self, timeout: float = 30) -> int:
        """Return its exit code; a negative one is the signal that terminated it."""
        return self.process.wait(timeout)

    def end(self) -> None:
        """Stop the worker at teardown: TERM to finish, TERM to terminate its jobs, KILL."""
        self.process.send_signal(signal.SIGCONT)  # a test may have stopped it
        # The first signal is enough for an idle worker. Results of the others are not needed any more.
        for number, patience in ((signal.SIGTERM, 0.3), (signal.SIGTERM, 10), (signal.SIGKILL, 10)):
            if self.process.poll() is not None:
                return
            self.process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(patience)


class Leftovers:
    """The processes with this data directory in their environment: all that queuectl or its jobs have started."""

    def __init__(self, home: Path) -> None:
        self._home = str(home)
        self._mark = f"QUEUECTL_HOME={home}".encode()

    def __iter__(self) -> Iterator[int]:
        # Forked processes have it too, but the kernel does not show it.
        yield from [one.pid for one in list(living) if one.home == self._home and one.is_running]
        for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
            if name.isdecimal() and int(name) != os.getpid() and self._mark in _environ(name).split(b"\0"):
                yield int(name)

    def end(self) -> list[str]:
        """Kill the processes and return their command lines."""
        killed = []
        for pid in self:
            with contextlib.suppress(OSError):
                words = Path("/proc", str(pid), "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                os.kill(pid, signal.SIGKILL)
                killed.append(f"{pid}: {' '.join(words).strip()}")
        return killed

    def wait_until_none(self, timeout: float = 20) -> None:
        wait_until(lambda: not list(self), timeout=timeout, what="all started processes to exit")

    def end_the_late(self) -> list[str]:
        """Kill processes that do not exit within some seconds, and return their command lines."""
        try:
            self.wait_until_none()
        except AssertionError:
            return self.end()
        return []


def _environ(pid: str) -> bytes:
    """Return the environment, empty if the process has exited or is not accessible. Uses os.open for speed, because every test
    reads it for all processes of the host."""
    try:
        file = os.open(f"/proc/{pid}/environ", os.O_RDONLY)
    except OSError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(file, 1 << 18), b""))
    except OSError:
        return b""
    finally:
        os.close(file)
