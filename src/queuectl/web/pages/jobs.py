"""The list of jobs: filters in the address, a page at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from queuectl.errors import UsageError
from queuectl.job.lifecycle import FINAL, WAITING, State
from queuectl.queue.filters import parse_sort
from queuectl.queue.inspect import Page, page, without_calls
from queuectl.queue.ordering import MOST_SORTED, is_sortable
from queuectl.store.protocol import Filter, Reads
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Pairs, Shown, with_query
from queuectl.web.pages.selecting import Selecting
from queuectl.web.pages.verbs import VERBS

LIMITS: Final = (25, 50, 100, 250)
LIMIT: Final = 50
# Offered where they mean something.
ALWAYS: Final = {"created": "newest first", "-created": "oldest first"}
WAITS: Final = {**ALWAYS, "run_at": "due next", "priority": "highest priority"}
ENDED: Final = {**ALWAYS, "finished": "ended last", "duration": "longest run"}
SINCE: Final = (("15m", "15 minutes"), ("1h", "hour"), ("1d", "day"), ("7d", "week"), ("30d", "30 days"))


def show(desk: Desk, ask: Ask) -> Shown:
    reads, chosen = desk.reads, Selecting.of(ask.query)
    sort, limit = ask.query.one("sort") or "created", _limit(ask.query.one("limit"))
    view = _view(sort, limit)
    tally = reads.tally()
    problem: UsageError | None = None
    found, total, sorts = Page([], None), None, _sorts(chosen.all("state"))
    offered: Mapping[str, str] = ALWAYS
    try:
        where = chosen.where(reads)
        offered = _offered(reads, where, sorts)
        key, descending = parse_sort(sort)
        found = page(reads, where, sort=key, descending=descending, limit=limit, cursor=ask.query.one("cursor"))
        total = _total(reads, where)
    except UsageError as error:
        problem = error
    values: dict[str, Any] = {
        "chosen": chosen,
        "jobs": found.jobs,
        "total": total,
        "next_url": _next(chosen, view, found.next_cursor),
        "first_url": with_query("/jobs", [*chosen.pairs, *view]) if ask.query.has("cursor") else None,
        "problem": problem,
        "tabs": _tabs(chosen, tally, sort, limit),
        "queue_names": sorted({*tally, *chosen.all("queue")}),
        "sort": sort,
        "sorts": {sort: sort, **sorts},
        "unsortable": sorts.keys() - offered.keys(),
        "most_sorted": MOST_SORTED,
        "limit": limit,
        "limits": LIMITS,
        "since_choices": SINCE,
        "view": view,
        "verbs": list(VERBS.values()),
        "is_empty": not any(sum(counts.values()) for counts in tally.values()),
    }
    return Shown("jobs.html", "Jobs", values)


def _next(chosen: Selecting, view: Pairs, cursor: str | None) -> str | None:
    return None if cursor is None else with_query("/jobs", [*chosen.pairs, *view, ("cursor", cursor)])


def _view(sort: str, limit: int) -> Pairs:
    """What of the address is about how the list is shown."""
    return [("sort", sort)] * (sort != "created") + [("limit", str(limit))] * (limit != LIMIT)


def _sorts(states: Sequence[str]) -> Mapping[str, str]:
    if states and WAITING.issuperset(states):
        return WAITS
    return ENDED if states and FINAL.issuperset(states) else ALWAYS


def _offered(reads: Reads, where: Filter, sorts: Mapping[str, str]) -> dict[str, str]:
    """Those that can be had of so many jobs."""
    return {value: label for value, label in sorts.items() if is_sortable(reads, where, parse_sort(value)[0])}


def _limit(text: str | None) -> int:
    return int(text) if text in {str(limit) for limit in LIMITS} else LIMIT


def _total(reads: Reads, where: Filter) -> int | None:
    """Where the counts of queues and states tell. To count others would mean to look at every job for one number."""
    return reads.count(where) if where.is_tallied else None


def _tabs(chosen: Selecting, tally: dict[str, dict[State, int]], sort: str, limit: int) -> list[dict[str, Any]]:
    """The states, each with how many there are, of the queues that are chosen; no numbers where other filters would make them wrong."""
    queues = chosen.all("queue") or tuple(without_calls(tally))
    is_known = not any(name not in {"state", "queue"} for name, _ in chosen.pairs)
    counts = {state: sum(tally.get(queue, {}).get(state, 0) for queue in queues) for state in State}
    tabs: list[dict[str, Any]] = [{"name": "all", "label": "All", "states": (), "count": sum(counts.values())}]
    tabs += [
        {
            "name": state.value,
            "label": state.value.capitalize(),
            "states": (state.value,),
            "count": counts[state],
        }
        for state in State
    ]
    states = chosen.all("state")
    for tab in tabs:
        kept = sort if sort in _sorts(tab["states"]) else "created"
        tab["url"] = chosen.but("state", *tab["states"], more=_view(kept, limit))
        tab["is_here"] = tab["name"] in states if states else tab["name"] == "all"
        tab["count"] = tab["count"] if is_known else None
    return tabs
