"""The program in a process of its own, without the wait for an interpreter to start and for modules to be loaded.

A server loads them once and forks for each call: the child has the words, the environment, the directory and the streams of
that call, has nothing else open, and ends as the program ends. Three of four parts of the time of most commands is
loading, and the tests run some thousand of them, and start some hundred workers.

What the kernel shows of such a process (its command line, its first environment) is what it shows of the server, which is
tests/warm_server.py.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
# What an interpreter looks at when it starts, and so cannot be told when it runs.
OF_THE_START: Final = ("PYTHON", "LANG", "LC_", "LD_", "TZ", "QUEUECTL_DEBUG", "QUEUECTL_PORTABLE")


class Ended(NamedTuple):
    code: int  # negative: the signal
    out: bytes
    err: bytes


def of_the_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(OF_THE_START)}


class Forked:
    """What the tests use of a subprocess.Popen. It is the server's child: how it ended comes through a pipe."""

    def __init__(self, pid: int, status: int, home: str | None) -> None:
        self.pid = pid
        self.home = home
        self.returncode: int | None = None
        self._status = open(status, "rb", 0)  # noqa: SIM115 - until it has told

    @property
    def is_running(self) -> bool:
        """For callers that do not wait for its end: the server reaps it at once."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def poll(self) -> int | None:
        return self._look(0)

    def wait(self, timeout: float | None = None) -> int:
        if (code := self._look(timeout)) is None:
            raise subprocess.TimeoutExpired(f"the program that was forked as {self.pid}", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], seconds)[0]:
            told = self._status.read(4)
            assert len(told) == 4, "the server ended before it"
            self.returncode = int.from_bytes(told, signed=True)
            self._status.close()
            living.discard(self)
        return self.returncode


living: Final[set[Forked]] = set()  # and those whose end was not asked for


class Warm:
    """Ends with this process. `env`: how its interpreter is started, and so which calls it can be forked for."""

    def __init__(self, env: Mapping[str, str] = os.environ) -> None:
        self._lock = threading.Lock()
        self._server: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        # Said beforehand, and not by the test that happens to be the first: one that has another start in mind would get it for
        # itself and for all that come after.
        self._env = {name: value for name, value in of_the_start(env).items() if name != "QUEUECTL_DEBUG"}

    def start(
        self,
        words: Sequence[str],
        *,
        streams: Sequence[int],
        env: Mapping[str, str],
        cwd: Path | None,
        leads: bool = False,
    ) -> Forked | None:
        """A process of its own with these descriptors as 0, 1 and 2; `leads`: in a session of its own, too. None: this one has
        to be started the long way."""
        with self._lock:
            if of_the_start(env) != self._env:
                return None
            server = self._server or self._start(env["PATH"])
            call = {"words": words, "env": dict(env), "cwd": str(cwd or os.getcwd()), "leads": leads}
            request = json.dumps(call).encode()
            status, told = os.pipe()
            socket.send_fds(server, [len(request).to_bytes(4)], [*streams, told])
            os.close(told)
            server.sendall(request)
            forked = Forked(int.from_bytes(receive(server, 4)), status, env.get("QUEUECTL_HOME"))
            living.add(forked)
            return forked

    def run(
        self, words: Sequence[str], *, input: bytes | None, env: Mapping[str, str], cwd: Path | None, timeout: float
    ) -> Ended | None:
        """To its end. None: as above."""
        deadline = time.monotonic() + timeout
        with ExitStack() as ours:

            def ends() -> tuple[Any, Any]:
                read, write = os.pipe()
                return ours.enter_context(open(read, "rb", 0)), ours.enter_context(open(write, "wb", 0))

            stdin, feed = ends() if input is not None else (ours.enter_context(open(os.devnull, "rb", 0)), None)
            (out, stdout), (err, stderr) = ends(), ends()
            given = (stdin, stdout, stderr)
            forked = self.start(words, streams=[one.fileno() for one in given], env=env, cwd=cwd)
            if forked is None:
                return None
            for one in given:
                one.close()
            try:
                found = _talk(feed, input or b"", (out, err), deadline)
                return Ended(forked.wait(max(0.001, deadline - time.monotonic())), *found)
            except (TimeoutError, subprocess.TimeoutExpired):
                forked.kill()
                forked.wait()
                raise subprocess.TimeoutExpired(list(words), timeout) from None

    def _start(self, path: str) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            # With nothing else of that test: the server outlives it.
            own = {**self._env, "PATH": path}
            streams = {"stdin": theirs, "stdout": subprocess.DEVNULL}
            self._process = subprocess.Popen([sys.executable, "-m", "tests.warm_server"], env=own, cwd=ROOT, **streams)
        self._server = ours
        return ours

    def close(self) -> None:
        if self._server is not None and self._process is not None:
            self._server.close()
            self._process.wait(20)
            self._server = None


warm: Final = Warm()  # one for all the tests of this process


def _talk(feed: Any, input: bytes, streams: Sequence[Any], deadline: float) -> list[bytes]:
    """Write all of the one and read all of the others, until no process has them open."""
    found: dict[Any, list[bytes]] = {stream: [] for stream in streams}
    left = memoryview(input)
    with selectors.DefaultSelector() as watch:
        if feed is not None:
            os.set_blocking(feed.fileno(), False)
            watch.register(feed, selectors.EVENT_WRITE)
        for stream in streams:
            watch.register(stream, selectors.EVENT_READ)
        while watch.get_map():
            if (seconds := deadline - time.monotonic()) <= 0:
                raise TimeoutError
            for key, _ in watch.select(seconds):
                if key.fileobj is feed:
                    try:
                        left = left[os.write(key.fd, left[:65_536]) :]
                    except BrokenPipeError:
                        left = left[:0]
                    if not left:
                        watch.unregister(feed)
                        feed.close()
                elif data := os.read(key.fd, 65_536):
                    found[key.fileobj].append(data)
                else:
                    watch.unregister(key.fileobj)
    return [b"".join(found[stream]) for stream in streams]


def receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data
