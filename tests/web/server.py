"""The real server in a process of its own, on a port of the loopback, and ways to talk to it."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import httpx

from tests.program import Program
from tests.wait import wait_until

FULL: Final = "full-token-of-the-tests"
READ: Final = "read-token-of-the-tests"
API: Final = "/api/v1"


class Raw(NamedTuple):
    """An answer, read from the socket as it is."""

    status: int
    headers: dict[str, str]  # by lower-case name
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """`queuectl dashboard` for a home, or the store at `db`; with the two tokens above."""

    def __init__(self, queuectl: Program, folder: Path, *words: str, db: str | None = None) -> None:
        tokens = folder / "tokens"
        tokens.write_text(f"ours full {FULL}\nviewer read {READ}\n")
        tokens.chmod(0o600)
        self._log = (folder / "dashboard.log").open("wb")
        store = [] if db is None else ["--db", db]
        self.process = queuectl.start(
            "dashboard", "--json", "--port", "0", "--token-file", tokens, *store, *words,
            stdout=subprocess.PIPE, stderr=self._log,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the server did not begin: {self.log}"
        self.said = json.loads(line)
        self.url: str = self.said["url"].rstrip("/")
        self.port = httpx.URL(self.url).port or 0
        self.http = self.client(FULL)

    @property
    def log(self) -> str:
        return Path(self._log.name).read_text("utf-8")

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def client(self, token: str | None = FULL, **more: Any) -> httpx.Client:
        """One that speaks for itself: without a browser's Origin and cookies."""
        said = {} if token is None else {"Authorization": f"Bearer {token}"}
        headers = {**said, **more.pop("headers", {})}
        return httpx.Client(base_url=self.url + API, headers=headers, timeout=20, trust_env=False, **more)

    def get(self, path: str, **params: Any) -> Any:
        answer = self.http.get(path, params=params or None)  # an empty one would take the place of that of the path
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: object = None, *, status: int = 200) -> Any:
        answer = self.http.post(path, json=body) if body is not None else self.http.post(path)
        assert answer.status_code == status, answer.text
        return answer.json()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def send(
        self,
        line: str,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        *,
        token: str | None = FULL,
    ) -> Raw:
        """A request as it is, for what a client of good manners would not send. `Host` is ours unless it is given."""
        pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
        if not any(name.lower() == "host" for name, _ in pairs):
            pairs.insert(0, ("Host", self.host))
        if token is not None:
            pairs.append(("Authorization", f"Bearer {token}"))
        head = "\r\n".join([line, *(f"{name}: {value}" for name, value in pairs), "Connection: close", "", ""])
        with self.connect() as wire:
            with contextlib.suppress(OSError):  # one that has been told to go may not listen any more
                wire.sendall(head.encode("latin-1") + body)
            return read_answer(wire)

    def end(self) -> int:
        """By the word of a supervisor; its exit status."""
        self.http.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        finally:
            self.process.kill()
            self._log.close()
            if self.process.stdout is not None:
                self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def read_answer(wire: socket.socket) -> Raw:
    """All that comes until the other side closes. Status 0: it closed without a word."""
    data = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := wire.recv(65536):
            data += piece
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if len(lines[0].split()) < 2:
        return Raw(0, {}, b"")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return Raw(int(lines[0].split()[1]), headers, body)


def is_closed(wire: socket.socket) -> bool:
    """Whether the other side has let go."""
    wire.setblocking(False)
    try:
        while piece := wire.recv(65536):
            assert piece
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


def events(answer: httpx.Response) -> Iterator[tuple[str, Any]]:
    """Of a stream of server-sent events: their names and what they say."""
    name = ""
    for line in answer.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def wait_for_state(server: Server, job_id: str, state: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def is_so() -> bool:
        seen.update(server.get(f"/jobs/{job_id}"))
        return bool(seen["state"] == state)

    wait_until(is_so, what=f"the job to be {state}")
    return seen
