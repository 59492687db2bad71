"""The list of jobs, the dead letter queue, and the search field on every page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from queuectl.errors import Conflict, NotFound, UsageError
from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.operations.bulk import find_jobs
from queuectl.operations.inspect import Page, page, without_webhook_queue
from queuectl.operations.query import MAX_SORTED_JOBS, is_sortable, parse_sort
from queuectl.store.reads import ERROR_SHOWN, MAX_DEAD_GROUPED
from queuectl.store.types import Filter, Sort
from queuectl.store_threads import WebSession
from queuectl.text import is_valid_id, plural
from queuectl.units import from_ms
from queuectl.web.pages import actions
from queuectl.web.pages.actions import VERBS, Selection, Verb
from queuectl.web.pages.render import Notice, PageRequest, Pairs, Redirect, View, confirm, part, with_query

LIMITS: Final = (25, 50, 100, 250)
DEFAULT_LIMIT: Final = 50
# The sort keys, by the states that are shown.
ALWAYS: Final = {"created": "newest first", "-created": "oldest first"}
WAITS: Final = {**ALWAYS, "run_at": "due next", "priority": "highest priority"}
ENDED: Final = {**ALWAYS, "finished": "ended last", "duration": "longest run"}
SINCE: Final = (("15m", "15 minutes"), ("1h", "hour"), ("1d", "day"), ("7d", "week"), ("30d", "30 days"))


def show(session: WebSession, ask: PageRequest) -> View:
    reads, chosen = session.reads, Selection(ask.query)
    sort, limit = ask.query.one("sort") or "created", _limit(ask.query.one("limit"))
    here = [*chosen.pairs, *_view(sort, limit)]
    tally = reads.tally()
    problem: UsageError | None = None
    found, total, sorts = Page([], None), None, _sorts(chosen.all("state"))
    offered = list(ALWAYS)
    try:
        where = chosen.where(reads)
        offered = [value for value in sorts if is_sortable(reads, where, parse_sort(value)[0])]
        key, descending = parse_sort(sort)
        found = page(reads, where, sort=key, descending=descending, limit=limit, cursor=ask.query.one("cursor"))
        # Only if the counters of queues and states have it. Otherwise every job would have to be read.
        total = reads.count(where) if where.is_tallied else None
    except UsageError as error:
        problem = error
    values: dict[str, Any] = {
        "chosen": chosen,
        "jobs": found.jobs,
        "total": total,
        "next_url": with_query("/jobs", [*here, ("cursor", found.next_cursor)]) if found.next_cursor else None,
        "first_url": with_query("/jobs", here) if ask.query.has("cursor") else None,
        "problem": problem,
        "tabs": _tabs(chosen, tally, sort, limit),
        "queue_names": sorted({*tally, *chosen.all("queue")}),
        "sort": sort,
        "sorts": {sort: sort, **sorts},
        "unsortable": sorts.keys() - offered,
        "most_sorted": MAX_SORTED_JOBS,
        "limit": limit,
        "limits": LIMITS,
        "since_choices": SINCE,
        "verbs": list(VERBS.values()),
        "is_empty": not any(sum(counts.values()) for counts in tally.values()),
    }
    return View("jobs.html", "Jobs", values)


def _view(sort: str, limit: int) -> Pairs:
    """The query parameters for the order and the size of the list."""
    return [("sort", sort)] * (sort != "created") + [("limit", str(limit))] * (limit != DEFAULT_LIMIT)


def _sorts(states: Sequence[str]) -> Mapping[str, str]:
    if states and WAITING.issuperset(states):
        return WAITS
    return ENDED if states and FINAL.issuperset(states) else ALWAYS


def _limit(text: str | None) -> int:
    return int(text) if text in {str(limit) for limit in LIMITS} else DEFAULT_LIMIT


def _tabs(chosen: Selection, tally: dict[str, dict[State, int]], sort: str, limit: int) -> list[dict[str, Any]]:
    """The states with their job counts in the selected queues; without counts if other filters apply, which the counters ignore."""
    queues = chosen.all("queue") or tuple(without_webhook_queue(tally))
    is_known = all(name in {"state", "queue"} for name, _ in chosen.pairs)
    current, tabs = chosen.all("state"), []
    for name, states in [("all", tuple(State)), *((state.value, (state,)) for state in State)]:
        selected = () if name == "all" else (name,)
        kept = sort if sort in _sorts(selected) else "created"
        count = sum(tally.get(queue, {}).get(state, 0) for queue in queues for state in states)
        tabs.append(
            {
                "name": name,
                "url": chosen.with_states(selected, _view(kept, limit)),
                "is_current": name in (current or ("all",)),
                "count": count if is_known else None,
            }
        )
    return tabs


# Among 200,000 random IDs some begin with any given word of 3 or 4 letters. Longer text with a digit in it is not a word.
MIN_ID_PREFIX: Final = 6


def find(session: WebSession, ask: PageRequest) -> Redirect:
    wanted = ask.query.one("q")
    if wanted is None:
        return Redirect("/jobs")
    job_id = _job_id(session, wanted)
    return Redirect(with_query("/jobs", [("match", wanted)]) if job_id is None else f"/jobs/{part(job_id)}")


def _job_id(session: WebSession, wanted: str) -> str | None:
    if not is_valid_id(wanted):
        return None
    if wanted in find_jobs(session.reads, [wanted]):
        return wanted
    if len(wanted) < MIN_ID_PREFIX or not any(map(str.isdigit, wanted)):
        return None
    try:
        return session.reads.resolve(wanted)
    except (NotFound, Conflict):
        return None


MAX_ERROR_GROUPS: Final = 50
MAX_LATEST_DEAD: Final = 25
DEAD: Final = Filter(frozenset({State.DEAD}), includes_webhooks=False)


def show_dead(session: WebSession, ask: PageRequest) -> View:
    reads = session.reads
    groups = [{**one._asdict(), "at": from_ms(one.at_ms)} for one in reads.dead_by_error(limit=MAX_ERROR_GROUPS)]
    values: dict[str, Any] = {
        "count": reads.count(DEAD),
        "groups": groups,
        "grouped": MAX_DEAD_GROUPED,
        "latest": list(reads.jobs(DEAD, sort=Sort.FINISHED, limit=MAX_LATEST_DEAD)),
    }
    return View("dlq.html", "Dead jobs", values)


def act_on_dead(session: WebSession, ask: PageRequest, *, verb: Verb) -> View | Notice:
    """Retry or purge the dead jobs with the error in the form, which is truncated as on the page; without one, all of them."""
    if ask.form.has("error"):
        error = ask.form.text("error") or ""
        dead = session.reads.jobs(DEAD, descending=False)
        ids = [job.id for job in dead if (job.error or "")[:ERROR_SHOWN] == error]
    else:
        ids = [job.id for job in session.reads.choose(DEAD)]
    if ids and not ask.is_confirmed:
        jobs = plural(len(ids), "dead job")
        return confirm(ask, verb.label, jobs, verb.about, back="/dlq", is_grave=verb.is_grave)
    return actions.perform(session, verb, ids, exact=True)
