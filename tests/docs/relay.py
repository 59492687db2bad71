"""`queuectl` for the shell of a page: a small program that asks for the real one to be forked, with its own streams, and ends as
that ends. A page has a dozen commands, and most of the time of each would be the start of an interpreter."""

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

# Without `socket` and `json`, which take longer to load than all the rest. No answer: it begins as it would without us.
ASK = """
import _signal, _socket, marshal, os, sys
try:
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    line.connect(sys.argv[1])
    request = marshal.dumps((sys.argv[2:], dict(os.environ), os.getcwd()))
    streams = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
    line.sendmsg([len(request).to_bytes(4)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    while request:
        request = request[line.send(request):]
    _signal.signal(_signal.SIGTERM, lambda *_: line.shutdown(_socket.SHUT_WR))  # passed on, see `_answer`
    told = line.recv(4)
except OSError:
    told = b""
if told:
    os._exit(int.from_bytes(told, signed=True) % 256)
os.execv(sys.executable, [sys.executable, "-m", "queuectl", *sys.argv[2:]])
"""

# What an interpreter reads at its start, for whoever types a page. Here the sources of this checkout, there an installed package:
# as for whoever runs the tests.
START: Final = {
    "PYTHONPATH": os.pathsep.join(os.path.abspath(part) for part in sys.path if part and os.path.isdir(part)),
    "LC_ALL": "C.UTF-8",
}
# Not the one of the commands that tests call, which begin differently.
_warm = Warm({**os.environ, **START})
atexit.register(_warm.close)


@contextmanager
def relay(program: Path) -> Iterator[None]:
    """Make `program`; while this lasts, somebody is there to answer it."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as door:
        place = f"{folder}/door"  # here and not beside the program: the name of a socket has to be short
        door.bind(place)
        door.listen()
        ask = program.with_name("ask.py")
        ask.write_text(ASK)
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {ask} {place} "$@"\n')
        program.chmod(0o755)
        threading.Thread(target=_serve, args=(door,), daemon=True).start()
        yield
        door.shutdown(socket.SHUT_RDWR)


def _serve(door: socket.socket) -> None:
    while True:
        try:
            line, _ = door.accept()
        except OSError:  # it was shut
            return
        # Each by itself: a pipe has two of them at once.
        threading.Thread(target=_answer, args=(line,), daemon=True).start()


def forks(env: Mapping[str, str]) -> bool:
    """Whether a command with this environment need not wait for an interpreter to start."""
    return _warm.run(["--version"], input=None, env=env, cwd=None, timeout=60) is not None


def _answer(line: socket.socket) -> None:
    with line:
        head, streams, _, _ = socket.recv_fds(line, 4, 3)
        words, env, cwd = marshal.loads(receive(line, int.from_bytes(head)))
        forked = _warm.start(words, streams=streams, env=env, cwd=Path(cwd))
        for fd in streams:
            os.close(fd)
        if forked is not None:
            # Whoever is told to end says no more: then it is the other that is meant.
            if line in select.select([line, forked._status], [], [])[0]:
                forked.send_signal(signal.SIGTERM)
            line.sendall(forked.wait().to_bytes(4, signed=True))
