"""The list of jobs, the dead letter queue, and the search field on every page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from queuectl.errors import Conflict, NotFound, UsageError
from queuectl.jobs.model import Job
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.search import QUALIFIERS
from queuectl.jobs.states import FINAL, State
from queuectl.operations.bulk import find_jobs
from queuectl.operations.pages import MAX_COUNTED, Page, page
from queuectl.operations.query import is_sortable, parse_sort, query_suggestions
from queuectl.store.reads import Reads
from queuectl.store.types import Filter, Sort
from queuectl.store_threads import WebSession
from queuectl.text import is_valid_id, plural
from queuectl.units import from_ms
from queuectl.web.pages import actions
from queuectl.web.pages.actions import LIST_VERBS, Chip, Selection, Verb
from queuectl.web.pages.render import (
    Fields,
    Notice,
    PageRequest,
    Pairs,
    Redirect,
    View,
    confirm,
    part,
    safe_text,
    with_query,
)

LIMITS: Final = (25, 50, 100, 250)
DEFAULT_LIMIT: Final = 50
SINCE: Final = (("15m", "15 minutes"), ("1h", "hour"), ("1d", "day"), ("7d", "week"), ("30d", "30 days"))


class Column(NamedTuple):
    name: str  # of the cell in the template
    label: str
    sort: Sort | None = None


_JOB: Final = Column("job", "Job")
_STATE: Final = Column("state", "State")
_QUEUE: Final = Column("queue", "Queue", Sort.QUEUE)
_TAGS: Final = Column("tags", "Batch and tags")
_PRIORITY: Final = Column("priority", "Priority", Sort.PRIORITY)
_ATTEMPTS: Final = Column("attempts", "Attempts")
_NOTE: Final = Column("note", "Error")
_DURATION: Final = Column("duration", "Duration", Sort.DURATION)
_FINISHED: Final = Column("finished", "Finished", Sort.FINISHED)
_ENQUEUED: Final = Column("created", "Enqueued", Sort.CREATED)
_MIXED: Final = (
    Column("state", "State", Sort.STATE),
    *(_JOB, Column("note", "Details"), _QUEUE, _TAGS, _DURATION, _ENQUEUED),
)
_ENDED: Final = (_STATE, _JOB, _NOTE, _QUEUE, _TAGS, _DURATION, _FINISHED)
# The columns for the jobs of one state.
_COLUMNS: Final[Mapping[State, tuple[Column, ...]]] = {
    State.BLOCKED: (_JOB, Column("note", "Waiting for"), _QUEUE, _TAGS, _PRIORITY, _ENQUEUED),
    State.PENDING: (
        *(_JOB, Column("note", "Reason"), _QUEUE, _TAGS, _PRIORITY),
        Column("due", "Due", Sort.RUN_AT),
        _ENQUEUED,
    ),
    State.PROCESSING: (
        *(
            _JOB,
            _QUEUE,
            _TAGS,
            Column("worker", "Worker"),
            Column("attempt", "Attempt"),
            Column("running", "Running for"),
        ),
        _ENQUEUED,
    ),
    State.FAILED: (_JOB, _NOTE, _QUEUE, _TAGS, _ATTEMPTS, Column("due", "Next retry", Sort.RUN_AT), _ENQUEUED),
    State.COMPLETED: (_JOB, Column("note", "Last output"), _QUEUE, _TAGS, _DURATION, _FINISHED, _ENQUEUED),
    State.DEAD: (_JOB, _NOTE, _QUEUE, _TAGS, _ATTEMPTS, Column("finished", "Died", Sort.FINISHED)),
    State.CANCELLED: (
        _JOB,
        Column("note", "Reason"),
        _QUEUE,
        _TAGS,
        _DURATION,
        Column("finished", "Cancelled", Sort.FINISHED),
    ),
}


def _columns(states: frozenset[State]) -> tuple[Column, ...]:
    if len(states) == 1:
        return _COLUMNS[next(iter(states))]
    return _ENDED if states and states <= FINAL else _MIXED


class Header(NamedTuple):
    """The header of a column. `url`: the list sorted by it, in the other order if it is already; None if that is not possible."""

    column: Column
    url: str | None
    order: str | None  # as of aria-sort; None if the list is in another order


def show(session: WebSession, ask: PageRequest) -> View:
    reads, chosen = session.reads, Selection(ask.query)
    sort, limit = ask.query.one("sort"), _limit(ask.query.one("limit"))
    here = [*chosen.pairs, *_view(sort, limit)]
    tally = reads.tally()
    problem: UsageError | None = None
    found, where, counts = Page([], None), Filter(), None
    headers = [Header(column, None, None) for column in _MIXED]
    try:
        where = chosen.where(reads)
        counts = _count_states(reads, where, tally)
        key, descending = parse_sort(sort or _default_sort(where.states))
        headers = _headers(reads, where, chosen, (key, descending), limit)
        cursor = ask.query.one("cursor")
        found = page(reads, where, sort=key, descending=descending, limit=limit, cursor=cursor, counts=True)
    except UsageError as error:
        problem = error

    def to_page(cursor: str | None) -> str | None:
        return None if cursor is None else with_query("/jobs", [*here, ("cursor", cursor)])

    values: dict[str, Any] = {
        "chosen": chosen,
        "jobs": found.jobs,
        "page": found,
        "next_url": to_page(found.next_cursor),
        "previous_url": to_page(found.previous_cursor),
        "first_url": with_query("/jobs", here) if ask.query.has("cursor") else None,
        "problem": problem,
        "tabs": _tabs(chosen, where.states, counts, sort, limit),
        "headers": headers,
        "chips": [_describe_failure(chip, found.jobs) for chip in chosen.chips(_view(sort, limit))],
        "all_url": with_query("/jobs", _view(sort, limit)),
        "qualifiers": QUALIFIERS,
        "suggestions": query_suggestions(reads),
        "view": _view(sort, limit),
        "limit": limit,
        "limits": [(size, with_query("/jobs", [*chosen.pairs, *_view(sort, size)])) for size in LIMITS],
        "since_choices": SINCE,
        "verbs": [verb for verb in LIST_VERBS if not where.states or where.states & verb.action.able],
        **_table(reads),
        "nothing": _nothing(where.states) if set(dict(chosen.pairs)) == {"state"} else None,
        "is_empty": not any(sum(counts.values()) for counts in tally.values()),
    }
    return View("jobs.html", "Jobs", values)


_NOTHING: Final[Mapping[State, str]] = {
    State.BLOCKED: "Jobs waiting for other jobs appear here.",
    State.PENDING: "Jobs waiting for a worker appear here.",
    State.PROCESSING: "Running jobs appear here.",
    State.FAILED: "Jobs waiting for another attempt appear here.",
    State.COMPLETED: "Jobs that succeeded appear here.",
    State.DEAD: "Jobs without attempts left appear here.",
    State.CANCELLED: "Cancelled jobs appear here.",
}


def _nothing(states: frozenset[State]) -> tuple[str, str] | None:
    """What an empty list of the jobs of one state says, without a filter to remove."""
    return next(((f"No {state.value} jobs", _NOTHING[state]) for state in states if len(states) == 1), None)


_NAMED_BY: Final = {"batch": "tags", "queue": "queue"}  # the column that shows a selector


def table(reads: Reads, states: Iterable[State] = (), *selectors: tuple[str, str]) -> dict[str, Any]:
    """What the table of jobs needs on other pages. `selectors`: those that its jobs have in common, and
    that links in its cells keep."""
    wanted, told = frozenset(states), {_NAMED_BY[name] for name, _ in selectors}
    return {
        "chosen": Selection(Fields([*(("state", state.value) for state in wanted), *selectors])),
        "view": [],
        "headers": [Header(column, None, None) for column in _columns(wanted) if column.name not in told],
        **_table(reads),
    }


def _table(reads: Reads) -> dict[str, Any]:
    """What the table of jobs needs besides its headers."""
    return {
        "now": from_ms(reads.now_ms()),
        "allowed": lambda job: allowed_failures(job.max_retries, first_is_free=job.first_is_free),
        "verbs_of": lambda job: " ".join(verb.name for verb in LIST_VERBS if verb.fits(job)),
    }


def _headers(reads: Reads, where: Filter, chosen: Selection, order: tuple[Sort, bool], limit: int) -> list[Header]:
    # All orders without an index cost the same, and to find out whether a tag has few enough jobs takes a while.
    may_sort = cache(lambda sort: is_sortable(reads, where, sort))

    def header(column: Column) -> Header:
        sort = column.sort
        if sort is None or not may_sort(sort if sort in {Sort.CREATED, Sort.FINISHED} else Sort.PRIORITY):
            return Header(column, None, None)
        is_current, descends = sort is order[0], parse_sort(sort.value)[1]
        is_reversed = is_current and order[1] is descends
        url = with_query("/jobs", [*chosen.pairs, *_view(f"-{sort.value}" if is_reversed else sort.value, limit)])
        return Header(column, url, ("descending" if order[1] else "ascending") if is_current else None)

    return [header(column) for column in _columns(where.states)]


def _default_sort(states: frozenset[State]) -> Sort:
    return Sort.FINISHED if len(states) == 1 and states <= FINAL else Sort.CREATED


def _view(sort: str | None, limit: int) -> Pairs:
    """The query parameters for the order and the size of the list."""
    return ([] if sort is None else [("sort", sort)]) + [("limit", str(limit))] * (limit != DEFAULT_LIMIT)


def _limit(text: str | None) -> int:
    return int(text) if text in {str(limit) for limit in LIMITS} else DEFAULT_LIMIT


def _describe_failure(chip: Chip, jobs: Sequence[Job]) -> Chip:
    """A fingerprint tells users nothing: show the error and the last output of the first of the jobs instead."""
    if chip.name != "fingerprint" or not jobs:
        return chip
    texts = (jobs[0].error or "no error", jobs[0].last_output)
    return chip._replace(name="failed like", value=safe_text(": ".join(filter(None, texts)))[:200])


class Tab(NamedTuple):
    name: str
    url: str
    is_current: bool
    jobs: int | None  # None: not counted


def _tabs(
    chosen: Selection, states: frozenset[State], counts: Counts | None, sort: str | None, limit: int
) -> list[Tab]:
    """All jobs, and those of each state, with the same other filters."""
    tabs = []
    for name, shown in [("all", frozenset(State)), *((state.value, frozenset({state})) for state in State)]:
        sorts = {column.sort for column in _columns(shown) if column.sort is not None}
        view = _view(sort if sort is not None and sort.removeprefix("-") in sorts else None, limit)
        url = chosen.with_states(() if name == "all" else (name,), view)
        jobs = None if counts is None else sum(counts[state] for state in shown)
        tabs.append(Tab(name, url, shown == states or (name == "all" and not states), jobs))
    return tabs


Counts = Mapping[State, int]


def _count_states(reads: Reads, where: Filter, tally: Mapping[str, Counts]) -> Counts | None:
    """Matching jobs by state; None if there are too many to count, or if every job would have to be read."""
    where = where._replace(states=frozenset())
    if where.is_tallied:
        chosen = [counts for queue, counts in tally.items() if where.has_queue(queue)]
        return {state: sum(counts.get(state, 0) for counts in chosen) for state in State}
    if where.is_scan or reads.count(where, most=MAX_COUNTED + 1) > MAX_COUNTED:
        return None
    return {state: reads.count(where._replace(states=frozenset({state}))) for state in State}


# Among 200,000 random IDs some begin with any given word of 3 or 4 letters. Longer text with a digit in it is not a word.
MIN_ID_PREFIX: Final = 6


def find(session: WebSession, ask: PageRequest) -> Redirect:
    """To the job with this ID, or to the list of jobs that match."""
    wanted = ask.query.one("q")
    if wanted is None:
        return Redirect("/jobs")
    job_id = _job_id(session, wanted)
    return Redirect(with_query("/jobs", [("q", wanted)]) if job_id is None else f"/jobs/{part(job_id)}")


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
    groups = [{**one._asdict(), "at": from_ms(one.at_ms)} for one in reads.failures(limit=MAX_ERROR_GROUPS)]
    values: dict[str, Any] = {
        "count": reads.count(DEAD),
        "groups": groups,
        **table(reads, [State.DEAD]),
        "latest": list(reads.jobs(DEAD, sort=Sort.FINISHED, limit=MAX_LATEST_DEAD)),
    }
    return View("dlq.html", "Dead jobs", values)


def act_on_dead(session: WebSession, ask: PageRequest, *, verb: Verb) -> View | Notice:
    """Retry or purge the dead jobs of the kinds of failure in the form; without one, all of them."""
    where = DEAD._replace(fingerprints=frozenset(ask.form.all("fingerprint")))
    if ask.form.has("fingerprint") and not where.fingerprints:
        raise UsageError("the fingerprint is empty", hint="omit it to act on all dead jobs")
    ids = [job.id for job in session.reads.choose(where)]
    if ids and not ask.is_confirmed:
        jobs = plural(len(ids), "dead job")
        return confirm(ask, verb.label, jobs, verb.about, back="/dlq", is_grave=verb.is_grave)
    return actions.perform(session, verb, ids, exact=True)
