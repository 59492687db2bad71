"""The application: routes for every operation of the API, the pages, and the layers around them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from queuectl.errors import InvalidInput
from queuectl.queue.exposition import exposition
from queuectl.web import logs, openapi
from queuectl.web.api.operation import Call, Made, Operation, Room
from queuectl.web.api.table import OPERATIONS, ROOT
from queuectl.web.body import read_json
from queuectl.web.desk import Rooms
from queuectl.web.frame import Frame
from queuectl.web.guard import Door, Guard
from queuectl.web.live import EVENTS as LIVE
from queuectl.web.live import Feed
from queuectl.web.pages.pages import Pages

EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(rooms: Rooms, door: Door) -> ASGIApp:
    feed = Feed(rooms.watching)
    pages = Pages(rooms, door)

    @asynccontextmanager
    async def lifespan(_: ASGIApp) -> AsyncIterator[None]:
        yield
        feed.close()

    async def events(request: Request) -> Response:
        query = LIVE.read_query(request.query_params.multi_items())
        return StreamingResponse(feed.stream(query["id"]), media_type="text/event-stream")

    async def log(request: Request) -> Response:
        return await logs.answer(request, rooms)

    async def prometheus(_: Request) -> Response:
        text = await rooms.asking.ask(lambda desk: exposition(desk.reads, is_alive=desk.is_serving()))
        return Response(text, media_type=EXPOSITION)

    async def health(_: Request) -> Response:
        await rooms.asking.ask(lambda desk: desk.reads.now_ms())
        return PlainTextResponse("ok\n")

    special: dict[str, Endpoint] = {LIVE.path: events, logs.OPERATION.path: log}
    routes = [
        Route(
            ROOT + operation.path,
            special.get(operation.path) or _endpoint(operation, rooms),
            methods=[operation.method],
        )
        for operation in OPERATIONS
    ]
    # Not starlette's application: it answers errors itself, before the frame sees them.
    app = Router(
        routes=[
            *routes,
            Route(f"{ROOT}/openapi.json", _document),
            Route("/metrics", prometheus),
            Route("/healthz", health),
            *pages.routes(),
        ],
        lifespan=lifespan,
    )
    return Frame(Guard(app, door), pages.problem)


def _endpoint(operation: Operation, rooms: Rooms) -> Endpoint:
    async def answer(request: Request) -> Response:
        call = Call(
            path=request.path_params,
            query=operation.read_query(request.query_params.multi_items()),
            body=await _body(request, operation),
            headers={param.name.lower(): request.headers.get(param.name) for param in operation.headers},
        )
        room = rooms.waiting if operation.room is Room.WAIT else rooms.asking
        return _response(await room.ask(lambda desk: operation.does(desk, call)), operation)

    answer.__name__ = operation.name
    return answer


async def _body(request: Request, operation: Operation) -> Any:
    if not operation.changes:
        return None
    value = await read_json(request)
    if value is not None and operation.body is None:
        raise InvalidInput("body", "expected none", hint="leave it away")
    return value


def _response(value: Any, operation: Operation) -> Response:
    status = operation.status
    if isinstance(value, Made):
        status = status if value.is_new else HTTPStatus.OK
        value = value.value
    return Response(json.dumps(value), status_code=status, media_type="application/json")


async def _document(_: Request) -> Response:
    return Response(json.dumps(openapi.document()), media_type="application/json")
