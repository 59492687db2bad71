"""A server with network latency: a local proxy that delays the data and counts round trips."""

from __future__ import annotations

import asyncio
import threading

DELAY = 0.01  # seconds each way: far longer than either side takes to send a complete message


class Far:
    """A proxy for a server with a Unix socket. `round_trips` counts how often the client waited for a response."""

    def __init__(self, socket: str) -> None:
        self.round_trips = 0
        self.port = 0
        self._socket = socket
        self._said_last = ""
        is_open = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve(is_open)), daemon=True).start()
        is_open.wait()

    async def _serve(self, is_open: threading.Event) -> None:
        served = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = served.sockets[0].getsockname()[1]
        is_open.set()
        await served.serve_forever()

    async def _connect(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        server, to_server = await asyncio.open_unix_connection(self._socket)
        await asyncio.gather(self._pass(client, to_server, "client"), self._pass(server, to_client, "server"))

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, who: str) -> None:
        loop = asyncio.get_running_loop()
        while data := await source.read(65536):
            loop.call_later(DELAY, self._pass_on, target, data, who)
        loop.call_later(DELAY, target.close)

    def _pass_on(self, target: asyncio.StreamWriter, data: bytes, who: str) -> None:
        self.round_trips += who == "client" != self._said_last
        self._said_last = who
        target.write(data)
