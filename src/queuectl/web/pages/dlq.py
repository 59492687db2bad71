"""Jobs that failed for good, by what went wrong."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import UnknownName
from queuectl.job.lifecycle import State
from queuectl.job.model import from_ms
from queuectl.job.nearest import nearest
from queuectl.store.insight import ERROR_SHOWN, MOST_DEATHS
from queuectl.store.protocol import Filter, Sort
from queuectl.web.desk import Desk
from queuectl.web.pages import verbs
from queuectl.web.pages.asked import Ask, Done, Shown, back_to, confirm
from queuectl.web.pages.wording import plural

GROUPS: Final = 50
LATEST: Final = 25
DEAD: Final = Filter(frozenset({State.DEAD}), calls=False)
_DEEDS: Final = ("retry", "purge")


def show(desk: Desk, ask: Ask) -> Shown:
    reads = desk.reads
    groups = [{**one._asdict(), "at": from_ms(one.at_ms)} for one in reads.dead_by_error(limit=GROUPS)]
    values: dict[str, Any] = {
        "count": reads.count(DEAD),
        "groups": groups,
        "grouped": MOST_DEATHS,
        "latest": list(reads.jobs(DEAD, sort=Sort.FINISHED, limit=LATEST)),
    }
    return Shown("dlq.html", "Dead jobs", values)


def do(desk: Desk, ask: Ask) -> Shown | Done:
    """Retry or purge the dead jobs with the error of the form, which may be cut as on the page; without one, all of them."""
    name = ask.param("verb")
    if name not in _DEEDS:
        raise UnknownName("action", name, nearest=nearest(name, _DEEDS), known=list(_DEEDS))
    if ask.form.has("error"):
        error = ask.form.text("error") or ""
        dead = desk.reads.jobs(DEAD, descending=False)
        ids = [job.id for job in dead if (job.error or "")[:ERROR_SHOWN] == error]
    else:
        ids = [job.id for job in desk.reads.choose(DEAD)]
    verb = verbs.VERBS[name]
    if ids and not ask.is_confirmed:
        jobs = plural(len(ids), "dead job")
        return confirm(ask, verb.label, jobs, verb.about, back="/dlq", is_grave=verb.is_grave)
    return Done(back_to(ask.form, "/dlq"), verbs.do(desk, verb, ids, exact=True))
