"""What a page is asked, and what it answers: a template with its values, or a deed that was done and where to look next."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request

from queuectl.errors import InvalidInput
from queuectl.web.api.operation import without_nul
from queuectl.web.body import read_body
from queuectl.web.desk import Desk
from queuectl.web.pages.notices import Notice
from queuectl.web.tokens import Right

MOST_BYTES: Final = 1024 * 1024  # of a form
MOST_FIELDS: Final = 2000
KIND: Final = "application/x-www-form-urlencoded"

Pairs = Sequence[tuple[str, str]]


class Fields:
    """The fields of a form or of an address, in their order: a name may come more than once."""

    def __init__(self, pairs: Pairs = ()) -> None:
        self.pairs = tuple(pairs)

    def all(self, name: str) -> tuple[str, ...]:
        """What was said for it. A field that was left empty says nothing."""
        return tuple(value.strip() for known, value in self.pairs if known == name and value.strip())

    def one(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)

    def text(self, name: str) -> str | None:
        """As it was typed, spaces and all; None if that is nothing."""
        return next((value for known, value in self.pairs if known == name and value), None)

    def has(self, name: str) -> bool:
        return any(known == name for known, _ in self.pairs)


class Ask(NamedTuple):
    path: Mapping[str, str]
    query: Fields
    form: Fields
    may_change: bool
    url: str  # of the page, to come back to it

    @property
    def is_confirmed(self) -> bool:
        """Whether the form was sent by the button of a confirmation, see `confirm`."""
        return self.form.has("confirmed")

    def param(self, name: str) -> str:
        return self.path[name]


class Shown(NamedTuple):
    """A page."""

    template: str
    title: str
    values: dict[str, Any]
    status: int = 200


class Done(NamedTuple):
    """Something was done, or refused: look there."""

    to: str
    notice: Notice | None = None


Show = Callable[[Desk, Ask], Shown | Done]


def confirm(ask: Ask, label: str, kind: str, text: str, *, name: str = "", back: str, is_grave: bool = False) -> Shown:
    """A page that asks before a form is carried out. Its button sends the same form again, confirmed.

    For the label "Run now", the kind "job" and the name "x" it asks "Run job x now?"; the button is "Run job now". The server asks, not
    the script, so that nothing is done unasked without JavaScript. With JavaScript the page is shown as a dialog.
    """
    verb, *adverb = label.split()
    values = {
        "text": text,
        "label": " ".join([verb, kind, *adverb]),
        "is_grave": is_grave,
        "back": back_to(ask.form, back),
        "fields": ask.form.pairs,
    }
    return Shown("confirm.html", f"{' '.join(filter(None, [verb, kind, name, *adverb]))}?", values)


async def read_ask(request: Request) -> Ask:
    token = request.scope["state"]["token"]
    query = [(name, value) for name, value in request.query_params.multi_items() if name != "notice"]
    form = await _read_form(request) if request.method == "POST" else Fields()
    for name, value in (*request.path_params.items(), *query, *form.pairs):
        without_nul(value, name)
    return Ask(
        path=request.path_params,
        query=Fields(query),
        form=form,
        may_change=token is not None and token.right is Right.FULL,
        url=with_query(request.url.path, query),
    )


async def _read_form(request: Request) -> Fields:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {"", KIND}:
        raise InvalidInput("form", f"expected {KIND}, got {kind}", hint="use the forms of the pages, or the API")
    text = (await read_body(request, most=MOST_BYTES)).decode("ascii", "replace")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as exc:
        raise InvalidInput("form", "too many fields", hint="choose fewer jobs, or all that match") from exc
    return Fields([(name, value.replace("\r\n", "\n")) for name, value in pairs])


def with_query(path: str, pairs: Pairs) -> str:
    return f"{path}?{urlencode(pairs)}" if pairs else path


def back_to(form: Fields, default: str) -> str:
    """Where the form says that it came from, if that is a page of ours: whoever makes a form must not lead anybody elsewhere."""
    wanted = form.one("back") or default
    return wanted if re.fullmatch(r"/(?![/\\])[\x21-\x7e]*", wanted) else default
