"""One connection of a client: patient with those who are slow, and not for ever."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from queuectl.web.problems import MEDIA_TYPE, document

HEAD_SECONDS: Final = 10.0  # until the first request of a connection has come, its headers included
IDLE_SECONDS: Final = 30.0  # from an answer until the next request has come


class Connection(H11Protocol):
    """Closes itself when no request comes in time: otherwise whoever opens many, and says little and slowly, keeps all others out."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def on_response_complete(self) -> None:
        # Before what follows: another request may lie there already. What is left of a body that nobody wanted has to
        # come in this time, too.
        self._wait(IDLE_SECONDS)
        super().on_response_complete()

    def _wait(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        asked: object = self.cycle  # uvicorn's types do not say that there is none before the first request
        if (asked is None or self.cycle.response_complete) and not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is told so as all else is; in the middle of an answer there is nothing to say."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.close()
            return
        # h11 asks for 431 where a head is too long, and says so only in the error that uvicorn keeps to itself.
        status = HTTPStatus.BAD_REQUEST
        hint = "HTTP/1.1, and no more than 32 KiB of headers"
        body = json.dumps(document(status, "not-http", "this request cannot be read", hint)).encode()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"connection", b"close"),
        ]
        head = h11.Response(status_code=status.value, headers=headers, reason=status.phrase.encode())
        for event in (head, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
