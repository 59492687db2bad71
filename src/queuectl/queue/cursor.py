"""Where the next page of a list begins, as a text that says nothing to people: base64url of JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any, Final, assert_never

from queuectl.errors import InvalidInput
from queuectl.job.lifecycle import State
from queuectl.job.model import Job, to_ms
from queuectl.job.names import is_valid_queue
from queuectl.store.protocol import After, Sort

LARGEST: Final = 2**63 - 1  # no database takes a larger number
LONGEST: Final = 500  # characters, far beyond any of ours
_MAY_BE_NULL: Final = {Sort.FINISHED, Sort.DURATION}


def place_of(job: Job, sort: Sort) -> After:
    """The place of a job in this order."""
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


def write_cursor(after: After, sort: Sort, *, descending: bool) -> str:
    return pack([sort.value, descending, after.value, after.seq])


def read_cursor(text: str, sort: Sort, *, descending: bool) -> After:
    """Raises InvalidInput unless it is one that `write_cursor` made for the same order."""
    try:
        of, is_descending, after = _parse(text)
    except (ValueError, TypeError, RecursionError) as exc:
        raise not_ours() from exc
    if (of, is_descending) != (sort, descending):
        raise InvalidInput("cursor", "it belongs to a list in another order", hint="begin anew without a cursor")
    return after


def _parse(text: str) -> tuple[Sort, bool, After]:
    name, way, value, seq = unpack(text)
    sort, after = Sort(name), After(value, seq)
    # What we would write otherwise, we have not written.
    if not _is_possible(after, sort) or write_cursor(after, sort, descending=bool(way)) != text:
        raise ValueError
    return sort, bool(way), after


def pack(fields: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields, separators=(",", ":")).encode()).decode().rstrip("=")


def unpack(text: str) -> list[Any]:
    """Raises ValueError, TypeError or RecursionError for what `pack` has not made."""
    if len(text) > LONGEST:
        raise ValueError
    return list(json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)))


def not_ours() -> InvalidInput:
    return InvalidInput("cursor", "it is not one of ours", hint="take next_cursor of the page before as it is")


def _is_possible(after: After, sort: Sort) -> bool:
    """Whether a job could stand there: what is no such value, no database may be asked for."""
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
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST
