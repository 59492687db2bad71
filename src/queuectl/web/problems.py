"""What went wrong, for whoever asked over HTTP: a problem document (RFC 9457) with our code and hint beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.responses import Response

from queuectl.errors import Conflict, NotFound, QueuectlError, Unavailable, UsageError, WaitTimeout

MEDIA_TYPE: Final = "application/problem+json"

# The kind of an error is all that is needed. The first that fits: WaitTimeout stands before what it also is.
_STATUS: Final[tuple[tuple[type[QueuectlError], HTTPStatus], ...]] = (
    (WaitTimeout, HTTPStatus.GATEWAY_TIMEOUT),
    (UsageError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (NotFound, HTTPStatus.NOT_FOUND),
    (Conflict, HTTPStatus.CONFLICT),
    (Unavailable, HTTPStatus.SERVICE_UNAVAILABLE),
)


class Refused(Exception):
    """What HTTP itself refuses, before anybody of ours is asked."""

    def __init__(
        self, status: HTTPStatus, code: str, detail: str, *, hint: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.hint = hint
        self.headers = dict(headers or {})


def status_of(error: QueuectlError) -> HTTPStatus:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), HTTPStatus.INTERNAL_SERVER_ERROR)


def document(status: HTTPStatus, code: str, detail: str, hint: str) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
        "code": code,
        "hint": hint,
    }


def to_document(error: QueuectlError | Refused) -> dict[str, Any]:
    if isinstance(error, Refused):
        return document(error.status, error.code, error.detail, error.hint)
    return document(status_of(error), error.code, error.message, error.hint)


def to_response(error: QueuectlError | Refused) -> Response:
    said = to_document(error)
    headers = error.headers if isinstance(error, Refused) else {}
    return Response(json.dumps(said), status_code=said["status"], media_type=MEDIA_TYPE, headers=headers)
