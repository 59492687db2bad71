"""The HTTP server of the dashboard: bind, serve, shut down."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from queuectl.clock import Cancelled
from queuectl.errors import CannotListen, FileUnreadable, InvalidInput, QueuectlError
from queuectl.jobs.stats import Span
from queuectl.store_threads import MakeSession, StorePool, StorePools, WebSession
from queuectl.web.api.alerts import alert_delivery
from queuectl.web.api.streams import Feed
from queuectl.web.app import make_app
from queuectl.web.auth import AuthConfig, Tokens
from queuectl.web.middleware import MAX_HEAD_BYTES

HEAD_SECONDS: Final = 10.0  # from accept until the first request with all its headers
IDLE_SECONDS: Final = 30.0  # from a response until the next request with all its headers

Address = tuple[str, int]


class Connections:
    """The open connections by the address of the client, each with its requests in progress or the timer that closes it."""

    def __init__(self) -> None:
        self._open: dict[Address, socket.socket] = {}
        self._requests: dict[Address, int] = {}
        self._timers: dict[Address, asyncio.TimerHandle] = {}

    def accept(self, connection: socket.socket, client: Address) -> None:
        self._open[client] = connection
        self._requests[client] = 0
        self._start_timer(client, HEAD_SECONDS)

    def begin_request(self, client: Address) -> None:
        if client in self._open:
            self._requests[client] += 1
            self._timers[client].cancel()

    def end_request(self, client: Address) -> None:
        if client in self._open:
            self._requests[client] -= 1
            if self._requests[client] == 0:  # a pipelined request may have begun already
                self._start_timer(client, IDLE_SECONDS)

    def _start_timer(self, client: Address, seconds: float) -> None:
        if client in self._timers:
            self._timers[client].cancel()
        self._timers[client] = asyncio.get_running_loop().call_later(seconds, self._expire, client)

    def _expire(self, client: Address) -> None:
        connection = self._open.pop(client)
        del self._requests[client], self._timers[client]
        if connection.fileno() >= 0:  # otherwise asyncio has closed it
            try:
                # Only the reading side: asyncio sees the end of the input, sends what it still has, and closes.
                connection.shutdown(socket.SHUT_RD)
            except OSError:
                pass  # the client has reset the connection


class Listener(socket.socket):
    """A listening socket that records the connections it accepts."""

    connections: Connections | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        if self.connections is not None:
            self.connections.accept(connection, address[:2])
        return connection, address


class RequestTracker:
    """Middleware that records in `connections` when the requests of a client begin and end."""

    def __init__(self, app: ASGIApp, connections: Connections) -> None:
        self._app = app
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = tuple(scope["client"])
        self._connections.begin_request(client)
        try:
            await self._app(scope, receive, send)
        finally:
            self._connections.end_request(client)


SHUTDOWN_SECONDS: Final = 3  # for responses in progress
SAMPLE_RETRY_SECONDS: Final = 60.0  # without a database, or if it cannot be written
ALERT_SECONDS: Final = 5.0  # between evaluations of the alerts
ALERT_RETRY_SECONDS: Final = 30.0  # after an error

_log: Final = logging.getLogger(__name__)


class ServerConfig(NamedTuple):
    """The address, the tokens and the TLS files."""

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
    """Check the TLS files before the server listens. Raises FileUnreadable or InvalidInput."""
    for path in (certificate, key):
        try:
            with open(path, "rb") as file:
                file.read(1)
        except OSError as exc:
            raise FileUnreadable(path, exc.strerror or str(exc)) from exc
    try:
        # An empty password: otherwise OpenSSL would ask for one on the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError) as exc:
        hint = "both must be PEM files, and the key must not have a password"
        raise InvalidInput(
            "--tls-cert", f"{certificate} and {key} are not a certificate and its key", hint=hint
        ) from exc


def bind(host: str, port: int) -> Listener:
    """Open a listening socket. Raises InvalidInput for an unknown host, CannotListen for a port in use."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as exc:
        raise InvalidInput("--host", f"no such host: {host}", hint="for example 127.0.0.1, ::1 or 0.0.0.0") from exc
    listener = Listener(family, kind, proto)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _enable_keepalive(listener)
        listener.bind(address)
        listener.listen(1024)
    except OSError as exc:
        listener.close()
        raise CannotListen(f"{host} port {port}", exc.strerror or str(exc)) from exc
    return listener


