"""From the words of people to what the store is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.duration import parse_duration_ms
from queuectl.job.lifecycle import State
from queuectl.job.moment import parse_moment_ms
from queuectl.job.nearest import nearest
from queuectl.job.shown import shown
from queuectl.store.protocol import Filter, Sort

# Newest, highest, latest and longest first; but names from A to Z, and soonest first.
_SMALLEST_FIRST: Final = frozenset({Sort.STATE, Sort.QUEUE, Sort.RUN_AT})


def parse_filter(
    *,
    now_ms: Callable[[], int],
    states: Iterable[str] = (),
    queues: Iterable[str] = (),
    tags: Iterable[str] = (),
    batches: Iterable[str] = (),
    since: object = None,
    match: object = None,
    dashes: str = "",
) -> Filter:
    """`states` may hold several in one text, `dead,failed`, in any case. Either state, either queue,
    either batch, all of the tags. Jobs that tell of the ends of others only by their queue, or a tag.

    `now_ms`, the time of the store, is asked for only if `since` needs it, and last: all else has been checked then. `dashes`
    stand before the names in what is said about bad ones.
    """
    wanted = [name for text in states for name in text.split(",")]
    queues, tags = frozenset(queues), frozenset(tags)
    return Filter(
        frozenset(map(parse_state, wanted)),
        queues,
        tags,
        batches=frozenset(batches),
        match=None if match is None else _parse_match(match, subject=f"{dashes}match"),
        since_ms=None if since is None else parse_since(since, subject=f"{dashes}since", now_ms=now_ms),
        # Nobody has enqueued them: they are meant only if they are named.
        calls=bool(queues or tags),
    )


def able_only(where: Filter, able: frozenset[State], *, done: str, subject: str) -> Filter:
    """Of these, only those that it can be done to: in an `able` state. To name another one is a mistake."""
    for state in sorted(where.states - able):
        hint = f"one of: {', '.join(state for state in State if state in able)}"
        raise InvalidInput(subject, f"{state} jobs cannot be {done}", hint=hint)
    return where if where.states else where._replace(states=able)


def _parse_match(text: object, *, subject: str) -> str:
    # Every job has nothing in its command: an empty text is a variable that was not set rather than a wish for all.
    if not isinstance(text, str) or not text:
        raise InvalidInput(subject, f"expected some text, got {shown(text)}", hint="a part of the command, as it is")
    if "\0" in text or text.encode(errors="replace").decode() != text:
        raise InvalidInput(subject, f"no command can hold {shown(text)}", hint="text in UTF-8, without NUL")
    return text


def parse_since(value: object, *, subject: str, now_ms: Callable[[], int]) -> int:
    if isinstance(value, datetime) or (isinstance(value, str) and "-" in value.strip()[1:]):
        return parse_moment_ms(value, subject=subject, local=None)
    try:
        ago = parse_duration_ms(value, subject=subject)
    except InvalidInput as exc:
        hint = "how long ago, like 90s, 1h30m or 2d, or a time like 2026-11-15 20:30"
        raise InvalidInput(subject, f"neither a time nor a duration: {shown(value)}", hint=hint) from exc
    return max(0, now_ms() - ago)


def parse_state(name: str) -> State:
    name = name.strip()
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
