"""Reading what a client sends: never more than so much, never for longer than so long, and JSON only."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request

from queuectl.errors import InvalidInput, InvalidJson
from queuectl.job.strictjson import parse_json
from queuectl.web.problems import Refused

MOST: Final = 16 * 1024 * 1024
SECONDS: Final = 30.0


async def read_body(request: Request, *, most: int = MOST) -> bytes:
    said = request.headers.get("content-length", "0")
    if said.isascii() and said.isdigit() and len(said) < 20 and int(said) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(SECONDS):
            kept = bytearray()
            async for piece in request.stream():
                kept += piece
                if len(kept) > most:
                    raise _too_large(most)
            return bytes(kept)
    except TimeoutError as exc:
        hint = "send it faster, or in parts"
        raise Refused(
            HTTPStatus.REQUEST_TIMEOUT, "too-slow", f"the body took over {SECONDS:g} s", hint=hint,
            headers={"Connection": "close"},
        ) from exc  # fmt: skip
    except ClientDisconnect as exc:
        raise Refused(HTTPStatus.BAD_REQUEST, "cut-off", "the body ended early", hint="send all of it") from exc


def _too_large(most: int) -> Refused:
    return Refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too-large",
        f"the body has more than {most:,} bytes",
        hint="send it in parts, or use queuectl enqueue --file",
        headers={"Connection": "close"},
    )


async def read_json_body(request: Request) -> bytes:
    """Empty for no body at all. Not parsed: what is long takes seconds, and here nobody else would be served meanwhile."""
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
    """The value, by the same strict rules as on the command line; None for no body at all."""
    if not data:
        return None
    try:
        value = parse_json(data.decode())
    except UnicodeDecodeError as exc:
        raise InvalidJson("not UTF-8", hint="JSON is UTF-8") from exc
    if value is None:
        raise InvalidInput("body", "expected an object, got null", hint="leave it away, or say something")
    return value
