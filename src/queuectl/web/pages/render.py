"""Render templates, with filters for numbers, times and commands. All values are escaped: text of jobs never becomes markup."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from queuectl import __version__
from queuectl.jobs.model import Job
from queuectl.jobs.resources import LIMITS, format_limits, format_usage
from queuectl.jobs.states import State
from queuectl.operations.inspect import without_webhook_queue
from queuectl.store_threads import WebSession
from queuectl.text import command_line, escape_control, plural
from queuectl.units import humanize_time, to_ms
from queuectl.web.pages.http import Notice, PageRequest, View

NOTHING: Final = "—"  # for what is not known, or is not
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")
_STEPS: Final = ((86_400_000, "d", 3_600_000, "h"), (3_600_000, "h", 60_000, "m"), (60_000, "m", 1_000, "s"))


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}".removesuffix(".0")


def short(value: float) -> str:
    """For narrow columns: `12k`, `1.2M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if value >= size:
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


def command(job: Job | dict[str, Any]) -> str:
    """The command on one line; an argv is quoted for the shell. Control and bidirectional characters are escaped."""
    return escape_control(_command(job))


def whole_command(job: Job | dict[str, Any]) -> str:
    """The command with its line breaks."""
    return safe(_command(job))


def safe(text: str) -> str:
    """Escape control and bidirectional characters, except line breaks."""
    return "\n".join(map(escape_control, text.split("\n")))


def _command(job: Job | dict[str, Any]) -> str:
    return command_line(*((job.command, job.argv) if isinstance(job, Job) else (job.get("command"), job.get("argv"))))


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{share * 100:.1f}".removesuffix(".0") + " %"


def part(text: str) -> str:
    """Quote one segment of a URL path."""
    return quote(text, safe="")


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


FILTERS: Final = {
    "number": number,
    "short": short,
    "span": span,
    "exact": exact,
    "moments": moments,
    "command": command,
    "safe_text": safe,
    "whole_command": whole_command,
    "percent": percent,
    "part": part,
    "limits": format_limits,
    "used": format_usage,
}

_EXAMPLES: Final = {
    "memory": "2GiB",
    "cpu_time": "30s",
    "nice": "-20 to 19",
    "open_files": "256",
    "processes": "64",
    "file_size": "1GiB",
}


class LimitField(NamedTuple):
    name: str
    label: str
    example: str


LIMIT_FIELDS: Final = tuple(
    LimitField(name, limit.label.capitalize(), _EXAMPLES[name]) for name, limit in LIMITS.items()
)

_TEMPLATES: Final = os.path.join(os.path.dirname(__file__), "templates")

# The navigation, each page with the key that follows g.
NAVIGATION: Final = (
    ("/", "Overview", "o"),
    ("/jobs", "Jobs", "j"),
    ("/queues", "Queues", "q"),
    ("/workers", "Workers", "w"),
    ("/dlq", "Dead", "d"),
    ("/cron", "Schedules", "c"),
    ("/settings", "Settings", "s"),
)


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
            limit_fields=LIMIT_FIELDS,
        )

    def page(
        self, session: WebSession, ask: PageRequest, shown: View, *, notice_name: str | None, notice: Notice | None
    ) -> str:
        now_ms = session.reads.now_ms()
        dead = sum(counts.get(State.DEAD, 0) for counts in without_webhook_queue(session.reads.tally()).values())
        return self._render(
            shown.template,
            {
                "title": shown.title,
                "url": ask.url,
                "current_path": _current_path(ask.url),
                "may_change": ask.may_change,
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

    def problem(self, document: dict[str, Any]) -> str:
        return self._render("problem.html", {"title": document["title"], "problem": document})

    def _render(self, template: str, values: dict[str, Any]) -> str:
        return self._templates.get_template(template).render(values)


def _current_path(url: str) -> str:
    """The entry of the navigation that a page belongs to."""
    return "/" + url.partition("?")[0].strip("/").partition("/")[0]
