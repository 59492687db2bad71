"""Pages of a list of jobs: keyset pagination in both directions, the number of matches, and a time limit for searches.

No index finds a text in commands or errors, or the jobs of a queue or worker. An index of texts would have to be written with every job,
for lists that are rarely used, so these lists read the jobs of their states in order, window by window. A page ends when
it is full or after SEARCH_SECONDS, for texts TEXT_SEARCH_SECONDS; its cursor continues there (ADR 55).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, assert_never

from queuectl.clock import SystemClock
from queuectl.errors import InvalidInput
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.operations.query import MAX_SORTED_JOBS, check_sortable
from queuectl.store.reads import Range, Reads
from queuectl.store.types import After, Filter, Sort
from queuectl.text import is_valid_queue
from queuectl.units import to_ms

MAX_COUNTED: Final = 1000  # matches that a page counts
SEARCH_SECONDS: Final = 0.1
TEXT_SEARCH_SECONDS: Final = 0.15
FIRST_WINDOW: Final = 2000  # jobs
WINDOW_GROWTH: Final = 4


class Page(NamedTuple):
    """A page of jobs, with the cursors of its neighbors. `before`: the number of jobs on the pages before it.

    `total`: how many jobs match, None if they were not counted. There may be more unless `total_is_exact`. `is_partial`: the search
    has stopped at its time limit, and the next page continues it.
    """

    jobs: list[Job]
    next_cursor: str | None
    previous_cursor: str | None = None
    before: int = 0
    total: int | None = None
    total_is_exact: bool = False
    is_partial: bool = False


def page(
    store: Reads,
    where: Filter,
    *,
    sort: Sort,
    descending: bool,
    limit: int,
    cursor: str | None = None,
    counts: bool = False,
    most_sorted: int = MAX_SORTED_JOBS,
    seconds: float | None = None,
    monotonic: Callable[[], float] = SystemClock.monotonic,
) -> Page:
    """Up to `limit` jobs (at least 1) that match, from the cursor on. Raises InvalidInput for a cursor of another order, and for an
    order without an index if more than `most_sorted` jobs would have to be sorted.

    Keyset pagination: a job whose sort key does not change is returned exactly once, even if others are added or removed.
    `counts`: also count the matches, up to MAX_COUNTED. `seconds`: the time limit of a search, by default the constant for it.
    """
    start = None if cursor is None else parse_cursor(cursor, sort, descending=descending)
    check_sortable(store, where, sort, most=most_sorted)
    if where.is_tallied and not store.count(where):
        return Page([], None, total=0 if counts else None, total_is_exact=counts)
    if seconds is None:
        seconds = TEXT_SEARCH_SECONDS if where.has_text else SEARCH_SECONDS
    search = _Search(store, where, sort, descending, monotonic() + seconds, monotonic)
    found = _previous_page(search, start, limit) if start is not None and start.backward else None
    if found is None:
        found = _next_page(search, None if start is None or start.backward else start, limit)
    return search.with_total(found) if counts else found


class _Search(NamedTuple):
    """Reads the jobs that match, and stops at the deadline."""

    store: Reads
    where: Filter
    sort: Sort
    descending: bool
    deadline: float
    monotonic: Callable[[], float]

    def cursor(self, after: After, before: int, *, backward: bool = False) -> str:
        return format_cursor(Cursor(after, before, backward), self.sort, descending=self.descending)

    def position(self, job: Job) -> After:
        return cursor_position(job, self.sort)

    def take(self, most: int, *, after: After | None, backward: bool) -> tuple[list[Job], After | None]:
        """Up to `most` jobs, and where the search has stopped; None if it has found all of them."""
        found: list[Job] = []

        def read(within: Range, left: int) -> int:
            jobs = list(
                self.store.jobs(self.where, sort=self.sort, descending=self.descending, limit=left, within=within)
            )
            found.extend(jobs)
            return len(jobs)

        return found, self._scan(read, most, after=after, backward=backward)

    def with_total(self, page: Page) -> Page:
        if self.where.is_tallied:
            return page._replace(total=self.store.count(self.where), total_is_exact=True)
        counted = page.before + len(page.jobs)
        if page.next_cursor is None or page.is_partial:
            return page._replace(total=counted, total_is_exact=not page.is_partial)
        if counted >= MAX_COUNTED:
            return page._replace(total=counted)
        more = 0

        def count(within: Range, left: int) -> int:
            nonlocal more
            number = self.store.count(self.where, most=left, sort=self.sort, descending=self.descending, within=within)
            more += number
            return number

        most = MAX_COUNTED + 1 - counted
        stopped = self._scan(count, most, after=self.position(page.jobs[-1]), backward=False)
        total = min(counted + more, MAX_COUNTED)
        return page._replace(total=total, total_is_exact=stopped is None and more < most)

    def _scan(
        self, read: Callable[[Range, int], int], most: int, *, after: After | None, backward: bool
    ) -> After | None:
        """Call `read` with one window after the other and the number of jobs that are still wanted; it returns how many it found.

        Returns where the time was over, or None.
        """
        if not self._has_windows:
            read(Range(after, None, backward), most)
            return None
        size = FIRST_WINDOW
        while True:
            began = self.monotonic()
            end = self._end_of_window(after, size, backward=backward)
            most -= read(Range(after, end, backward), most)
            now = self.monotonic()
            if most <= 0 or end is None:
                return None
            if now >= self.deadline:
                return end
            affordable = size * (self.deadline - now) / max(now - began, 1e-6)
            size, after = max(FIRST_WINDOW, int(min(size * WINDOW_GROWTH, affordable))), end

    @property
    def _has_windows(self) -> bool:
        # In any other order the jobs are few.
        has_index = self.sort is Sort.CREATED or (self.sort is Sort.FINISHED and len(self.where.states) == 1)
        return has_index and self.where.is_scan

    def _end_of_window(self, after: After | None, size: int, *, backward: bool) -> After | None:
        """The last position of the next `size` jobs; None if there are fewer."""
        if self.sort is not Sort.CREATED:
            within = Range(after, None, backward)
            return self.store.position_ahead(
                self.where.states, self.sort, descending=self.descending, within=within, jobs=size
            )
        last, falls = self.store.last_seq(), self.descending is not backward
        start = after.seq if after is not None else last + 1 if falls else 0
        end = start - size if falls else start + size
        return None if (end <= 0 if falls else end >= last) else After(end, end)


def _next_page(search: _Search, start: Cursor | None, limit: int) -> Page:
    after, before = (None, 0) if start is None else (start.after, start.before)
    found, stopped = search.take(limit + 1, after=after, backward=False)
    jobs = found[:limit]
    next_at = search.position(jobs[-1]) if len(found) > limit else stopped
    has_previous = start is not None and bool(jobs)
    return Page(
        jobs,
        None if next_at is None else search.cursor(next_at, before + len(jobs)),
        search.cursor(search.position(jobs[0]), before, backward=True) if has_previous else None,
        before,
        is_partial=stopped is not None,
    )


def _previous_page(search: _Search, end: Cursor, limit: int) -> Page | None:
    """The page that ends before a position; None if that is within the first page."""
    found, stopped = search.take(limit + 1, after=end.after, backward=True)
    if len(found) <= limit and stopped is None:
        return None
    jobs = found[:limit][::-1]
    before = max(1, end.before - len(jobs))
    previous_at = search.position(jobs[0]) if len(found) > limit else stopped
    return Page(
        jobs,
        search.cursor(search.position(jobs[-1]) if jobs else end.after, before + len(jobs)),
        None if previous_at is None else search.cursor(previous_at, before, backward=True),
        before,
    )


# ── cursors ─────────────────────────────────────────────────────────────────────────────────────────────────────────

MAX_CURSOR_NUMBER: Final = 2**63 - 1  # the largest number of both databases
MAX_CURSOR_CHARS: Final = 500  # far more than any valid cursor
_MAY_BE_NULL: Final = {Sort.FINISHED, Sort.DURATION}


def cursor_position(job: Job, sort: Sort) -> After:
    """The position of a job in this order."""
    match sort:
        case Sort.CREATED:
            value: int | str | None = job.seq
        case Sort.PRIORITY:
            value = job.priority
        case Sort.STATE:
            value = job.state.value
        case Sort.QUEUE:
            value = job.queue
        case Sort.RUN_AT:
            value = to_ms(job.run_at)
        case Sort.FINISHED:
            value = None if job.finished_at is None else to_ms(job.finished_at)
        case Sort.DURATION:
            value = job.duration_ms
        case _:
            assert_never(sort)
    return After(value, job.seq)


class Cursor(NamedTuple):
    """A link from one page to another. `before`: the number of jobs before the page, as far as the pages up to it have shown.
    `backward`: the page ends there, instead of starting there."""

    after: After
    before: int = 0
    backward: bool = False


def format_cursor(cursor: Cursor, sort: Sort, *, descending: bool) -> str:
    (value, seq), before, backward = cursor
    return encode_cursor([sort.value, descending, value, seq, before, backward])


def parse_cursor(text: str, sort: Sort, *, descending: bool) -> Cursor:
    """Raises InvalidInput unless `format_cursor` made it for the same order."""
    try:
        of, is_descending, cursor = _parse_cursor_fields(text)
    except (ValueError, TypeError, RecursionError) as exc:
        raise invalid_cursor() from exc
    if (of, is_descending) != (sort, descending):
        raise InvalidInput("cursor", "it belongs to a list in another order", hint="start again without a cursor")
    return cursor


def _parse_cursor_fields(text: str) -> tuple[Sort, bool, Cursor]:
    name, way, value, seq, before, backward = decode_cursor(text)
    sort, cursor = Sort(name), Cursor(After(value, seq), before, bool(backward))
    # Only the canonical form is accepted.
    if not (
        _is_possible(cursor.after, sort)
        and _is_number(before)
        and before >= 0
        and format_cursor(cursor, sort, descending=bool(way)) == text
    ):
        raise ValueError
    return sort, bool(way), cursor


def encode_cursor(fields: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_cursor(text: str) -> list[Any]:
    """Raises ValueError, TypeError or RecursionError for invalid text."""
    if len(text) > MAX_CURSOR_CHARS:
        raise ValueError
    return list(json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)))


def invalid_cursor() -> InvalidInput:
    return InvalidInput("cursor", "it is not a valid cursor", hint="use next_cursor of the previous page unchanged")


def _is_possible(after: After, sort: Sort) -> bool:
    """Whether a job can have this position: a database must not be queried with a value of another type."""
    if not _is_number(after.seq):
        return False
    match sort:
        case Sort.STATE:
            return isinstance(after.value, str) and after.value in set(State)
        case Sort.QUEUE:
            return isinstance(after.value, str) and is_valid_queue(after.value)
        case _:
            return _is_number(after.value) or (after.value is None and sort in _MAY_BE_NULL)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_CURSOR_NUMBER
