"""What every answer has around it: the headers that keep a browser from helping an attacker, and errors as documents."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from queuectl.clock import Left
from queuectl.errors import QueuectlError
from queuectl.web.bridge import CutOff
from queuectl.web.problems import Refused, to_document, to_response

# Nothing from elsewhere, no script or style in the text of a page, nobody may frame us, and no page is kept where others find it.
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, browsers do not say where a form of ours comes from either
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

LONGEST_HEAD: Final = 32 * 1024  # bytes of the first line and the headers of a request
_CLOSE: Final = {"Connection": "close"}
_log: Final = logging.getLogger("queuectl.web")


class Frame:
    """The outermost: whatever is raised within becomes an answer. `page` makes one for people of it, None: not theirs to see."""

    def __init__(self, app: ASGIApp, page: Callable[[Request, QueuectlError | Refused], Response | None]) -> None:
        self._app = app
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["app"] = self  # by which starlette's routes know that there is somebody who takes what they raise
        begun = False

        async def send_framed(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                said = {name.lower() for name, _ in message["headers"]}
                more = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(one for one in more if one[0] not in said)]
            await send(message)

        try:
            _check_head(scope)
            await self._app(scope, receive, send_framed)
        except Exception as error:  # noqa: BLE001 - whatever it is: nobody behind us answers
            said = _said(error)
            if begun:
                # Half of an answer is out: the connection has to break, or it would pass for whole.
                _log.warning("an answer was cut off: %s", to_document(said)["detail"])
                return
            request = Request(scope)
            await (self._page(request, said) or to_response(said))(scope, receive, send_framed)


def _check_head(scope: Scope) -> None:
    """The parser minds the size only of a head that comes in pieces."""
    size = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(n) + len(v) for n, v in scope["headers"])
    if size > LONGEST_HEAD:
        raise Refused(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            "head-too-large",
            f"the request line and the headers have more than {LONGEST_HEAD:,} bytes",
            hint="send what is long in the body",
            headers=_CLOSE,
        )


def _said(error: Exception) -> QueuectlError | Refused:
    if isinstance(error, QueuectlError | Refused):
        return error
    if isinstance(error, Left):
        hint = "ask again when it is back"
        return Refused(HTTPStatus.SERVICE_UNAVAILABLE, "ending", "this server ends", hint=hint, headers=_CLOSE)
    if isinstance(error, CutOff):
        return Refused(HTTPStatus.REQUEST_TIMEOUT, "too-slow", "the client took nothing for too long", hint="read on")
    if isinstance(error, HTTPException):
        status = HTTPStatus(error.status_code)
        hint = "GET /api/v1/openapi.json tells what there is"
        return Refused(status, status.phrase.lower().replace(" ", "-"), status.phrase, hint=hint, headers=_plain(error))
    # A fault of ours. What it was is for whoever runs this server, not for whoever asked.
    _log.exception("an answer failed")
    hint = "the log of queuectl dashboard says more; please report it"
    return Refused(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", "something went wrong here", hint=hint)


def _plain(error: HTTPException) -> dict[str, Any]:
    return dict(error.headers or {})
