"""Many jobs at once: first how many of which state that would be, then what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import UsageError
from queuectl.job.lifecycle import State
from queuectl.job.model import Job
from queuectl.queue.filters import able_only
from queuectl.queue.pick import find
from queuectl.store.protocol import Chosen, Filter, Reads
from queuectl.web.desk import Desk
from queuectl.web.pages import verbs
from queuectl.web.pages.asked import Ask, Done, Fields, Shown, back_to
from queuectl.web.pages.notices import refused
from queuectl.web.pages.selecting import Selecting
from queuectl.web.pages.verbs import Verb
from queuectl.web.pages.wording import sentence

NAMED: Final = 5  # of those that it is about, so that one sees whether they are those that one means


class Meant(NamedTuple):
    """Those that it would be done to: how many of which state, and the first of them; `others` stay as they are."""

    able: dict[State, int]
    others: int
    first: list[Job]


def preview(desk: Desk, ask: Ask) -> Shown | Done:
    """What would be done to which jobs. A request that cannot be answered is a notice on the page that it came from."""
    try:
        return _preview(desk, ask)
    except UsageError as error:
        return Done(back_to(ask.query, "/jobs"), refused(sentence(error.message), error.hint))


def _preview(desk: Desk, ask: Ask) -> Shown:
    verb, chosen = verbs.verb_of(ask.query.one("action")), Selecting.of(ask.query)
    is_all = ask.query.has("all")
    ids = () if is_all else _ids(ask.query)
    meant = _all(desk.reads, chosen.where(desk.reads), verb) if is_all else _named(desk.reads, ids, verb)
    values: dict[str, Any] = {
        "verb": verb,
        "is_all": is_all,
        "ids": ids,
        "chosen": chosen,
        "able": {state.value: count for state, count in meant.able.items() if count},
        "count": sum(meant.able.values()),
        "first": meant.first,
        "others": meant.others,
        "back": back_to(ask.query, "/jobs"),
    }
    return Shown("act.html", f"{verb.label} jobs", values)


def do(desk: Desk, ask: Ask) -> Done:
    verb, form = verbs.verb_of(ask.form.one("action")), ask.form
    to = back_to(form, "/jobs")
    if not form.has("all"):
        return Done(to, verbs.do_to_named(desk, verb, _ids(form)))
    where = _able(Selecting.of(form).where(desk.reads), verb)
    chosen = [] if where is None else desk.reads.choose(where)
    ids = [job.id for job in chosen if verb.makes_a_difference(job)]
    return Done(to, verbs.do(desk, verb, ids, exact=True))


def _ids(fields: Fields) -> tuple[str, ...]:
    ids = fields.all("id")
    if not ids:
        raise UsageError("no job is selected", hint="tick jobs in the list, or 'all that match'")
    return ids


def _able(where: Filter, verb: Verb) -> Filter | None:
    """Of these, those that it can be done to; None: of none of these states."""
    states = where.states & verb.able if where.states else verb.able
    return able_only(where._replace(states=states), verb.able, done=verb.done, subject="state") if states else None


def _all(reads: Reads, where: Filter, verb: Verb) -> Meant:
    wanted = where.states or frozenset(State)
    counts = {state: reads.count(where._replace(states=frozenset({state}))) for state in State if state in wanted}
    able = _able(where, verb)
    if able is None:
        return Meant({}, sum(counts.values()), [])
    if verb.is_choosy:  # no count tells how many are so already
        chosen = [job for job in reads.choose(able) if verb.makes_a_difference(job)]
        first = list(find(reads, [job.id for job in chosen[: -NAMED - 1 : -1]]).values())
        return _meant(chosen, first, sum(counts.values()))
    can = {state: count for state, count in counts.items() if state in verb.able}
    first = list(reads.jobs(able, descending=True, limit=NAMED))
    return Meant(can, sum(counts.values()) - sum(can.values()), first)


def _named(reads: Reads, ids: tuple[str, ...], verb: Verb) -> Meant:
    found = list(find(reads, ids).values())
    fit = [job for job in found if verb.fits(job)]
    return _meant(fit, fit[:NAMED], len(found))


def _meant(jobs: Sequence[Job | Chosen], first: list[Job], of: int) -> Meant:
    return Meant({state: sum(job.state is state for job in jobs) for state in State}, of - len(jobs), first)
