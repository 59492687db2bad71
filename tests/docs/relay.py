"""`queuectl` for the shell of a page: a small program that requests a fork of the real one with its own streams, and exits with the
same status. A page has a dozen commands, and most of the time of each would be the start of an interpreter."""

from __future__ import annotations

import atexit
import marshal
import os
import select
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.warm import Warm, receive

# Without `socket` and `json`, which take longer to load than the rest. Without a response, it starts the real program.
ASK = """
import _signal, _socket, marshal, os, sys
try:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(sys.argv[1])
    request = marshal.dumps((sys.argv[2:], dict(os.environ), os.getcwd()))
    streams = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
    connection.sendmsg([len(request).to_bytes(4)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    while request:
        request = request[connection.send(request):]
    _signal.signal(_signal.SIGTERM, lambda *_: connection.shutdown(_socket.SHUT_WR))  # passed on, see `_answer`
    status = connection.recv(4)
except OSError:
    status = b""
if status:
    os._exit(int.from_bytes(status, signed=True) % 256)
os.execv(sys.executable, [sys.executable, "-m", "queuectl", *sys.argv[2:]])
"""

# Variables that an interpreter reads at its start. They select the same package as for the tests: this checkout or an installed
# one.
START: Final = {
    "PYTHONPATH": os.pathsep.join(os.path.abspath(part) for part in sys.path if part and os.path.isdir(part)),
    "LC_ALL": "C.UTF-8",
}
# Separate from the server for commands of tests, which start with another environment.
_warm = Warm({**os.environ, **START})
atexit.register(_warm.close)


@contextmanager
def relay(program: Path) -> Iterator[None]:
    """Create `program`, and serve its requests during the block."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        place = f"{folder}/listener"  # not beside the program, because the path of a socket must be short
        listener.bind(place)
        listener.listen()
        ask = program.with_name("ask.py")
        ask.write_text(ASK)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {ask} {place} "$@"\n')
        program.chmod(0o755)
        threading.Thread(target=_serve, args=(listener,), daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:  # the listener was closed
            return
        # One thread per command: a pipe runs two at once.
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


def forks(env: Mapping[str, str]) -> bool:
    """Return whether a command with this environment can be forked."""
    return _warm.run(["--version"], input=None, env=env, cwd=None, timeout=60) is not None


def _answer(connection: socket.socket) -> None:
    with connection:
        head, streams, _, _ = socket.recv_fds(connection, 4, 3)
        words, env, cwd = marshal.loads(receive(connection, int.from_bytes(head)))
        forked = _warm.start(words, streams=streams, env=env, cwd=Path(cwd))
        for fd in streams:
            os.close(fd)
        if forked is not None:
            # After SIGTERM the client shuts down its side, which passes the signal on to the command.
            if connection in select.select([connection, forked._status], [], [])[0]:
                forked.send_signal(signal.SIGTERM)
            connection.sendall(forked.wait().to_bytes(4, signed=True))
