"""A server, and many HTTP clients in one process, each with its own connection."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from _bench import Lab


@contextmanager
def serving(lab: Lab, words: list[str], *, home: Path | None = None) -> Iterator[tuple[int, str]]:
    """Return the port and the token of a server that prints its URL like `dashboard --json`."""
    process = subprocess.Popen(words, env=lab.environment(home or lab.new_home()), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        address, _, token = json.loads(process.stdout.readline())["url"].partition("/?token=")
        yield int(address.rpartition(":")[2]), token
    finally:
        process.terminate()
        process.wait(20)


@dataclass
class Load:
    """The results. `took` has the seconds of each request, by its kind."""

    answered: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    took: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0


class Client:
    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        status = int((await self._reader.readline()).split()[1])
        size = 0
        while (line := await self._reader.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        return status, await self._reader.readexactly(size)


async def crowd(port: int, token: str, *, clients: int, each: int) -> Load:
    """Let every client add `each` jobs and read the status as often, in turn."""
    load = Load(took={"enqueue": [], "status": []})
    job = json.dumps({"command": "true"}).encode()

    async def one() -> None:
        async with Client(port, token) as client:
            for _ in range(each):
                for name, method, path, body in (
                    ("enqueue", "POST", "/api/v1/jobs", job),
                    ("status", "GET", "/api/v1/status", b""),
                ):
                    began = time.perf_counter()
                    status, answer = await client.ask(method, path, body)
                    load.took[name].append(time.perf_counter() - began)
                    if status not in {200, 201}:
                        load.failed.append(answer.decode())
                    elif name == "enqueue":
                        load.answered.append(json.loads(answer)["id"])

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    load.seconds = time.perf_counter() - began
    return load
