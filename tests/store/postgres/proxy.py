"""A proxy in front of a server: it forwards, delays or swallows the answers, or cuts the line."""

from __future__ import annotations

import contextlib
import queue
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit


class _Line:
    """One connection of a client, and the answers that have not arrived yet with the moment at which they do."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.is_answered = True
        self.answers: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()


class Proxy:
    """`url` leads through it. `swallow` keeps all answers from then on; `cut` ends every connection. `delay`: how many seconds
    later each answer arrives, as from a server on another continent."""

    def __init__(self, url: str, *, delay: float = 0.0) -> None:
        self.round_trips = 0  # how often a client has sent something after an answer, over all connections
        self._delay = delay
        parts = urlsplit(url)
        options = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._upstream = (Path(options["host"]) / ".s.PGSQL.5432") if "host" in options else None
        self._address = (parts.hostname or "localhost", parts.port or 5432)
        self._folder = tempfile.TemporaryDirectory(prefix="q-")
        options["host"] = self._folder.name
        self.url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[0] + "@", query=urlencode(options)))
        self.answered = threading.Event()  # the server has answered something that was swallowed
        self.given_up = threading.Event()  # a client has closed a connection since
        self._swallow = False
        self._is_closed = threading.Event()
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder.name}/.s.PGSQL.5432")
        self._listener.listen()

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._folder.cleanup()

    def swallow(self) -> None:
        self.answered.clear()
        self.given_up.clear()
        self._swallow = True

    def cut(self) -> None:
        """End every connection; new ones work."""
        self._swallow = False
        gone, self._open = self._open, []  # first: clients reconnect at once
        for one in gone:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._upstream is not None:
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._upstream))
            else:
                server = socket.create_connection(self._address)
            self._open += [client, server]
            line = _Line(client, server)
            self._run(lambda line=line: self._forward_questions(line))  # type: ignore[misc]
            self._run(lambda line=line: self._receive_answers(line))  # type: ignore[misc]
            self._run(lambda line=line: self._forward_answers(line))  # type: ignore[misc]

    def _forward_questions(self, line: _Line) -> None:
        with contextlib.suppress(OSError):
            while data := line.client.recv(65536):
                self.round_trips += line.is_answered
                line.is_answered = False
                line.server.sendall(data)
        self.given_up.set()
        with contextlib.suppress(OSError):
            line.server.shutdown(socket.SHUT_WR)

    def _receive_answers(self, line: _Line) -> None:
        with contextlib.suppress(OSError):
            while data := line.server.recv(65536):
                line.answers.put((time.monotonic() + self._delay, data))
        line.answers.put((0.0, b""))

    def _forward_answers(self, line: _Line) -> None:
        with contextlib.suppress(OSError):
            while (answer := line.answers.get())[1]:
                due, data = answer
                if self._swallow:
                    self.answered.set()
                    continue
                self._is_closed.wait(max(0.0, due - time.monotonic()))
                line.is_answered = True
                line.client.sendall(data)
        with contextlib.suppress(OSError):
            line.client.shutdown(socket.SHUT_WR)

    def _run(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, daemon=True).start()
