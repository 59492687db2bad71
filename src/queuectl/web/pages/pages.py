"""The routes of the pages, and how a template becomes an answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from queuectl.errors import QueuectlError, Unavailable
from queuectl.web.body import read_body
from queuectl.web.desk import Desk
from queuectl.web.guard import WRONG, Door, no_token, with_cookie
from queuectl.web.pages import undo
from queuectl.web.pages.asked import Ask, Done, Show, Shown, back_to, read_ask
from queuectl.web.pages.notices import Board, Notice, refused
from queuectl.web.pages.rendering import Renderer
from queuectl.web.pages.table import CHANGES, PAGES
from queuectl.web.pages.wording import sentence
from queuectl.web.problems import Refused, to_document
from queuectl.web.rooms import Rooms

_HERE: Final = os.path.dirname(__file__)


class Pages:
    def __init__(self, rooms: Rooms, door: Door) -> None:
        self._rooms = rooms
        self._door = door
        self._board = Board()
        self._renderer = Renderer()

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Route("/undo/{notice}", self.undo, methods=["POST"]),
            *(Route(path, self._page(show), methods=["GET"]) for path, show in PAGES.items()),
            *(Route(path, self._deed(do), methods=["POST"]) for path, do in CHANGES.items()),
            Mount("/static", _Static(directory=os.path.join(_HERE, "static"))),
        ]

    def _page(self, show: Show) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            ask = await read_ask(request)
            notice = request.query_params.get("notice")

            def work(desk: Desk) -> Response:
                return self._respond(desk, ask, show(desk, ask), (notice, self._board.read(notice)))

            return await self._rooms.reads.ask(work)

        return answer

    def _deed(self, do: Show) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            ask = await read_ask(request)

            def work(desk: Desk) -> Response:
                try:
                    found = do(desk.on_behalf(request.state.token.name), ask)
                except Unavailable:
                    raise
                except QueuectlError as error:
                    found = Done(back_to(ask.form, "/"), refused(sentence(error.message), error.hint))
                return self._respond(desk, ask, found)

            # A deed may have to wait: a job that is called off has to be ended first. It is done also if nobody waits for it.
            return await self._rooms.slow_changes.ask(work)

        return answer

    async def undo(self, request: Request) -> Response:
        ask = await read_ask(request)
        notice = self._board.take(ask.param("notice"))

        def work(desk: Desk) -> Response:
            return self._respond(desk, ask, undo.undo(desk.on_behalf(request.state.token.name), ask, notice))

        return await self._rooms.slow_changes.ask(work)

    def _respond(
        self, desk: Desk, ask: Ask, found: Shown | Done, pinned: tuple[str | None, Notice | None] = (None, None)
    ) -> Response:
        if isinstance(found, Done):
            to = URL(found.to)
            if found.notice is not None:
                to = to.include_query_params(notice=self._board.pin(found.notice))
            return RedirectResponse(str(to), HTTPStatus.SEE_OTHER)
        name, notice = pinned
        html = self._renderer.page(desk, ask, found, notice_name=name, notice=notice)
        return HTMLResponse(html, status_code=found.status)

    async def login(self, request: Request) -> Response:
        fields = parse_qs((await read_body(request, most=4096)).decode("ascii", "replace"))
        token = self._door.tokens.find(fields.get("token", [""])[0].strip())
        if token is None:
            raise no_token(WRONG)
        return with_cookie(RedirectResponse("/", HTTPStatus.SEE_OTHER), token, self._door)

    async def logout(self, request: Request) -> Response:
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        answer.delete_cookie(self._door.cookie, httponly=True, samesite="strict", secure=self._door.secure)
        return answer

    def problem(self, request: Request, error: QueuectlError | Refused) -> Response | None:
        """A page about what went wrong, for a browser that asked for a page; else None."""
        if request.url.path.startswith("/api/") or "text/html" not in request.headers.get("accept", ""):
            return None
        said = to_document(error)
        headers = error.headers if isinstance(error, Refused) else None
        return HTMLResponse(self._renderer.problem(said), status_code=said["status"], headers=headers)


class _Static(StaticFiles):
    """Asked for anew at each page, and sent only if it is not the one that the browser has."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response
