"""`python -m tests.warm_server`: loads all modules once and forks for each call that tests/warm.py sends; its socket is
descriptor 0."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NoReturn

from tests.warm import receive

PRACTICE = (
    ("enqueue", "--id", "j", "true"),
    ("list", "--json"),
    ("show", "j", "--json"),
    ("status", "--json"),
    ("list",),
)


def serve() -> None:
    main = _load()
    connection = socket.socket(fileno=os.dup(0))
    waiting: dict[int, int] = {}  # a child -> where to say how it ended
    rung, bell = os.pipe()
    os.set_blocking(rung, False)
    os.set_blocking(bell, False)
    signal.set_wakeup_fd(bell, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([connection, rung], [], [])
        if rung in ready:
            os.read(rung, 4096)
            _tell(waiting)
        if connection in ready:
            head, given, _, _ = socket.recv_fds(connection, 4, 4)
            if not head:
                return
            *streams, told = given
            request = json.loads(receive(connection, int.from_bytes(head)))
            if not (pid := os.fork()):
                _be(main, streams, **request)
            waiting[pid] = told
            for fd in streams:
                os.close(fd)
            connection.sendall(pid.to_bytes(4))


def _tell(waiting: dict[int, int]) -> None:
    """Reap children that have ended, and report how."""
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        told = waiting.pop(pid)
        with suppress(BrokenPipeError):  # the caller is gone
            os.write(told, os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
        os.close(told)


def _load() -> Callable[[], NoReturn]:
    import gc
    import importlib
    import pkgutil

    import queuectl.cli
    from queuectl.cli.main import main

    gc.disable()
    for module in pkgutil.walk_packages(queuectl.__path__, "queuectl."):
        if not module.name.endswith(("__main__", ".run_supervisor")):
            importlib.import_module(module.name)
    _practise()
    gc.freeze()
    gc.enable()
    return main


def _practise() -> None:
    """Some commands on a store that is thrown away: what is read, parsed or compiled at a first use is then there for all."""
    import io

    from queuectl.cli.main import run
    from tests.swift import swift_folder

    with swift_folder() as folder:
        os.environ["QUEUECTL_HOME"] = folder
        for words in PRACTICE:
            code = run(words, stdin=io.StringIO(), stdout=io.StringIO(), stderr=io.StringIO())
            assert code == 0, words
        del os.environ["QUEUECTL_HOME"]


def _take(descriptors: Sequence[int]) -> None:
    """Have these as the first, and nothing else open."""
    signal.set_wakeup_fd(-1)
    for number, fd in enumerate(descriptors):
        os.dup2(fd, number)
    os.closerange(len(descriptors), os.sysconf("SC_OPEN_MAX"))


def _be(
    main: Callable[[], NoReturn],
    streams: Sequence[int],
    *,
    words: list[str],
    env: dict[str, str],
    cwd: str,
    leads: bool,
) -> None:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _take(streams)
        if leads:
            os.setsid()
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
