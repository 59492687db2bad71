"""The list of jobs: its filter and order, and a window of it that moves with the cursor, so that memory is bounded at any number of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from queuectl.errors import AmbiguousId, NotFound
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.operations import inspect
from queuectl.operations.bulk import find_jobs
from queuectl.operations.pages import cursor_position
from queuectl.operations.query import is_sortable
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
    state: State | None = None
    queue: str | None = None
    batch: str | None = None
    text: str = ""  # in the command, or the prefix of an ID

    def where(self) -> Filter:
        return Filter(
            frozenset(() if self.state is None else (self.state,)),
            frozenset(() if self.queue is None else (self.queue,)),
            match=(self.text,) if self.text else (),
            batches=frozenset(() if self.batch is None else (self.batch,)),
            includes_webhooks=self.queue is not None,
        )


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
    """Raises InvalidInput for an order that would take too long."""
    reads = session.find()
    if reads is None:
        return NOTHING._replace(filter=job_filter, order=order)
    where = job_filter.where()
    if order.sort is not None and not is_sortable(reads, where, order.sort):
        order = ListOrder()
    sections = list(_sections(reads, job_filter, order))
    total = reads.count(where) if where.is_tallied else None
    anchor, first = move.anchor, move.first
    if move.to_end:
        anchor, first = _last_anchor(reads, sections, total)
    elif move.up_from is not None:
        anchor, first = _anchor_above(reads, sections, move)
    found = list(islice(_read(reads, sections, anchor), WINDOW_SIZE + 1))
    named = _named(reads, job_filter) if job_filter.text and anchor is None else []
    ids = {job.id for job in named}
    jobs = [*named, *(job for job in found[:WINDOW_SIZE] if job.id not in ids)]
    return Window(jobs, anchor, len(found) > WINDOW_SIZE, first, total, job_filter, order, reads.now_ms())


def anchor_at(window: Window, index: int) -> Anchor:
    """The anchor of a window that begins after the job with this index."""
    job = window.jobs[index]
    sort = window.order.sort
    return Anchor(job.state if sort is None else None, cursor_position(job, sort or Sort.CREATED))


def _sections(reads: Reads, job_filter: JobFilter, order: ListOrder) -> Iterator[_Section]:
    where = job_filter.where()
    if order.sort is not None:
        yield _Section(None, where, order.sort, order.is_descending(None))
        return
    tally = reads.tally()
    names = inspect.without_webhook_queue(tally) if job_filter.queue is None else [job_filter.queue]
    for state in reversed(STATE_ORDER) if order.reverse else STATE_ORDER:
        if job_filter.state in (None, state) and any(tally.get(name, {}).get(state) for name in names):
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
            section.where, sort=section.sort, descending=section.descending, limit=WINDOW_SIZE + 1, within=Range(after)
        )


def _read_up(reads: Reads, sections: Sequence[_Section], job: Job | None, limit: int) -> list[tuple[State | None, Job]]:
    """Up to `limit` jobs before this one (None: before the end), the nearest first. Only for orders whose reverse is exact."""
    found: list[tuple[State | None, Job]] = []
    is_below = job is not None
    for section in reversed(sections):
        after = None
        if is_below and job is not None:
            if section.state not in (None, job.state):
                continue
            is_below, after = False, cursor_position(job, section.sort)
        more = reads.jobs(
            section.where,
            sort=section.sort,
            descending=not section.descending,
            limit=limit - len(found),
            within=Range(after),
        )
        found += [(section.state, one) for one in more]
        if len(found) >= limit:
            break
    return found


def _anchor_above(reads: Reads, sections: Sequence[_Section], move: Move) -> tuple[Anchor | None, int | None]:
    """The anchor STEP jobs above the window, and how many jobs precede it."""
    first = None if move.first is None else max(0, move.first - STEP)
    if all(section.sort is Sort.CREATED for section in sections):
        above = _read_up(reads, sections, move.up_from, STEP + 1)
        if len(above) <= STEP:
            return None, 0
        state, job = above[-1]
        return Anchor(state, cursor_position(job, Sort.CREATED)), first
    return _anchor_at_offset(reads, sections, first or 0)


def _last_anchor(reads: Reads, sections: Sequence[_Section], total: int | None) -> tuple[Anchor | None, int | None]:
    """The anchor of the last window."""
    if all(section.sort is Sort.CREATED for section in sections):
        above = _read_up(reads, sections, None, WINDOW_SIZE + 1)
        if len(above) <= WINDOW_SIZE:
            return None, 0
        state, job = above[-1]
        return Anchor(state, cursor_position(job, Sort.CREATED)), None if total is None else total - WINDOW_SIZE
    (section,) = sections
    return _anchor_at_offset(
        reads, sections, max(0, (reads.count(section.where) if total is None else total) - WINDOW_SIZE)
    )


def _anchor_at_offset(reads: Reads, sections: Sequence[_Section], offset: int) -> tuple[Anchor | None, int]:
    (section,) = sections
    at = max(0, offset - 1)
    before = reads.jobs(section.where, sort=section.sort, descending=section.descending, limit=1, offset=at)
    job = next(iter(before), None) if offset else None
    return (None, 0) if job is None else (Anchor(None, cursor_position(job, section.sort)), offset)


def _named(reads: Reads, job_filter: JobFilter) -> list[Job]:
    """The jobs whose ID begins with the text."""
    try:
        ids = [reads.resolve(job_filter.text)]
    except AmbiguousId as error:
        ids = list(error.candidates)
    except NotFound:
        return []
    jobs, where = find_jobs(reads, ids).values(), job_filter.where()
    return [
        job
        for job in jobs
        if (not where.states or job.state in where.states)
        and where.has_queue(job.queue)
        and job_filter.batch in (None, job.batch)
    ]
