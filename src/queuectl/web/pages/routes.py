"""The routes of the pages: from a request to a rendered template or a redirect."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs

from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from queuectl.errors import NotFound, QueuectlError, Unavailable
from queuectl.store_threads import StorePools, WebSession
from queuectl.web.auth import INVALID_CREDENTIALS, AuthConfig, no_token, with_cookie
from queuectl.web.middleware import read_body
from queuectl.web.pages import (
    actions,
    alerts,
    audit,
    batches,
    cron,
    job,
    job_form,
    jobs,
    overview,
    queues,
    settings,
    workers,
)
from queuectl.web.pages.actions import PURGE, VERBS
from queuectl.web.pages.render import (
    Handler,
    Notice,
    NoticeBoard,
    PageRequest,
    Redirect,
    Renderer,
    View,
    back_to,
    current_path,
    read_request,
    refused,
    sentence,
)

PAGES: Final[Mapping[str, Handler]] = {
    "/": overview.show,
    "/jobs": jobs.show,
    "/jobs/{id}": job.show,
    "/act": actions.preview,
    "/find": jobs.find,
    "/enqueue": job_form.show,
    "/queues": queues.show,
    "/queues/{name}": queues.show_one,
    "/workers": workers.show,
    "/workers/{id}": workers.show_one,
    "/dlq": jobs.show_dead,
    "/cron": cron.show,
    "/cron/{name}": cron.show_one,
    "/settings": settings.show,
    "/batches": batches.show,
    "/batches/{name}": batches.show_one,
    "/alerts": alerts.show,
    "/alerts/{name}": alerts.show_one,
    "/audit": audit.show,
}

CHANGES: Final[Mapping[str, Handler]] = {
    "/act": actions.do,
    "/enqueue": job_form.enqueue,
    "/jobs/{id}/edit": job_form.edit,
    "/jobs/{id}/{verb}": job.do,
    "/queues/{name}/pause": partial(queues.set_paused, paused=True),
    "/queues/{name}/resume": partial(queues.set_paused, paused=False),
    "/queues/{name}/set": queues.change_settings,
    "/queues/{name}/move": queues.move,
    "/workers/{id}/stop": workers.stop,
    "/workers/{id}/restart": workers.restart,
    "/dlq/retry": partial(jobs.act_on_dead, verb=VERBS["retry"]),
    "/dlq/purge": partial(jobs.act_on_dead, verb=PURGE),
    "/cron/+/add": cron.add,  # no schedule can have this name
    "/cron/{name}/edit": cron.edit,
    "/cron/{name}/run": cron.run,
    "/cron/{name}/remove": cron.remove,
    "/cron/{name}/pause": partial(cron.set_paused, paused=True),
    "/cron/{name}/resume": partial(cron.set_paused, paused=False),
    "/alerts/+/add": alerts.add,  # no alert can have this name
    "/alerts/{name}/edit": alerts.edit,
    "/alerts/{name}/pause": partial(alerts.set_paused, paused=True),
    "/alerts/{name}/resume": partial(alerts.set_paused, paused=False),
    "/alerts/{name}/test": alerts.test,
    "/alerts/{name}/remove": alerts.remove,
    "/settings/{key}": settings.save,
}


def undo_change(session: WebSession, notice: Notice | None) -> Notice:
    if notice is None or notice.undo is None:
        return refused("This action can no longer be undone", "It was already undone, or it is too old.")
    try:
        return notice.undo(session)
    except QueuectlError as error:
        return refused(error.message, error.hint)


_HERE: Final = os.path.dirname(__file__)


class Pages:
    def __init__(self, pools: StorePools, auth: AuthConfig) -> None:
        self._pools = pools
        self._auth = auth
        self._notices = NoticeBoard()
        self._renderer = Renderer()

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/login", self.login, methods=["POST"]),
            Route("/logout", self.logout, methods=["POST"]),
            Route("/undo/{notice}", self.undo, methods=["POST"]),
            *(Route(path, self.page(show), methods=["GET"]) for path, show in PAGES.items()),
            *(Route(path, self._change(do), methods=["POST"]) for path, do in CHANGES.items()),
            Mount("/static", _Static(directory=os.path.join(_HERE, "static"))),
        ]

    def page(self, show: Handler) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            ask = await read_request(request)
            notice = request.query_params.get("notice")

            def work(session: WebSession) -> Response:
                try:
                    found = show(session, ask)
                except NotFound:
                    gone = _gone(ask) if _wants_html(request) else None
                    if gone is None:
                        raise
                    found = gone
                return self._respond(session, ask, found, (notice, self._notices.read(notice)))

            return await self._pools.reads.ask(work)

        return answer

    def _change(self, do: Handler) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            ask = await read_request(request)

            def work(session: WebSession) -> Response:
                try:
                    found = do(session.on_behalf(request.state.token.name), ask)
                except Unavailable:
                    raise
                except QueuectlError as error:
                    found = Redirect(back_to(ask.form, "/"), refused(sentence(error.message), error.hint))
                return self._respond(session, ask, found)

            # In the slow pool: cancelling waits for a running job to end. It is completed even if the client disconnects.
            return await self._pools.slow_changes.ask(work)

        return answer

    async def undo(self, request: Request) -> Response:
        ask = await read_request(request)
        notice = self._notices.take(ask.param("notice"))

        def work(session: WebSession) -> Response:
            result = undo_change(session.on_behalf(request.state.token.name), notice)
            return self._respond(session, ask, Redirect(back_to(ask.form, "/"), result))

        return await self._pools.slow_changes.ask(work)

    def _respond(
        self,
        session: WebSession,
        ask: PageRequest,
        found: View | Redirect | Notice,
        pinned: tuple[str | None, Notice | None] = (None, None),
    ) -> Response:
        if isinstance(found, Notice):
            found = Redirect(back_to(ask.form, current_path(ask.url)), found)
        if isinstance(found, Redirect):
            to = URL(found.to)
            if found.notice is not None:
                to = to.include_query_params(notice=self._notices.add(found.notice))
            return RedirectResponse(str(to), HTTPStatus.SEE_OTHER)
        name, notice = pinned
        html = self._renderer.page(session, ask, found, notice_name=name, notice=notice)
        return HTMLResponse(html, status_code=found.status)

    async def login(self, request: Request) -> Response:
        fields = parse_qs((await read_body(request, max_bytes=4096)).decode("ascii", "replace"))
        token = self._auth.tokens.find(fields.get("token", [""])[0].strip())
        if token is None:
            raise no_token(INVALID_CREDENTIALS)
        return with_cookie(RedirectResponse("/", HTTPStatus.SEE_OTHER), token, self._auth)

    async def logout(self, request: Request) -> Response:
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        answer.delete_cookie(self._auth.cookie, httponly=True, samesite="strict", secure=self._auth.secure)
        return answer

    def problem(self, request: Request, problem: dict[str, Any]) -> str | None:
        """Render an error for a browser that requested a page; None for other clients."""
        if request.url.path.startswith("/api/") or not _wants_html(request):
            return None
        return self._renderer.problem(problem)


def _wants_html(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


# What the pages below an entry of the navigation show, what identifies one, and why there may be none.
_KINDS: Final[Mapping[str, tuple[str, str, str]]] = {
    "/jobs": ("job", "ID", "It may have been removed."),
    "/batches": ("batch", "name", "It may have been removed with its jobs."),
    "/workers": ("worker", "ID", "It may have stopped."),
    "/cron": ("schedule", "name", "It may have been removed."),
    "/alerts": ("alert", "name", "It may have been removed."),
}


def _gone(ask: PageRequest) -> View | None:
    """The page instead of one about something that is not there."""
    path = current_path(ask.url)
    if path not in _KINDS or not ask.path:
        return None
    kind, key, reason = _KINDS[path]
    values = {"kind": kind, "key": key, "name": next(iter(ask.path.values())), "reason": reason, "all_url": path}
    return View("missing.html", f"{kind.capitalize()} not found", values, HTTPStatus.NOT_FOUND)


class _Static(StaticFiles):
    """Static files that the browser revalidates for every page."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response
