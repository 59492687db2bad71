"""A webhook receiver: a real server on loopback that records requests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Received(NamedTuple):
    path: str
    headers: dict[str, str]  # by lower-case name
    body: bytes


Respond = Callable[[BaseHTTPRequestHandler], None]


def say(status: int, text: str = "", **headers: str) -> Respond:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text.encode())

    return respond


class Receiver:
    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[Respond] = []  # for the next calls; then 204

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?key=hidden"

    port = 0


@contextmanager
def silence(receiver: Receiver) -> Iterator[None]:
    """Until the end of this it answers no call."""
    is_over = threading.Event()

    def later(handler: BaseHTTPRequestHandler) -> None:
        is_over.wait(60)
        with suppress(OSError):  # the caller has hung up
            say(204)(handler)

    receiver.answers = [later] * 1000
    try:
        yield
    finally:
        receiver.answers.clear()
        is_over.set()


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = receiver.answers.pop(0) if receiver.answers else say(204)
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.received.append(Received(self.path, headers, body))
            answer(self)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
