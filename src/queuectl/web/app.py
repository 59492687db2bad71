"""The ASGI application: the operations of the API with their OpenAPI document, the pages, and the middleware around them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from functools import cache, partial
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from queuectl import __version__
from queuectl.clock import Cancelled
from queuectl.errors import QueuectlError
from queuectl.operations.prometheus import format_metrics
from queuectl.store_threads import StorePools, WaitPool, WebSession
from queuectl.web.api import admin, alerts, bulk, jobs, logs, queues, streams
from queuectl.web.api.operation import ApiRequest, Created, Operation, describe, reject_nul
from queuectl.web.api.streams import Feed
from queuectl.web.auth import SAFE, AuthConfig, AuthMiddleware
from queuectl.web.middleware import CompressionMiddleware, ErrorMiddleware, parse_body, read_json_body
from queuectl.web.pages import api
from queuectl.web.pages.routes import Pages
from queuectl.web.schemas import COMPONENTS

ROOT: Final = "/api/v1"

OPERATIONS: Final[tuple[Operation, ...]] = (
    *streams.EVENTS,
    *bulk.BULK,
    *jobs.JOBS,
    *logs.LOGS,
    *streams.STREAMS,
    *bulk.DLQ,
    *queues.QUEUES,
    *queues.BATCHES,
    *queues.CRON,
    *alerts.ALERTS,
    *admin.STATUS,
    *admin.WORKERS,
    *admin.CONFIG,
    *admin.MAINTENANCE,
)
EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(pools: StorePools, auth: AuthConfig, feed: Feed) -> ASGIApp:
    pages = Pages(pools, auth)

    async def prometheus(_: Request) -> Response:
        text = await pools.reads.ask(
            lambda session: format_metrics(session.reads, is_alive=session.is_serving(), clock=session.clock)
        )
        return Response(text, media_type=EXPOSITION)

    async def health(_: Request) -> Response:
        try:
            await pools.reads.ask(lambda session: session.reads.now_ms())
        except QueuectlError:
            # Without the reason: it contains the address of the database, and this page needs no token.
            return PlainTextResponse("the database is unavailable\n", HTTPStatus.SERVICE_UNAVAILABLE)
        return PlainTextResponse("ok\n")

    # Not starlette.Starlette: it handles errors itself, before ErrorMiddleware sees them.
    router = Router(
        routes=[
            *(_route(operation, pools, feed) for operation in OPERATIONS),
            Route(f"{ROOT}/openapi.json", _document),
            Route(f"{ROOT}/docs", pages.page(partial(api.show, document=_json())), methods=["GET"]),
            Route("/metrics", prometheus),
            Route("/healthz", health),
            *pages.routes(),
        ],
        redirect_slashes=False,
    )
    return ErrorMiddleware(CompressionMiddleware(AuthMiddleware(_AllowHeader(router), auth)), pages.problem)


def _route(operation: Operation, pools: StorePools, feed: Feed) -> Route:
    async def stream(request: Request) -> Response:
        query = operation.read_query(request.query_params.multi_items())
        response: Response = await operation.handler(request, query, pools, feed)
        return response

    endpoint = stream if operation.is_stream else _endpoint(operation, pools)
    route = Route(ROOT + operation.path, endpoint, methods=[operation.method], name=operation.name)
    if operation.is_stream:
        route.methods = {operation.method}  # not HEAD, whose request would not end
    return route


class _AllowHeader:
    """Adds all allowed methods to a 405 response: the router looks at the first route of a path only."""

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


def _endpoint(operation: Operation, pools: StorePools) -> Endpoint:
    async def respond(request: Request) -> Response:
        call = ApiRequest(
            path={name: reject_nul(value, name) for name, value in request.path_params.items()},
            query=operation.read_query(request.query_params.multi_items()),
            headers={param.name.lower(): request.headers.get(param.name) for param in operation.headers},
        )
        data = await read_json_body(request) if operation.changes else b""

        def work(session: WebSession) -> Response:
            session.on_behalf(request.state.token.name)
            body = operation.read_body(parse_body(data))
            return _response(operation.handler(session, call._replace(body=body)), operation)

        if not operation.slow:
            return await (pools.changes if operation.changes else pools.reads).ask(work)
        return await _wait(request, work, pools.slow_changes if operation.changes else pools.slow_reads)

    return respond


async def _wait(request: Request, work: Callable[[WebSession], Response], pool: WaitPool) -> Response:
    """Answer a slow request, and give up when the client disconnects."""
    cancelled = threading.Event()
    asked = asyncio.ensure_future(pool.ask(work, cancelled))
    disconnected = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({asked, disconnected}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            raise Cancelled
        return asked.result()
    finally:
        cancelled.set()
        disconnected.cancel()
        asked.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _response(value: Any, operation: Operation) -> Response:
    status, headers = operation.status, {}
    if isinstance(value, Created):
        status = status if value.is_new else HTTPStatus.OK
        headers = {} if value.location is None else {"Location": ROOT + value.location}
        value = value.value
    return Response(json.dumps(value), status_code=status, media_type="application/json", headers=headers)


def document() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(ROOT + operation.path, {})[operation.method.lower()] = describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "queuectl",
            "version": __version__,
            "description": "A durable background job queue for shell commands. Every request needs a token. Errors are problem documents (RFC 9457).",
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {"schemas": COMPONENTS, "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    }


async def _document(_: Request) -> Response:
    return Response(_json(), media_type="application/json")


@cache
def _json() -> str:
    return json.dumps(document())
