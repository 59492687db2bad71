"""Render templates. All values are escaped, so that text of jobs never becomes markup."""

from __future__ import annotations

import os
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from queuectl import __version__
from queuectl.jobs.states import State
from queuectl.operations.inspect import without_webhook_queue
from queuectl.web.pages import enqueue, formats
from queuectl.web.pages.http import Notice, PageRequest, View
from queuectl.web.store_threads import StoreSession

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
        self._templates.filters.update(formats.FILTERS)
        self._templates.globals.update(
            navigation=NAVIGATION,
            version=__version__,
            states=[state.value for state in State],
            limit_fields=enqueue.FIELDS,
        )

    def page(
        self, session: StoreSession, ask: PageRequest, shown: View, *, notice_name: str | None, notice: Notice | None
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
                "ago": lambda moment: formats.ago(moment, now_ms),
                "plural": formats.plural,
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
