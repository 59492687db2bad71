"""Middleware: errors as problem documents (RFC 9457), security headers, and limits for the body of a request."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from queuectl.clock import Cancelled
from queuectl.errors import (
    Conflict,
    InvalidInput,
    InvalidJson,
    NotFound,
    QueuectlError,
    Unavailable,
    UsageError,
    WaitTimeout,
)
from queuectl.store_threads import PoolFull
from queuectl.text import parse_json

MEDIA_TYPE: Final = "application/problem+json"

# The first match wins: WaitTimeout comes before its base class.
_STATUS: Final[tuple[tuple[type[QueuectlError], HTTPStatus], ...]] = (
    (WaitTimeout, HTTPStatus.GATEWAY_TIMEOUT),
    (UsageError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Conflict, HTTPStatus.CONFLICT),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)


class Refused(HTTPException):
    """An error of the HTTP layer."""

    def __init__(
        self, status: HTTPStatus, code: str, detail: str, *, hint: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail, headers)
        self.code = code
        self.hint = hint


class CutOff(Exception):
    """The client read nothing for too long, or the server stops: the response is incomplete."""


def status_of(error: QueuectlError) -> HTTPStatus:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def to_document(error: QueuectlError | Refused) -> dict[str, Any]:
    if isinstance(error, Refused):
        status, detail = HTTPStatus(error.status_code), error.detail
    else:
        status, detail = status_of(error), error.message
    return {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
        "code": error.code,
        "hint": error.hint,
    }


MAX_BODY_BYTES: Final = 16 * 1024 * 1024
BODY_TIMEOUT_SECONDS: Final = 30.0


async def read_body(request: Request, *, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    length = request.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and len(length) < 20 and int(length) > max_bytes:
        raise _too_large(max_bytes)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            kept = bytearray()
            async for piece in request.stream():
                kept += piece
                if len(kept) > max_bytes:
                    raise _too_large(max_bytes)
            return bytes(kept)
    except TimeoutError as exc:
        hint = "split the request into smaller ones"
        raise Refused(
            HTTPStatus.REQUEST_TIMEOUT, "too-slow", f"the request body took longer than {BODY_TIMEOUT_SECONDS:g} s", hint=hint,
            headers={"Connection": "close"},
        ) from exc  # fmt: skip
    except ClientDisconnect as exc:
        raise Refused(
            HTTPStatus.BAD_REQUEST, "cut-off", "the request body is incomplete", hint="send the complete body"
        ) from exc


def _too_large(max_bytes: int) -> Refused:
    return Refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too-large",
        f"the request body is larger than {max_bytes:,} bytes",
        hint="split it into smaller requests, or use queuectl enqueue --file",
        headers={"Connection": "close"},
    )


async def read_json_body(request: Request) -> bytes:
    """Read the body; empty if there is none. It is parsed in a thread: a long one would block the event loop."""
    data = await read_body(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if data and kind != "application/json":
        raise Refused(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "not-json",
            f"expected application/json, got {kind or 'no Content-Type'}",
            hint="send Content-Type: application/json",
        )
    return data


def parse_body(data: bytes) -> Any:
    """Parse a body by the same strict rules as the command line; None if there is none."""
    if not data:
        return None
    try:
        value = parse_json(data.decode())
    except UnicodeDecodeError as exc:
        raise InvalidJson("not UTF-8", hint="encode the body as UTF-8") from exc
    if value is None:
        raise InvalidInput("body", "expected an object, got null", hint="omit the body, or send an object")
    return value


# No resources from other origins, no inline scripts or styles, no framing, no caching.
SECURITY_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers omit Origin for forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

MAX_HEAD_BYTES: Final = 32 * 1024  # of the request line and the headers
_CLOSE: Final = {"Connection": "close"}
_log: Final = logging.getLogger("queuectl.web")


COMPRESSED_TYPES: Final = ("text/html", "text/css", "text/javascript", "application/json", "image/svg+xml")
MIN_COMPRESSED_BYTES: Final = 1024  # smaller ones fit into a packet
_IN_THREAD_BYTES: Final = 256 * 1024  # compressing them would block the event loop for more than some milliseconds


class CompressionMiddleware:
    """Compresses responses that consist of one piece. Streams are left as they are: events, followed logs and exports would be delayed.

    The size of a compressed response can reveal a secret beside text that an attacker selects (BREACH). No response contains the
    token, which is in a cookie that scripts and pages cannot read, and forms have no secret: Origin is checked instead. Another
    site cannot request pages with the cookie, which is SameSite=Strict."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _accepts_gzip(Headers(scope=scope).get("accept-encoding", "")):
            await self._app(scope, receive, send)
            return
        start: Message | None = None  # held back until the first piece of the body

        async def send_compressed(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and _is_compressible(message):
                start = message
                return
            if start is not None:
                head, start = start, None
                headers = MutableHeaders(raw=head["headers"])
                headers.add_vary_header("Accept-Encoding")
                if not message.get("more_body") and len(message.get("body", b"")) >= MIN_COMPRESSED_BYTES:
                    message = {**message, "body": await _compress(message["body"])}
                    headers["Content-Encoding"] = "gzip"
                    headers["Content-Length"] = str(len(message["body"]))
                await send({**head, "headers": headers.raw})
            await send(message)

        await self._app(scope, receive, send_compressed)


def _accepts_gzip(header: str) -> bool:
    return any(re.fullmatch(r"\s*gzip\s*(;\s*q=(1|0\.\d*[1-9])\d*\s*)?", one) for one in header.lower().split(","))


def _is_compressible(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    kind = headers.get("content-type", "").partition(";")[0]
    return kind in COMPRESSED_TYPES and "content-encoding" not in headers


async def _compress(body: bytes) -> bytes:
    if len(body) < _IN_THREAD_BYTES:
        return gzip.compress(body, 5, mtime=0)
    return await asyncio.to_thread(gzip.compress, body, 5, mtime=0)


class ErrorMiddleware:
    """The outermost middleware: turns every exception into a response. `page` renders a problem as HTML; None: not for a browser."""

    def __init__(self, app: ASGIApp, page: Callable[[Request, dict[str, Any]], str | None]) -> None:
        self._app = app
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["app"] = self  # starlette's routes raise errors only if an app is set
        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                present = {name.lower() for name, _ in message["headers"]}
                more = [(name.lower().encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
                message["headers"] = [*message["headers"], *(one for one in more if one[0] not in present)]
            await send(message)

        try:
            _check_head(scope)
            await self._app(scope, receive, send_with_headers)
        except Exception as error:  # noqa: BLE001 - the outermost handler
            known = _to_error(error)
            if begun:
                # Part of the response was sent: break the connection, so that it does not pass for complete.
                _log.warning("a response was cut off: %s", to_document(known)["detail"])
                return
            problem = to_document(known)
            html = self._page(Request(scope), problem)
            body, kind = (json.dumps(problem), MEDIA_TYPE) if html is None else (html, "text/html")
            headers = known.headers if isinstance(known, Refused) else None
            response = Response(body, problem["status"], headers, kind)
            await response(scope, receive, send_with_headers)


def _check_head(scope: Scope) -> None:
    """Check the size of the head. The parser limits it only if it arrives in several packets."""
    size = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in scope["headers"])
    if size > MAX_HEAD_BYTES:
        raise Refused(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            "head-too-large",
            f"the request line and headers are larger than {MAX_HEAD_BYTES:,} bytes",
            hint="send long values in the body",
            headers=_CLOSE,
        )


def _to_error(error: Exception) -> QueuectlError | Refused:
    if isinstance(error, QueuectlError | Refused):
        return error
    if isinstance(error, Cancelled):
        hint = "try again after it has restarted"
        return Refused(
            HTTPStatus.SERVICE_UNAVAILABLE, "ending", "the server is shutting down", hint=hint, headers=_CLOSE
        )
    if isinstance(error, PoolFull):
        return Refused(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "too-many-waiting",
            f"{error.size} long requests are already in progress",
            hint="try again in a moment, or end other requests",
            headers={"Retry-After": "1"},
        )
    if isinstance(error, CutOff):
        return Refused(
            HTTPStatus.REQUEST_TIMEOUT,
            "too-slow",
            "the client did not read the response in time",
            hint="read the response without pauses",
        )
    if isinstance(error, HTTPException):
        status = HTTPStatus(error.status_code)
        hint = "GET /api/v1/openapi.json lists all routes"
        return Refused(status, status.phrase.lower().replace(" ", "-"), status.phrase, hint=hint, headers=error.headers)
    # A bug. Its details are for the operator of the server, not for the client.
    _log.exception("a request failed")
    hint = "the log of queuectl dashboard has the details; please report it"
    return Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", "internal error", hint=hint)
