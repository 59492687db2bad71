"""The field on top of every page: the id of a job leads to it, anything else is looked for in the commands."""

from __future__ import annotations

from queuectl.errors import Conflict, NotFound
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Done, with_query
from queuectl.web.pages.wording import part


def find(desk: Desk, ask: Ask) -> Done:
    wanted = ask.query.one("q")
    if wanted is None:
        return Done("/jobs")
    try:
        return Done(f"/jobs/{part(desk.reads.resolve(wanted))}")
    except (NotFound, Conflict):
        return Done(with_query("/jobs", [("match", wanted)]))
