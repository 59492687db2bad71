"""A server that is far away: a proxy on the loopback that holds back what it passes on, and counts who waits for whom."""

from __future__ import annotations

import asyncio
import threading

DELAY = 0.01  # seconds each way: far longer than anybody takes to say the rest of what they have to say


class Far:
    """In front of a server whose socket is a file. `round_trips`: how often somebody waited for its answer."""

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
