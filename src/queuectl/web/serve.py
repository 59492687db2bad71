"""The server: binds, says where it is, serves until it is told to end."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from queuectl.errors import CannotListen, InvalidInput
from queuectl.web.app import make_app
from queuectl.web.desk import Desk, Rooms
from queuectl.web.guard import Door
from queuectl.web.tokens import Tokens

LONGEST_HEAD: Final = 32 * 1024  # bytes of the first line and the headers of a request
HEAD_SECONDS: Final = 10.0  # until they have come
FAREWELL: Final = 3  # seconds that open answers get at the end


class Plan(NamedTuple):
    """Where and for whom to serve."""

    host: str
    port: int
    tokens: Tokens
    hosts: frozenset[str] = frozenset()
    certificate: str | None = None
    key: str | None = None
    behind_proxy: bool = False

    @property
    def is_secure(self) -> bool:
        return self.certificate is not None or self.behind_proxy


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there. Raises InvalidInput for a host that is none, CannotListen for a port that is taken."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as exc:
        raise InvalidInput("--host", f"no such host: {host}", hint="like 127.0.0.1, ::1 or 0.0.0.0") from exc
    listener = socket.socket(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as exc:
        listener.close()
        raise CannotListen(f"{host} port {port}", exc.strerror or str(exc)) from exc
    return listener


class _Hasty(H11Protocol):
    """Closes a connection whose request does not come: otherwise whoever opens many and says nothing keeps all others out."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _give_up(self) -> None:
        asked: object = self.cycle  # uvicorn's types do not say that there is none before the first request
        if asked is None and not self.transport.is_closing():
            self.transport.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell = started

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first ends it in peace, the second at once. Unlike uvicorn's it does not raise them again: to be told to end
        is how this ends, and no failure."""
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell()


def serve(make: Callable[[], Desk], plan: Plan, listener: socket.socket, *, started: Callable[[int], None]) -> None:
    """Serve until SIGINT or SIGTERM. `started` is told the port, once whoever knocks is answered."""
    port: int = listener.getsockname()[1]
    door = Door(plan.tokens, port, is_loopback(plan.host), plan.is_secure, plan.hosts)
    with Rooms(make) as rooms:
        _run(make_app(rooms, door), plan, listener, lambda: started(port))


def _run(app: ASGIApp, plan: Plan, listener: socket.socket, started: Callable[[], None]) -> None:
    config = uvicorn.Config(
        app,
        http=_Hasty,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who says that it speaks for another is not believed
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=FAREWELL,
        ssl_certfile=plan.certificate,
        ssl_keyfile=plan.key,
    )
    _Server(config, started).run(sockets=[listener])
