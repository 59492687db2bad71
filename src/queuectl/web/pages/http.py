"""Requests and responses of pages: form fields, views, redirects, notices and confirmations."""

from __future__ import annotations

import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request

from queuectl.errors import InvalidInput
from queuectl.store_threads import WebSession
from queuectl.web.api.operation import reject_nul
from queuectl.web.auth import Right
from queuectl.web.middleware import read_body

MAX_NOTICES: Final = 64
MAX_NOTICE_LINES: Final = 8


class Notice(NamedTuple):
    kind: str  # done, part or refused
    text: str
    lines: tuple[str, ...] = ()
    undo: Callable[[WebSession], Notice] | None = None


class NoticeBoard:
    """The latest notices, by a random name."""

    def __init__(self) -> None:
        self._notices: OrderedDict[str, Notice] = OrderedDict()

    def add(self, notice: Notice) -> str:
        name = secrets.token_urlsafe(9)
        self._notices[name] = notice
        while len(self._notices) > MAX_NOTICES:
            self._notices.popitem(last=False)
        return name

    def read(self, name: str | None) -> Notice | None:
        return None if name is None else self._notices.get(name)

    def take(self, name: str) -> Notice | None:
        """Remove a notice to undo its action, which is possible once."""
        return self._notices.pop(name, None)


def done(text: str, *, undo: Callable[[WebSession], Notice] | None = None) -> Notice:
    return Notice("done", text, undo=undo)


def refused(text: str, hint: str = "") -> Notice:
    return Notice("refused", text, (hint,) if hint else ())


MAX_FORM_BYTES: Final = 1024 * 1024
MAX_FORM_FIELDS: Final = 2000
FORM_TYPE: Final = "application/x-www-form-urlencoded"

Pairs = Sequence[tuple[str, str]]


class Fields:
    """The fields of a form or a query string, in order. A name may occur several times."""

    def __init__(self, pairs: Pairs = ()) -> None:
        self.pairs = tuple(pairs)

    def all(self, name: str) -> tuple[str, ...]:
        """All values of a field, without empty ones."""
        return tuple(value.strip() for known, value in self.pairs if known == name and value.strip())

    def one(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)

    def text(self, name: str) -> str | None:
        """The first value with its whitespace; None if it is empty."""
        return next((value for known, value in self.pairs if known == name and value), None)

    def has(self, name: str) -> bool:
        return any(known == name for known, _ in self.pairs)


class PageRequest(NamedTuple):
    path: Mapping[str, str]
    query: Fields
    form: Fields
    may_change: bool
    url: str  # of the page, to return to it

    @property
    def is_confirmed(self) -> bool:
        """Whether the form was submitted from a confirmation, see `confirm`."""
        return self.form.has("confirmed")

    def param(self, name: str) -> str:
        return self.path[name]


class View(NamedTuple):
    """A page to render."""

    template: str
    title: str
    values: dict[str, Any]
    status: int = 200


class Redirect(NamedTuple):
    """The response to a change: a redirect with a notice."""

    to: str
    notice: Notice | None = None


Handler = Callable[[WebSession, PageRequest], View | Redirect]


def confirm(
    ask: PageRequest, label: str, kind: str, text: str, *, name: str = "", back: str, is_grave: bool = False
) -> View:
    """Render a confirmation. Its button submits the same form again, confirmed.

    For the label "Run now", the kind "job" and the name "x" the question is "Run job x now?", and the button "Run job now". The server
    asks, not the script, so that it also works without JavaScript. With JavaScript the page is shown as a dialog.
    """
    verb, *adverb = label.split()
    values = {
        "text": text,
        "label": " ".join([verb, kind, *adverb]),
        "is_grave": is_grave,
        "back": back_to(ask.form, back),
        "fields": ask.form.pairs,
    }
    return View("confirm.html", f"{' '.join(filter(None, [verb, kind, name, *adverb]))}?", values)


async def read_request(request: Request) -> PageRequest:
    token = request.scope["state"]["token"]
    query = [(name, value) for name, value in request.query_params.multi_items() if name != "notice"]
    form = await _read_form(request) if request.method == "POST" else Fields()
    for name, value in (*request.path_params.items(), *query, *form.pairs):
        reject_nul(value, name)
    return PageRequest(
        path=request.path_params,
        query=Fields(query),
        form=form,
        may_change=token is not None and token.right is Right.FULL,
        url=with_query(request.url.path, query),
    )


async def _read_form(request: Request) -> Fields:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {"", FORM_TYPE}:
        raise InvalidInput("form", f"expected {FORM_TYPE}, got {kind}", hint="use the forms of the pages, or the API")
    text = (await read_body(request, max_bytes=MAX_FORM_BYTES)).decode("ascii", "replace")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except ValueError as exc:
        raise InvalidInput("form", "too many fields", hint="choose fewer jobs, or all that match") from exc
    return Fields([(name, value.replace("\r\n", "\n")) for name, value in pairs])


def with_query(path: str, pairs: Pairs) -> str:
    return f"{path}?{urlencode(pairs)}" if pairs else path


def back_to(form: Fields, default: str) -> str:
    """The page that the form came from, if it is on this server: a forged form must not redirect to another site."""
    wanted = form.one("back") or default
    return wanted if re.fullmatch(r"/(?![/\\])[\x21-\x7e]*", wanted) else default
