"""Many jobs at once: first how many of which state that would be, then what became of them."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import UsageError
from queuectl.job.lifecycle import State
from queuectl.job.model import Job
from queuectl.queue.filters import able_only
from queuectl.queue.pick import find
from queuectl.store.protocol import Filter, Reads
from queuectl.web.desk import Desk
from queuectl.web.pages import verbs
from queuectl.web.pages.asked import Ask, Done, Fields, Shown, back_to
from queuectl.web.pages.selecting import Selecting
from queuectl.web.pages.verbs import Verb

NAMED: Final = 5  # of those that it is about, so that one sees whether they are those that one means


def preview(desk: Desk, ask: Ask) -> Shown:
    verb, chosen = verbs.verb_of(ask.query.one("action")), Selecting.of(ask.query)
    is_all = ask.query.has("all")
    ids = () if is_all else _ids(ask.query)
    counts = _count_all(desk.reads, chosen.where(desk.reads)) if is_all else _count_named(desk.reads, ids)
    first = _first(desk.reads, chosen.where(desk.reads), verb) if is_all else _first_named(desk.reads, ids, verb)
    able = {state: count for state, count in counts.items() if state in verb.able}
    values: dict[str, Any] = {
        "verb": verb,
        "is_all": is_all,
        "ids": ids,
        "chosen": chosen,
        "able": {state.value: count for state, count in able.items() if count},
        "count": sum(able.values()),
        "first": first,
        "others": sum(counts.values()) - sum(able.values()),
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
        raise UsageError("no job is chosen", hint="tick some in the list, or choose all that match")
    return ids


def _able(where: Filter, verb: Verb) -> Filter | None:
    """Of these, those that it can be done to; None: of none of these states."""
    states = where.states & verb.able if where.states else verb.able
    return able_only(where._replace(states=states), verb.able, done=verb.done, subject="state") if states else None


def _first(reads: Reads, where: Filter, verb: Verb) -> list[Job]:
    able = _able(where, verb)
    return [] if able is None else list(reads.jobs(able, descending=True, limit=NAMED))


def _first_named(reads: Reads, ids: tuple[str, ...], verb: Verb) -> list[Job]:
    return [job for job in find(reads, ids).values() if job.state in verb.able][:NAMED]


def _count_all(reads: Reads, where: Filter) -> dict[State, int]:
    wanted = where.states or frozenset(State)
    return {state: reads.count(where._replace(states=frozenset({state}))) for state in State if state in wanted}


def _count_named(reads: Reads, ids: tuple[str, ...]) -> dict[State, int]:
    found = find(reads, ids).values()
    return {state: sum(job.state is state for job in found) for state in State}
