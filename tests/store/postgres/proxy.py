"""A proxy in front of a server: it forwards, swallows the answers, or cuts the line."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit


class Proxy:
    """`url` leads through it. `swallow` keeps all answers from then on; `cut` ends every connection."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        options = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self._upstream = (Path(options["host"]) / ".s.PGSQL.5432") if "host" in options else None
        self._address = (parts.hostname or "localhost", parts.port or 5432)
        self._folder = tempfile.TemporaryDirectory(prefix="q-")
        options["host"] = self._folder.name
        self.url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[0] + "@", query=urlencode(options)))
        self.answered = threading.Event()  # the server has answered something that was swallowed
        self._swallow = False
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder.name}/.s.PGSQL.5432")
        self._listener.listen()

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._folder.cleanup()

    def swallow(self) -> None:
        self.answered.clear()
        self._swallow = True

    def cut(self) -> None:
        """End every connection; new ones work."""
        self._swallow = False
        gone, self._open = self._open, []  # first: whoever notices comes back at once
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
            self._run(lambda client=client, server=server: self._forward(client, server))  # type: ignore[misc]
            self._run(lambda client=client, server=server: self._forward(server, client, answers=True))  # type: ignore[misc]

    def _forward(self, source: socket.socket, target: socket.socket, *, answers: bool = False) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if answers and self._swallow:
                    self.answered.set()
                    continue
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    def _run(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, daemon=True).start()
