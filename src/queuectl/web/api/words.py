"""The parameters that several operations share, and what they mean to the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from queuectl.errors import InvalidInput
from queuectl.job.nearest import nearest
from queuectl.job.shown import shown
from queuectl.queue.filters import parse_filter
from queuectl.store.protocol import Filter, Reads
from queuectl.web.api.operation import Param, without_nul
from queuectl.web.api.schemas import DURATION, TEXT, WORD, optional

SELECTORS: Final = (
    Param("state", "In one of these states; several in one text with commas, too.", many=True),
    Param("queue", "Of one of these queues.", many=True),
    Param("tag", "With all of these tags.", many=True),
    Param("batch", "Of one of these batches.", many=True),
    Param("since", "Enqueued then or later: a time, or a duration for so long ago."),
    Param("match", "With this text in the command."),
)
LIMIT: Final = Param("limit", "How many at most.", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50})
CURSOR: Final = Param("cursor", "Where to go on: `next_cursor` of the page before.")

# The same in a body: {"state": ["dead"], "queue": "mail"}
WHERE_SCHEMA: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": optional(
        **{name: {"oneOf": [WORD, {"type": "array", "items": WORD}]} for name in ("state", "queue", "tag", "batch")},
        since=DURATION,
        match={**TEXT, "minLength": 1},
    ),
}


def to_filter(said: Mapping[str, Any], reads: Reads) -> Filter:
    return parse_filter(
        states=said["state"],
        queues=said["queue"],
        tags=said["tag"],
        batches=said["batch"],
        since=said["since"],
        match=said["match"],
        now_ms=reads.now_ms,
    )


def where_of(said: object, reads: Reads) -> Filter:
    """Of a body's `where`."""
    fields = an_object(said, "where", known=[param.name for param in SELECTORS])
    read: dict[str, Any] = {}
    for param in SELECTORS:
        value = fields.get(param.name)
        read[param.name] = _words(value, param.name) if param.many else value
    return to_filter(read, reads)


def _words(value: object, subject: str) -> tuple[str, ...]:
    """Nothing has an empty name: it is a variable that was not set, and what it was to choose is not nothing."""
    given = texts(value, subject)
    if "" in given:
        raise InvalidInput(subject, "expected a name, got an empty text", hint="leave it away to choose by the rest")
    return given


def an_object(value: object, subject: str, *, known: list[str]) -> dict[str, Any]:
    """`value`, if it is an object with no other fields than these; null is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInput(subject, f"expected an object, got {shown(value)}", hint=f"fields: {', '.join(known)}")
    for name in value:
        if name not in known:
            close = nearest(name, known)
            hint = f"did you mean {close!r}?" if close else f"known: {', '.join(known)}"
            raise InvalidInput(subject, f"unknown field {name!r}", hint=hint)
    return value


def texts(value: object, subject: str) -> tuple[str, ...]:
    """A list of texts; one text alone is a list of one, null is none."""
    if value is None:
        return ()
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InvalidInput(subject, f"expected a text or a list of them, got {shown(value)}", hint='like ["a", "b"]')
    return tuple(without_nul(one, subject) for one in given)


def a_flag(said: Mapping[str, Any], name: str) -> bool:
    value = said.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise InvalidInput(name, f"expected true or false, got {shown(value)}", hint=f'like {{"{name}": true}}')
