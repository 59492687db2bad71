"""The routes of the pages, and how a template becomes an answer."""

from __future__ import annotations

import os
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from queuectl.errors import QueuectlError
from queuectl.web.body import read_body
from queuectl.web.guard import Door, no_token, with_cookie
from queuectl.web.problems import Refused, to_document
from queuectl.web.rooms import Rooms

_HERE: Final = os.path.dirname(__file__)


class Pages:
    def __init__(self, rooms: Rooms, door: Door) -> None:
        self._rooms = rooms
        self._door = door
        # Every value is escaped, whatever its name: job text can never become markup.
        self._templates = Environment(
            loader=FileSystemLoader(os.path.join(_HERE, "templates")),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Route("/", self.overview),
            Mount("/static", StaticFiles(directory=os.path.join(_HERE, "static"))),
        ]

    async def overview(self, request: Request) -> Response:
        return self.render("overview.html", title="Overview")

    async def login(self, request: Request) -> Response:
        fields = parse_qs((await read_body(request, most=4096)).decode("ascii", "replace"))
        token = self._door.tokens.find(fields.get("token", [""])[0].strip())
        if token is None:
            raise no_token("this token is not, or no longer, the right one")
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
        return self.render("problem.html", title=said["title"], status=said["status"], problem=said)

    def render(self, template: str, *, status: int = 200, **values: Any) -> Response:
        return HTMLResponse(self._templates.get_template(template).render(values), status_code=status)
