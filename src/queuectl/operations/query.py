"""Filters, sort orders and pagination cursors of job lists: parse them and check that they are affordable."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, assert_never

from queuectl.errors import InvalidInput, UnknownName
from queuectl.jobs.model import Job
from queuectl.jobs.states import FINAL, STATE_ALIASES, State
from queuectl.store.reads import Reads
from queuectl.store.types import After, Filter, Sort
from queuectl.text import closest_match, is_valid_queue, short_repr
from queuectl.units import parse_duration_ms, parse_time_ms, to_ms

# Descending by default (newest, highest, longest first), except names and `run_at`.
_SMALLEST_FIRST: Final = frozenset({Sort.STATE, Sort.QUEUE, Sort.RUN_AT})


def parse_filter(
    *,
    now_ms: Callable[[], int],
    states: Iterable[str] = (),
    queues: Iterable[str] = (),
    tags: Iterable[str] = (),
    batches: Iterable[str] = (),
    fingerprints: Iterable[str] = (),
    since: object = None,
    match: object = None,
    dashes: str = "",
) -> Filter:
    """Parse a filter: any of the states, queues, batches and fingerprints, and all of the tags. Raises InvalidInput or UnknownName.

    A state may be a list, `dead,failed`, in any case. Webhook deliveries match only if their queue is named. `now_ms`, the time of the
    store, is called only if `since` needs it, after everything else is validated. `dashes` is `--` if the names in messages are
    options.
    """
    wanted = [name for text in states for name in text.split(",")]
    queues, tags = frozenset(queues), frozenset(tags)
    return Filter(
        frozenset(map(parse_state, wanted)),
        queues,
        tags,
        batches=frozenset(batches),
        fingerprints=frozenset(fingerprints),
        match=None if match is None else _parse_match(match, subject=f"{dashes}match"),
        since_ms=None if since is None else parse_since(since, subject=f"{dashes}since", now_ms=now_ms),
        # Webhook deliveries are internal.
        includes_webhooks=bool(queues or tags),
    )


def restrict_states(where: Filter, able: frozenset[State], *, done: str, subject: str) -> Filter:
    """The filter restricted to the `able` states of an action. Raises InvalidInput if it names another state."""
    for state in sorted(where.states - able):
        hint = f"one of: {', '.join(state for state in State if state in able)}"
        raise InvalidInput(subject, f"{state} jobs cannot be {done}", hint=hint)
    return where if where.states else where._replace(states=able)


def _parse_match(text: object, *, subject: str) -> str:
    # An empty text matches every job: more likely an unset variable than intended.
    if not isinstance(text, str) or not text:
        raise InvalidInput(
            subject, f"expected some text, got {short_repr(text)}", hint="a part of the command, as it is"
        )
    if "\0" in text or text.encode(errors="replace").decode() != text:
        raise InvalidInput(subject, f"no command can contain {short_repr(text)}", hint="text in UTF-8, without NUL")
    return text


def parse_since(value: object, *, subject: str, now_ms: Callable[[], int]) -> int:
    if isinstance(value, datetime) or (isinstance(value, str) and "-" in value.strip()[1:]):
        return parse_time_ms(value, subject=subject, local=None)
    try:
        ago = parse_duration_ms(value, subject=subject)
    except InvalidInput as exc:
        hint = "for example, 90s, 1h30m or 2d ago, or the time 2026-11-15 20:30"
        raise InvalidInput(subject, f"expected a time or a duration, got {short_repr(value)}", hint=hint) from exc
    return max(0, now_ms() - ago)


def parse_state(name: str) -> State:
    name = name.strip()
    if alias := STATE_ALIASES.get(name.lower()):
        return alias
    try:
        return State(name.lower())
    except ValueError as exc:
        known = [state.value for state in State]
        raise UnknownName(
            "state", name, nearest=closest_match(name.lower(), [*known, *STATE_ALIASES]), known=known
        ) from exc


def parse_sort(text: str) -> tuple[Sort, bool]:
    """The key and whether it is descending. Each key has a default direction; a `-` before it reverses that."""
    name = text.removeprefix("-").strip().lower().replace("-", "_")
    try:
        sort = Sort(name)
    except ValueError as exc:
        known = [sort.value for sort in Sort]
        raise UnknownName("sort key", text, nearest=closest_match(name, known), known=known) from exc
    return sort, (sort not in _SMALLEST_FIRST) ^ text.startswith("-")


# The largest number of both databases.
MAX_COUNT: Final = 2**63 - 1


def parse_count(value: object, *, subject: str, low: int = 0) -> int | None:
    """A count; None for "not given". Raises InvalidInput for any other value."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        problem = f"expected an integer of at least {low}, got {short_repr(value)}"
        raise InvalidInput(subject, problem, hint=f"for example, {subject}=10")
    return min(value, MAX_COUNT)


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


def format_cursor(after: After, sort: Sort, *, descending: bool) -> str:
    return encode_cursor([sort.value, descending, after.value, after.seq])


def parse_cursor(text: str, sort: Sort, *, descending: bool) -> After:
    """Raises InvalidInput unless `format_cursor` made it for the same order."""
    try:
        of, is_descending, after = _parse_cursor_fields(text)
    except (ValueError, TypeError, RecursionError) as exc:
        raise invalid_cursor() from exc
    if (of, is_descending) != (sort, descending):
        raise InvalidInput("cursor", "it belongs to a list in another order", hint="start again without a cursor")
    return after


def _parse_cursor_fields(text: str) -> tuple[Sort, bool, After]:
    name, way, value, seq = decode_cursor(text)
    sort, after = Sort(name), After(value, seq)
    # Only the canonical form is accepted.
    if not _is_possible(after, sort) or format_cursor(after, sort, descending=bool(way)) != text:
        raise ValueError
    return sort, bool(way), after


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


MAX_SORTED_JOBS: Final = 50_000  # takes about 100 ms


def check_sortable(store: Reads, where: Filter, sort: Sort, *, most: int = MAX_SORTED_JOBS) -> None:
    """Raise InvalidInput for an order over HTTP that no index supports, of too many jobs.

    An index for every order would make every run slower, for lists that are rarely used. `queuectl list` sorts any number.
    """
    if is_sortable(store, where, sort, most=most):
        return
    problem = f"more than {most:,} jobs are too many to sort by {sort.value}"
    hint = "choose fewer, by state, tag or batch, or sort by created; queuectl list sorts any number"
    raise InvalidInput("sort", problem, hint=hint)


def is_sortable(store: Reads, where: Filter, sort: Sort, *, most: int = MAX_SORTED_JOBS) -> bool:
    if sort is Sort.CREATED or (sort is Sort.FINISHED and len(where.states) == 1 and where.states <= FINAL):
        return True
    # A filter by queue, time or text scans all jobs of its states: they count as well.
    if store.count(Filter(where.states)) <= most:
        return True
    if not (where.ids or where.tags or where.batches):
        return False
    named = Filter(where.states, tags=where.tags, ids=where.ids, batches=where.batches)
    return not any(store.jobs(named, limit=1, offset=most))
