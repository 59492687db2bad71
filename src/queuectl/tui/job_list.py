"""The list of jobs: its filter and order, and a window of it that moves with the cursor, so that memory is bounded at any number of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from queuectl.errors import AmbiguousId, NotFound
from queuectl.jobs.model import Job
from queuectl.jobs.search import COMMAND, Term, format_query, parse_query
from queuectl.jobs.states import State
from queuectl.operations.bulk import find_jobs
from queuectl.operations.pages import cursor_position
from queuectl.operations.query import is_sortable, parse_filter
from queuectl.store.reads import Range, Reads
from queuectl.store.types import After, Filter, Sort
from queuectl.tui.session import Session

WINDOW_SIZE: Final = 200  # jobs
STEP: Final = 100  # jobs by which the window moves
# The most important states first.
STATE_ORDER: Final = (
    State.PROCESSING,
    State.FAILED,
    State.PENDING,
    State.BLOCKED,
    State.DEAD,
    State.COMPLETED,
    State.CANCELLED,
)
# By state, the oldest jobs of these states come first, and the latest of all others.
_OLDEST_FIRST: Final = frozenset({State.PROCESSING, State.FAILED, State.PENDING, State.BLOCKED})


class JobFilter(NamedTuple):
    """`state`: that of all jobs of the list, whatever the query says. `query`: in the language of jobs/search.py."""

    state: State | None = None
    query: str = ""

    def where(self, now_ms: Callable[[], int]) -> Filter:
        """Raises InvalidInput or UnknownName."""
        where = parse_filter(query=self.query or None, query_name="filter", now_ms=now_ms)
        return where if self.state is None else where._replace(states=frozenset({self.state}))

    @property
    def word(self) -> str | None:
        """The query, if it is only a word, which may also be the beginning of an ID."""
        terms = parse_query(self.query, subject="filter")
        return terms[0].values[0] if len(terms) == 1 and terms[0].qualifier == COMMAND else None

    def values(self, qualifier: str) -> tuple[str, ...]:
        """The values that the query requires."""
        terms = parse_query(self.query, subject="filter")
        return tuple(
            value for term in terms if term.qualifier == qualifier and not term.is_negated for value in term.values
        )

    def with_values(self, qualifier: str, values: Sequence[str]) -> JobFilter:
        """With these instead of the values that the query requires now."""
        terms = parse_query(self.query, subject="filter")
        kept = [term for term in terms if term.qualifier != qualifier or term.is_negated]
        return self._replace(query=format_query([*([Term(qualifier, tuple(values))] if values else ()), *kept]))


class ListOrder(NamedTuple):
    """`sort` None: by state, in the order of importance."""

    sort: Sort | None = None
    reverse: bool = False

    @property
    def label(self) -> str:
        return ORDERS[self.sort][1 if self.reverse else 0]

    def is_descending(self, state: State | None) -> bool:
        if self.sort is None:
            return (state not in _OLDEST_FIRST) != self.reverse
        return (self.sort not in (Sort.RUN_AT, Sort.QUEUE)) != self.reverse


# The orders for the key `o`, with their names in both directions.
ORDERS: Final[dict[Sort | None, tuple[str, str]]] = {
    None: ("by state", "by state, reversed"),
    Sort.CREATED: ("newest first", "oldest first"),
    Sort.RUN_AT: ("due next", "due last"),
    Sort.PRIORITY: ("highest priority", "lowest priority"),
    Sort.FINISHED: ("ended last", "ended first"),
    Sort.DURATION: ("longest run", "shortest run"),
    Sort.QUEUE: ("by queue", "by queue, reversed"),
}


class Anchor(NamedTuple):
    """The job before the first one of a window."""

    section: State | None
    after: After


class Window(NamedTuple):
    """Up to WINDOW_SIZE jobs, in one part of the list.

    `first`: how many jobs precede it; None if that is unknown. `total`: how many there are; None if counting them would need a scan.
    """

    jobs: list[Job]
    anchor: Anchor | None
    has_more: bool
    first: int | None
    total: int | None
    filter: JobFilter
    order: ListOrder
    now_ms: int


NOTHING: Final = Window([], None, has_more=False, first=0, total=0, filter=JobFilter(), order=ListOrder(), now_ms=0)


class Move(NamedTuple):
    """Where to read: `anchor` None is the top. `to_end`: the last jobs. `up_from`: the jobs before this one, which belongs to the window."""

    anchor: Anchor | None = None
    first: int | None = 0
    to_end: bool = False
    up_from: Job | None = None


class _Section(NamedTuple):
    """A part of the list that one query reads. By state there is one for each state: no index has several states in one order."""

    state: State | None
    where: Filter
    sort: Sort
    descending: bool


def read_window(session: Session, job_filter: JobFilter, order: ListOrder, move: Move) -> Window:
    """The order is by state instead if the one that is asked for would take too long."""
    reads = session.find()
    if reads is None:
        return NOTHING._replace(filter=job_filter, order=order)
    where = job_filter.where(reads.now_ms)
    if order.sort is not None and not is_sortable(reads, where, order.sort):
        order = ListOrder()
    sections = list(_sections(reads, where, order))
    total = reads.count(where) if where.is_tallied else None
    anchor, first = move.anchor, move.first
    if move.to_end:
        anchor = _anchor_above(reads, sections, None, WINDOW_SIZE)
        first = 0 if anchor is None else None if total is None else total - WINDOW_SIZE
    elif move.up_from is not None:
        anchor = _anchor_above(reads, sections, move.up_from, STEP)
        first = 0 if anchor is None else None if first is None else max(0, first - STEP)
    found = list(islice(_read(reads, sections, anchor), WINDOW_SIZE + 1))
    named = _named(reads, job_filter.word, where) if anchor is None else []
    ids = {job.id for job in named}
    jobs = [*named, *(job for job in _without_stale(found[:WINDOW_SIZE]) if job.id not in ids)]
    return Window(jobs, anchor, len(found) > WINDOW_SIZE, first, total, job_filter, order, reads.now_ms())


def _without_stale(jobs: Sequence[Job]) -> list[Job]:
    """A job whose state changes between the queries of two sections is in both: only the later one is right."""
    latest = {job.id: job for job in jobs}
    return [job for job in jobs if job is latest[job.id]]


def anchor_at(window: Window, index: int) -> Anchor:
    """The anchor of a window that begins after the job with this index."""
    job = window.jobs[index]
    sort = window.order.sort
    return Anchor(job.state if sort is None else None, cursor_position(job, sort or Sort.CREATED))


def _sections(reads: Reads, where: Filter, order: ListOrder) -> Iterator[_Section]:
    if order.sort is not None:
        yield _Section(None, where, order.sort, order.is_descending(None))
        return
    counts = [states for queue, states in reads.tally().items() if where.has_queue(queue)]
    for state in reversed(STATE_ORDER) if order.reverse else STATE_ORDER:
        if (not where.states or state in where.states) and any(states.get(state) for states in counts):
            yield _Section(state, where._replace(states=frozenset({state})), Sort.CREATED, order.is_descending(state))


def _read(reads: Reads, sections: Sequence[_Section], anchor: Anchor | None) -> Iterator[Job]:
    """The jobs after the anchor. Each section is read when the ones before it are exhausted."""
    states = [section.state for section in sections]
    for section in sections:
        after = None
        if anchor is not None and anchor.section in states:
            if states.index(section.state) < states.index(anchor.section):
                continue
            after = anchor.after if section.state == anchor.section else None
        yield from reads.jobs(
            section.where,
            sort=section.sort,
            descending=section.descending,
            limit=WINDOW_SIZE + 1,
            within=Range(after),
        )


def _anchor_above(reads: Reads, sections: Sequence[_Section], job: Job | None, distance: int) -> Anchor | None:
    """The anchor of a window that begins `distance` jobs before this one (None: before the end); None if there are fewer."""
    left = distance + 1
    for section in reversed(sections):
        after = None
        if job is not None:
            if section.state not in (None, job.state):
                continue
            after, job = cursor_position(job, section.sort), None
        found = reads.jobs(
            section.where,
            sort=section.sort,
            descending=section.descending,
            limit=left,
            within=Range(after, backward=True),
        )
        for last in found:
            left -= 1
            if not left:
                return Anchor(section.state, cursor_position(last, section.sort))
    return None


def _named(reads: Reads, word: str | None, where: Filter) -> list[Job]:
    """The jobs whose ID begins with the word."""
    if word is None:
        return []
    try:
        ids = [reads.resolve(word)]
    except AmbiguousId as error:
        ids = list(error.candidates)
    except NotFound:
        return []
    return [job for job in find_jobs(reads, ids).values() if not where.states or job.state in where.states]
