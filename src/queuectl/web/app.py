"""The application: routes for every operation of the API, the pages, and the layers around them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from queuectl.clock import Left
from queuectl.errors import InvalidInput, QueuectlError
from queuectl.queue.exposition import exposition
from queuectl.web import export, logs, openapi, reading
from queuectl.web.api.operation import Call, Made, Operation, Room, without_nul
from queuectl.web.api.table import OPERATIONS, ROOT
from queuectl.web.body import parse_body, read_json_body
from queuectl.web.desk import Desk
from queuectl.web.frame import Frame
from queuectl.web.guard import SAFE, Door, Guard
from queuectl.web.live import EVENTS as LIVE
from queuectl.web.live import Feed
from queuectl.web.pages.pages import Pages
from queuectl.web.rooms import Lounge, Rooms

EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(rooms: Rooms, door: Door, feed: Feed) -> ASGIApp:
    pages = Pages(rooms, door)

    async def events(request: Request) -> Response:
        query = LIVE.read_query(request.query_params.multi_items())
        feed.check()
        return StreamingResponse(feed.stream(query["id"], brief=query["brief"]), media_type="text/event-stream")

    async def log(request: Request) -> Response:
        return await logs.answer(request, rooms)

    async def exported(request: Request) -> Response:
        return await export.answer(request, rooms)

    async def reading_room(_: Request) -> Response:
        return HTMLResponse(reading.page())

    async def prometheus(_: Request) -> Response:
        text = await rooms.reads.ask(lambda desk: exposition(desk.reads, is_alive=desk.is_serving(), clock=desk.clock))
        return Response(text, media_type=EXPOSITION)

    async def health(_: Request) -> Response:
        try:
            await rooms.reads.ask(lambda desk: desk.reads.now_ms())
        except QueuectlError:  # why is not for everybody: the words name the store
            return PlainTextResponse("the store cannot serve\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return PlainTextResponse("ok\n")

    # Those that stream do not answer HEAD: it would go on for ever, and say nothing.
    streams: dict[str, Endpoint] = {LIVE.path: events, logs.OPERATION.path: log, export.OPERATION.path: exported}
    routes = [
        _route(one, streams.get(one.path) or _endpoint(one, rooms), head=one.path not in streams) for one in OPERATIONS
    ]
    # Not starlette's application: it answers errors itself, before the frame sees them.
    router = Router(
        routes=[
            *routes,
            Route(f"{ROOT}/openapi.json", _document),
            Route(f"{ROOT}/docs", reading_room),
            Route("/metrics", prometheus),
            Route("/healthz", health),
            *pages.routes(),
        ],
        redirect_slashes=False,
    )
    return Frame(Guard(_Allowing(router), door), pages.problem)


def _route(operation: Operation, endpoint: Endpoint, *, head: bool) -> Route:
    route = Route(ROOT + operation.path, endpoint, methods=[operation.method])
    if not head:
        route.methods = {operation.method}
    return route


class _Allowing:
    """Says of a method that is not allowed all that are: the router looks at the first route of that path only."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._router(scope, receive, send)
        except HTTPException as error:
            if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
                raise
            routes = [
                one for one in self._router.routes if isinstance(one, Route) and one.path_regex.match(scope["path"])
            ]
            methods = {method for one in routes if one.path == routes[0].path for method in one.methods or ()} or SAFE
            raise HTTPException(error.status_code, headers={"Allow": ", ".join(sorted(methods))}) from error


def _endpoint(operation: Operation, rooms: Rooms) -> Endpoint:
    async def answer(request: Request) -> Response:
        call = Call(
            path={name: without_nul(value, name) for name, value in request.path_params.items()},
            query=operation.read_query(request.query_params.multi_items()),
            headers={param.name.lower(): request.headers.get(param.name) for param in operation.headers},
        )
        data = await read_json_body(request) if operation.changes else b""

        def work(desk: Desk) -> Response:
            desk.on_behalf(request.state.token.name)
            return _response(operation.does(desk, call._replace(body=_parse(data, operation))), operation)

        if operation.room is Room.ASK:
            return await (rooms.changes if operation.changes else rooms.reads).ask(work)
        return await _wait(request, work, rooms.slow_changes if operation.changes else rooms.slow_reads)

    answer.__name__ = operation.name
    return answer


async def _wait(request: Request, work: Callable[[Desk], Response], pool: Lounge) -> Response:
    """The same for what may take long: given up when the client leaves."""
    left = threading.Event()
    asked = asyncio.ensure_future(pool.ask(work, left))
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({asked, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            raise Left
        return asked.result()
    finally:
        left.set()
        gone.cancel()
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _parse(data: bytes, operation: Operation) -> Any:
    value = parse_body(data)
    if value is not None and operation.body is None:
        raise InvalidInput("body", "expected none", hint="leave it away")
    return value


def _response(value: Any, operation: Operation) -> Response:
    status, headers = operation.status, {}
    if isinstance(value, Made):
        status = status if value.is_new else HTTPStatus.OK
        headers = {} if value.location is None else {"Location": ROOT + value.location}
        value = value.value
    return Response(json.dumps(value), status_code=status, media_type="application/json", headers=headers)


async def _document(_: Request) -> Response:
    return Response(json.dumps(openapi.document()), media_type="application/json")
