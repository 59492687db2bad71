"""The program in a process of its own, without the wait for an interpreter to start and for modules to be loaded.

A server loads them once and forks for each call: the child has the words, the environment, the directory and the streams of
that call, and ends as the program ends. Three of four parts of the time of most commands is loading, and the tests run
some thousand of them.

`python -m tests.warm` is that server; its socket is descriptor 0.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

ROOT: Final = Path(__file__).parents[1]
# What an interpreter looks at when it starts, and so cannot be told when it runs.
OF_THE_START: Final = ("PYTHON", "LANG", "LC_", "LD_", "TZ", "QUEUECTL_DEBUG")


class Ended(NamedTuple):
    code: int  # negative: the signal
    out: bytes
    err: bytes


def of_the_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(OF_THE_START)}


# ── here ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Warm:
    """One for all the tests of this process; ends with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._env: dict[str, str] = {}

    def run(
        self, words: Sequence[str], *, input: bytes | None, env: Mapping[str, str], cwd: Path | None, timeout: float
    ) -> Ended | None:
        """None: this one has to be started the long way."""
        if not self._lock.acquire(blocking=False):
            return None  # it is busy with what another thread asked for
        try:
            server = self._server or self._start(env)
            if of_the_start(env) != self._env:
                return None
            request = {"words": words, "env": dict(env), "cwd": str(cwd or os.getcwd())}
            return _call(server, json.dumps(request).encode(), input, timeout=timeout)
        finally:
            self._lock.release()

    def _start(self, env: Mapping[str, str]) -> socket.socket:
        self._env = of_the_start(env)
        ours, theirs = socket.socketpair()
        with theirs:
            # With nothing of the test that happens to be the first: it outlives that one.
            own = {**self._env, "PATH": env["PATH"]}
            streams = {"stdin": theirs, "stdout": subprocess.DEVNULL}
            self._process = subprocess.Popen([sys.executable, "-m", "tests.warm"], env=own, cwd=ROOT, **streams)
        self._server = ours
        return ours

    def close(self) -> None:
        if self._server is not None and self._process is not None:
            self._server.close()
            self._process.wait(20)
            self._server = None


warm: Final = Warm()


def _call(server: socket.socket, request: bytes, input: bytes | None, *, timeout: float) -> Ended:
    deadline = time.monotonic() + timeout
    with ExitStack() as ours:

        def ends() -> tuple[Any, Any]:
            read, write = os.pipe()
            return ours.enter_context(open(read, "rb", 0)), ours.enter_context(open(write, "wb", 0))

        stdin, feed = ends() if input is not None else (ours.enter_context(open(os.devnull, "rb", 0)), None)
        (out, stdout), (err, stderr) = ends(), ends()
        given = (stdin, stdout, stderr)
        socket.send_fds(server, [len(request).to_bytes(4)], [one.fileno() for one in given])
        server.sendall(request)
        pid = int.from_bytes(_receive(server, 4))
        for one in given:
            one.close()
        try:
            found = _talk(feed, input or b"", (out, err), deadline)
            server.settimeout(max(0.001, deadline - time.monotonic()))
            status = _receive(server, 4)
        except TimeoutError:
            os.kill(pid, 9)
            server.settimeout(None)
            _receive(server, 4)
            raise subprocess.TimeoutExpired(request.decode(), timeout) from None
        server.settimeout(None)
    return Ended(int.from_bytes(status, signed=True), *found)


def _talk(feed: Any, input: bytes, streams: Sequence[Any], deadline: float) -> list[bytes]:
    """Write all of the one and read all of the others, until nobody has them open."""
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


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


# ── there ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def serve() -> None:
    main = _load()
    connection = socket.socket(fileno=os.dup(0))
    while True:
        head, streams, _, _ = socket.recv_fds(connection, 4, 3)
        if not head:
            return
        request = json.loads(_receive(connection, int.from_bytes(head)))
        if not (pid := os.fork()):
            connection.close()
            _be(main, streams, **request)
        for fd in streams:
            os.close(fd)
        connection.sendall(pid.to_bytes(4))
        _, status = os.waitpid(pid, 0)
        connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))


def _load() -> Callable[[], NoReturn]:
    import gc
    import importlib
    import pkgutil

    import queuectl.cli
    from queuectl.cli.main import main

    gc.disable()
    for module in pkgutil.walk_packages(queuectl.__path__, "queuectl."):
        if not module.name.endswith(("__main__", ".keep")):
            importlib.import_module(module.name)
    gc.freeze()
    gc.enable()
    return main


def _be(
    main: Callable[[], NoReturn], streams: Sequence[int], *, words: list[str], env: dict[str, str], cwd: str
) -> None:
    try:
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
            os.close(fd)
        # As at the start of an interpreter: they remember whether they are files, pipes or terminals.
        how = {"encoding": sys.stdin.encoding, "closefd": False}
        sys.stdin = os.fdopen(0, errors=sys.stdin.errors, **how)
        sys.stdout = os.fdopen(1, "w", errors=sys.stdout.errors, **how)
        sys.stderr = os.fdopen(2, "w", 1, errors=sys.stderr.errors, **how)
        os.environ.clear()
        os.environ.update(env)
        os.chdir(cwd)
        sys.path[0] = cwd
        sys.argv[1:] = words
        sys.orig_argv[:] = [sys.executable, "-m", "queuectl", *words]
        main()
    except BaseException:  # noqa: BLE001 - as the interpreter would
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    serve()