def _enable_keepalive(listener: socket.socket) -> None:
    """Detect clients that have disappeared. Without keepalive a client that follows a silent job would hold a thread until the job
    ends. Accepted connections inherit these options."""
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
        background: Callable[[], Coroutine[None, None, None]],
        on_shutdown: Callable[[], None],
    ) -> None:
        """`background` runs as a task until the server shuts down."""
        super().__init__(config)
        self._started = started
        self._background = background
        self._on_shutdown = on_shutdown

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal stops the server gracefully, the second at once. Unlike uvicorn's method, this one does not raise the
        signal again: a signal is the normal way to stop this server."""
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        asyncio.get_running_loop().set_exception_handler(_log_loop_error)
        self._task = asyncio.create_task(self._background())
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._task.cancel()
        self._on_shutdown()  # first: open waits and event streams would delay the shutdown
        await super().shutdown(sockets)


def _log_loop_error(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """One line instead of a traceback: clients can cause these, for example with invalid data during a response."""
    _log.warning("%s: %r", context["message"], context.get("exception"))


async def repeat(
    pool: StorePool[WebSession], task: Callable[[WebSession], float], *, retry_seconds: float, problem: str | None
) -> None:
    """Run a task in the background until the server stops. It returns the seconds until its next run.

    `problem`: what to log when it begins to fail; None: nothing.
    """
    reported: str | None = None
    while True:
        try:
            seconds = await pool.ask(task)
            reported = None
        except Cancelled:
            return
        except QueuectlError as error:
            if problem is not None and error.message != reported:  # once, not at every run
                _log.warning("%s: %s", problem, error.message)
            reported, seconds = error.message, retry_seconds
        await asyncio.sleep(seconds)


def sample_minute(session: WebSession) -> float:
    """Record a sample. The store writes each minute once, whichever process is first; a missing minute is a gap in a chart."""
    if not session.has_store:
        return SAMPLE_RETRY_SECONDS
    store = session.open_store()
    store.samples.record()
    now_ms = store.now_ms()
    return (Span.MINUTE.begin(now_ms) + Span.MINUTE.ms - now_ms) / 1000


def check_alerts(session: WebSession) -> float:
    if session.has_store and session.reads.alerts.all():
        for sent in alert_delivery(session).check():
            if sent.error is not None:
                _log.warning("the notification of the alert %s failed: %s", sent.alert.name, sent.error.message)
    return ALERT_SECONDS


def serve(make: MakeSession, config: ServerConfig, listener: Listener, *, started: Callable[[int], None]) -> None:
    """Serve until SIGINT or SIGTERM. `started` is called with the port when the server accepts connections."""
    port: int = listener.getsockname()[1]
    auth = AuthConfig(config.tokens, port, is_loopback(config.host), config.is_secure, config.hosts)
    with StorePools(make) as pools:
        feed = Feed(pools.watching)

        def on_shutdown() -> None:
            feed.close()
            pools.stop_waiting()

        listener.connections = Connections()
        uvicorn_config = uvicorn.Config(
            RequestTracker(make_app(pools, auth, feed), listener.connections),
            http="h11",
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # do not trust X-Forwarded-For
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            timeout_keep_alive=int(IDLE_SECONDS),
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            ssl_certfile=config.certificate,
            ssl_keyfile=config.key,
        )

        async def background() -> None:
            alerts = "alerts cannot be evaluated"
            await asyncio.gather(
                repeat(pools.changes, sample_minute, retry_seconds=SAMPLE_RETRY_SECONDS, problem=None),
                repeat(pools.alerting, check_alerts, retry_seconds=ALERT_RETRY_SECONDS, problem=alerts),
            )

        _Server(uvicorn_config, started=lambda: started(port), background=background, on_shutdown=on_shutdown).run(
            sockets=[listener]
        )
