"""Templates. Every value is escaped, whatever its name: job text can never become markup."""

from __future__ import annotations

import os
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from queuectl import __version__
from queuectl.job.lifecycle import State
from queuectl.queue.inspect import without_calls
from queuectl.web.desk import Desk
from queuectl.web.pages import limits, wording
from queuectl.web.pages.asked import Ask, Shown
from queuectl.web.pages.notices import Notice

_HERE: Final = os.path.dirname(__file__)

# As they stand on every page, each with the key that comes after g.
PLACES: Final = (
    ("/", "Overview", "o"),
    ("/jobs", "Jobs", "j"),
    ("/queues", "Queues", "q"),
    ("/workers", "Workers", "w"),
    ("/dlq", "Dead", "d"),
    ("/cron", "Schedules", "c"),
    ("/settings", "Settings", "s"),
)


class Renderer:
    def __init__(self) -> None:
        self._templates = Environment(
            loader=FileSystemLoader(os.path.join(_HERE, "templates")),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(wording.FILTERS)
        self._templates.globals.update(
            places=PLACES,
            version=__version__,
            states=[state.value for state in State],
            limit_fields=limits.FIELDS,
        )

    def page(self, desk: Desk, ask: Ask, shown: Shown, *, notice_name: str | None, notice: Notice | None) -> str:
        now_ms = desk.reads.now_ms()
        dead = sum(counts.get(State.DEAD, 0) for counts in without_calls(desk.reads.tally()).values())
        return self._render(
            shown.template,
            {
                "title": shown.title,
                "url": ask.url,
                "place": _place(ask.url),
                "may_change": ask.may_change,
                "now_ms": now_ms,
                "ago": lambda moment: wording.ago(moment, now_ms),
                "plural": wording.plural,
                "dead_in_all": dead,
                "notice": notice,
                "notice_name": notice_name,
                "home": desk.home,
                **shown.values,
            },
        )

    def problem(self, said: dict[str, Any]) -> str:
        return self._render("problem.html", {"title": said["title"], "problem": said})

    def _render(self, template: str, values: dict[str, Any]) -> str:
        return self._templates.get_template(template).render(values)


def _place(url: str) -> str:
    """Of those on every page, the one that this page belongs to."""
    return "/" + url.partition("?")[0].strip("/").partition("/")[0]
