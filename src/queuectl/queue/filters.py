"""From the words of people to what the store is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.lifecycle import State
from queuectl.job.nearest import nearest
from queuectl.job.shown import shown
from queuectl.store.protocol import Filter, Sort

# Newest, highest, latest and longest first; but names from A to Z, and soonest first.
_SMALLEST_FIRST: Final = frozenset({Sort.STATE, Sort.QUEUE, Sort.RUN_AT})


def parse_filter(*, states: Iterable[str] = (), queues: Iterable[str] = (), tags: Iterable[str] = ()) -> Filter:
    """`states` may hold several in one text, `dead,failed`, in any case. Either state, either queue, all of the tags."""
    wanted = [name.strip() for text in states for name in text.split(",")]
    return Filter(frozenset(map(parse_state, wanted)), frozenset(queues), frozenset(tags))


def parse_state(name: str) -> State:
    try:
        return State(name.lower())
    except ValueError as exc:
        known = [state.value for state in State]
        raise UnknownName("state", name, nearest=nearest(name.lower(), known), known=known) from exc


def parse_sort(text: str) -> tuple[Sort, bool]:
    """The key and whether it is descending: what one wants on top comes first, and a `-` before it reverses that."""
    name = text.removeprefix("-").strip().lower().replace("-", "_")
    try:
        sort = Sort(name)
    except ValueError as exc:
        known = [sort.value for sort in Sort]
        raise UnknownName("sort key", text, nearest=nearest(name, known), known=known) from exc
    return sort, (sort not in _SMALLEST_FIRST) ^ text.startswith("-")


# No store has more, and no database takes a larger number.
MOST: Final = 2**63 - 1


def parse_count(value: object, *, subject: str) -> int | None:
    """None for "not given". From Python it may be anything."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidInput(subject, f"expected a whole number, got {shown(value)}", hint="0 or more")
    if value < 0:
        raise InvalidInput(subject, f"cannot be negative: {value}", hint="0 or more")
    return min(value, MOST)
