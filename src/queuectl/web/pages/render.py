"""What pages share: requests with their forms, views, redirects with notices, confirmations, and the rendering of templates with
filters for numbers, times and commands. All values are escaped: text of jobs never becomes markup."""

from __future__ import annotations

import os
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape
from starlette.requests import Request

from queuectl import __version__
from queuectl.errors import InvalidInput
from queuectl.jobs.model import Job
from queuectl.jobs.resources import format_limits, format_usage
from queuectl.jobs.states import State
from queuectl.operations.inspect import without_webhook_queue
from queuectl.store_threads import WebSession
from queuectl.text import WEBHOOK_QUEUE, command_line, escape_control, plural
from queuectl.units import humanize_time, to_ms
from queuectl.web.api.operation import reject_nul
from queuectl.web.auth import Right
from queuectl.web.middleware import read_body

# ── requests, views and notices ─────────────────────────────────────────────────────────────────────────────────────

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
    return Notice("refused", text, (sentence(hint),) if hint else ())


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
    versions: str | None = None  # of a live update: those of the regions that the browser has, see `stamp_regions`
    is_post: bool = False

    @property
    def is_update(self) -> bool:
        """Whether only live regions are sent: what is outside of them need not be read."""
        return self.versions is not None

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


# After a change, a notice alone is displayed on the page that the form came from.
Handler = Callable[[WebSession, PageRequest], View | Redirect | Notice]


def phrase(label: str, what: str) -> str:
    """For the label "Run now" and "2 jobs": "Run 2 jobs now"."""
    verb, *adverb = label.split()
    return " ".join([verb, what, *adverb])


def confirm(
    ask: PageRequest, label: str, kind: str, text: str, *, name: str = "", back: str, is_grave: bool = False
) -> View:
    """Render a confirmation. Its button submits the same form again, confirmed.

    For the label "Run now", the kind "job" and the name "x" the question is "Run job x now?", and the button "Run job now". The server
    asks, not the script, so that it also works without JavaScript. With JavaScript the page is shown as a dialog.
    """
    values = {
        "text": text,
        "label": phrase(label, kind),
        "is_grave": is_grave,
        "back": back_to(ask.form, back),
        "fields": ask.form.pairs,
    }
    return View("confirm.html", f"{phrase(label, f'{kind} {name}'.strip())}?", values)


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
        versions=request.headers.get("queuectl-update"),
        is_post=request.method == "POST",
    )


async def _read_form(request: Request) -> Fields:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {"", FORM_TYPE}:
        raise InvalidInput(
            "form", f"expected {FORM_TYPE}, got {kind}", hint="use the forms of the dashboard, or the API"
        )
    text = (await read_body(request, max_bytes=MAX_FORM_BYTES)).decode("ascii", "replace")
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
    except ValueError as exc:
        raise InvalidInput("form", "too many fields", hint="select fewer jobs, or check Select all matching") from exc
    return Fields([(name, value.replace("\r\n", "\n")) for name, value in pairs])


def with_query(path: str, pairs: Pairs) -> str:
    return f"{path}?{urlencode(pairs)}" if pairs else path


def back_to(form: Fields, default: str) -> str:
    """The page that the form came from, if it is on this server: a forged form must not redirect to another site."""
    wanted = form.one("back") or default
    return wanted if re.fullmatch(r"/(?![/\\])[\x21-\x7e]*", wanted) else default


def refused_form(ask: PageRequest, default: str, error: object) -> dict[str, Any]:
    """Values of a page that is the response to a form: with an error, its forms return to where that one came from."""
    return {} if error is None else {"url": back_to(ask.form, default)}


# ── templates ───────────────────────────────────────────────────────────────────────────────────────────────────────

NOTHING: Final = "—"  # for what is not known, or is not
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")
_STEPS: Final = ((86_400_000, "d", 3_600_000, "h"), (3_600_000, "h", 60_000, "m"), (60_000, "m", 1_000, "s"))


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}".removesuffix(".0")


def short(value: float) -> str:
    """For narrow columns: `99,999`, `120k`, `1.2M`."""
    for size, unit, least in ((1_000_000, "M", 1_000_000), (1_000, "k", 100_000)):
        if value >= least:
            return f"{value / size:.1f}".removesuffix(".0") + unit
    return number(round(value, 1) if value != int(value) else int(value))


def span(ms: float | None) -> str:
    """A duration with at most two units: `3d 4h`, `59m 59s`, `2.5s`, `850ms`."""
    if ms is None:
        return NOTHING
    ms = max(0, round(ms))
    for size, unit, rest, smaller in _STEPS:
        if ms >= size:
            left = ms % size // rest
            return f"{ms // size}{unit}" + (f" {left}{smaller}" if left else "")
    return f"{ms}ms" if ms < 1000 else f"{ms / 1000:.1f}".removesuffix(".0") + "s"


def ago(moment: datetime | None, now_ms: int) -> str:
    return NOTHING if moment is None else humanize_time(to_ms(moment), now_ms)


def exact(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def moments(text: str) -> str:
    """Rewrite the times in a message to the format of the pages."""
    return _MOMENT.sub(r"\1 \2 UTC", text)


def timed(text: str) -> Markup:
    """A message with its times as elements, which the script shows in the zone of the reader."""

    def element(found: re.Match[str]) -> Markup:
        return Markup('<time datetime="{}" data-local>{}</time>').format(found[0], moments(found[0]))

    parts, start = [], 0
    for found in _MOMENT.finditer(text):
        parts += [escape(text[start : found.start()]), element(found)]
        start = found.end()
    return Markup("").join([*parts, escape(text[start:])])


def command(job: Job | dict[str, Any]) -> str:
    """The command on one line; an argv is quoted for the shell. Control and bidirectional characters are escaped."""
    return escape_control(_command(job))


def whole_command(job: Job | dict[str, Any]) -> str:
    """The command with its line breaks."""
    return safe_text(_command(job))


def safe_text(text: str) -> str:
    """Escape control and bidirectional characters, except line breaks."""
    return "\n".join(map(escape_control, text.split("\n")))


def _command(job: Job | dict[str, Any]) -> str:
    return command_line(*((job.command, job.argv) if isinstance(job, Job) else (job.get("command"), job.get("argv"))))


def part(text: str) -> str:
    """Quote one segment of a URL path."""
    return quote(text, safe="")


def sentence(text: str) -> str:
    """Capitalize a message or a hint, unless it begins with a command, or with the name of a setting or a field."""
    first, _, _ = text.partition(" ")
    return text if first == "queuectl" or {"-", "_"} & set(first) else text[:1].upper() + text[1:]


_BY_NAME: Final = (number, short, span, exact, moments, timed, command, safe_text, sentence, whole_command, part)
FILTERS: Final = {**{each.__name__: each for each in _BY_NAME}, "limits": format_limits, "used": format_usage}

# The fields for resource limits, with examples.
_LIMIT_FIELDS: Final = (
    ("memory", "Memory", "2GiB"),
    ("cpu_time", "CPU time", "30s"),
    ("nice", "Nice", "10"),
    ("open_files", "Open files", "256"),
    ("processes", "Processes", "64"),
    ("file_size", "File size", "1GiB"),
)

_TEMPLATES: Final = os.path.join(os.path.dirname(__file__), "templates")

# The navigation, each page with the key that follows g.
NAVIGATION: Final = (
    ("/", "Overview", "o"),
    ("/jobs", "Jobs", "j"),
    ("/dlq", "Dead", "d"),
    ("/batches", "Batches", "b"),
    ("/queues", "Queues", "q"),
    ("/workers", "Workers", "w"),
    ("/cron", "Schedules", "c"),
    ("/alerts", "Alerts", "a"),
    ("/audit", "Audit", "u"),
    ("/settings", "Settings", "s"),
)


# ── live updates ────────────────────────────────────────────────────────────────────────────────────────────────────

# Templates mark a region with data-live and an ID. Values are escaped, so that a tag in the text is one of a template.
_REGION: Final = re.compile(r'<(\w+)(?=[^>]* data-live)[^>]* id="[^"]*"[^>]*>')
_RELATIVE_TIME: Final = re.compile(r"(<time[^>]*>)[^<]*")


def stamp_regions(html: str, versions: str | None = None) -> str:
    """Give each live region of a page a version: a hash of its content without the relative times, which the browser updates itself.
    With `versions`, those that a browser already has, return only the other regions."""
    pieces, end, known = [], 0, frozenset((versions or "").split())
    while match := _REGION.search(html, end):
        stop = _end_of(match[1], html, match.end())
        region = html[match.start() : stop]
        version = blake2b(_RELATIVE_TIME.sub(r"\1", region).encode(), digest_size=6).hexdigest()
        if versions is None:
            pieces.append(html[end : match.start()])
        if version not in known:
            pieces.append(f'<{match[1]} data-version="{version}"{region[len(match[1]) + 1 :]}')
        end = stop
    return "".join([*pieces, html[end:] if versions is None else ""])


def _end_of(tag: str, html: str, start: int) -> int:
    """The end of the element whose first tag ends at `start`."""
    depth = 1
    for match in re.compile(rf"<(/?){tag}\b[^>]*>").finditer(html, start):
        depth += -1 if match[1] else 1
        if depth == 0:
            return match.end()
    return len(html)


def open_templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


class Renderer:
    def __init__(self) -> None:
        self._templates = open_templates()
        self._templates.filters.update(FILTERS)
        self._templates.globals.update(
            navigation=NAVIGATION,
            version=__version__,
            states=[state.value for state in State],
            limit_fields=_LIMIT_FIELDS,
            query=with_query,
            internal_queue=WEBHOOK_QUEUE,
        )

    def page(
        self, session: WebSession, ask: PageRequest, shown: View, *, notice_name: str | None, notice: Notice | None
    ) -> str:
        now_ms = session.reads.now_ms()
        dead = sum(counts.get(State.DEAD, 0) for counts in without_webhook_queue(session.reads.tally()).values())
        html = self._render(
            shown.template,
            {
                "title": shown.title,
                "url": ask.url,
                "current_path": current_path(ask.url),
                "may_change": ask.may_change,
                "is_live": not ask.is_post,  # the address of a form has no page to update from
                "now_ms": now_ms,
                "ago": lambda moment: ago(moment, now_ms),
                "plural": plural,
                "dead_in_all": dead,
                "notice": notice,
                "notice_name": notice_name,
                "home": session.home,
                **shown.values,
            },
        )
        return stamp_regions(html, ask.versions)

    def problem(self, document: dict[str, Any]) -> str:
        return self._render("problem.html", {"title": document["title"], "problem": document})

    def _render(self, template: str, values: dict[str, Any]) -> str:
        return self._templates.get_template(template).render(values)


def current_path(url: str) -> str:
    """The entry of the navigation that a page belongs to."""
    return "/" + url.partition("?")[0].strip("/").partition("/")[0]
