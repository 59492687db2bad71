"""The server: binds, says where it is, serves until it is told to end."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import uvicorn
from starlette.types import ASGIApp

from queuectl.errors import CannotListen, FileUnreadable, InvalidInput
from queuectl.web.alerting import keep_watch
from queuectl.web.app import make_app
from queuectl.web.connection import IDLE_SECONDS, Connection
from queuectl.web.frame import LONGEST_HEAD
from queuectl.web.guard import Door
from queuectl.web.live import Feed
from queuectl.web.minutes import keep_minutes
from queuectl.web.rooms import MakeDesk, Rooms
from queuectl.web.tokens import Tokens

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


def check_tls(certificate: str, key: str) -> None:
    """Raises FileUnreadable or InvalidInput for files that cannot be used, before anything listens."""
    for path in (certificate, key):
        try:
            with open(path, "rb") as file:
                file.read(1)
        except OSError as exc:
            raise FileUnreadable(path, exc.strerror or str(exc)) from exc
    try:
        # A password would be asked for on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as exc:
        hint = "PEM files, and the key without a password"
        raise InvalidInput(
            "--tls-cert", f"{certificate} and {key} are no pair of a certificate and its key", hint=hint
        ) from exc


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
        _notice_who_is_gone(listener)
        listener.bind(address)
        listener.listen(1024)
    except OSError as exc:
        listener.close()
        raise CannotListen(f"{host} port {port}", exc.strerror or str(exc)) from exc
    return listener


def _notice_who_is_gone(listener: socket.socket) -> None:
    """A machine that was switched off says nothing, and whoever follows a silent job is told nothing: such a seat would be taken
    for as long as that job runs. Its connections inherit this."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class _Server(uvicorn.Server):
    def __init__(
        self,
        config: uvicorn.Config,
        *,
        started: Callable[[], None],
        beside: Callable[[], Coroutine[None, None, None]],
        ending: Callable[[], None],
    ) -> None:
        """`beside` goes on beside the answers, for as long as there are any."""
        super().__init__(config)
        self._started = started
        self._beside = beside
        self._ending = ending

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
        self._task = asyncio.create_task(self._beside())
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._task.cancel()
        self._ending()  # or those who wait and those who watch would hold it up
        await super().shutdown(sockets)


def serve(make: MakeDesk, plan: Plan, listener: socket.socket, *, started: Callable[[int], None]) -> None:
    """Serve until SIGINT or SIGTERM. `started` is told the port, once whoever knocks is answered."""
    port: int = listener.getsockname()[1]
    door = Door(plan.tokens, port, is_loopback(plan.host), plan.is_secure, plan.hosts)
    with Rooms(make) as rooms:
        feed = Feed(rooms.watching)

        def ending() -> None:
            feed.close()
            rooms.leave()

        config = _configure(make_app(rooms, door, feed), plan)

        async def beside() -> None:
            await asyncio.gather(keep_minutes(rooms.changes), keep_watch(rooms.alerting))

        _Server(config, started=lambda: started(port), beside=beside, ending=ending).run(sockets=[listener])


def _configure(app: ASGIApp, plan: Plan) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who says that it speaks for another is not believed
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=int(IDLE_SECONDS),
        timeout_graceful_shutdown=FAREWELL,
        ssl_certfile=plan.certificate,
        ssl_keyfile=plan.key,
    )
