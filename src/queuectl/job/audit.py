"""Who changed what: the record of a change, and the chain that shows whether all of them are still there as they were written.

Each record carries a hash of itself and of the hash before it. Whoever changes one, removes one or puts them in another order leaves
a place where they do not fit; whoever makes the whole chain anew ends with another last hash than the one that somebody noted elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

try:  # without OpenSSL, which takes longer to load than it takes to add a job
    from _sha2 import sha256  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # pragma: no cover - by the version of Python
    try:
        from _sha256 import sha256  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from hashlib import sha256

FORGET: Final = "audit forget"  # what is recorded when the oldest records are removed
NOTHING: Final = "0" * 64  # the hash before the first record
_ESCAPES: Final = {number: f"\\u{number:04x}" for number in (*range(32), 127)} | {ord('"'): '\\"', ord("\\"): "\\\\"}


class Actor(NamedTuple):
    """Who does it. `token`: the name of the key to the HTTP API, if it came that way."""

    uid: int
    user: str | None
    host: str
    program: str
    token: str | None = None

    def __str__(self) -> str:
        who = f"{self.user or self.uid}@{self.host}"
        return f"{who} ({self.token})" if self.token else who


class Act(NamedTuple):
    """One change. `what`: the command that says so; `subjects`: ids, or names; `before` and `after`: what of them it changes."""

    what: str
    subjects: Sequence[str]
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


class Entry(NamedTuple):
    """A record in its place. Times are milliseconds since 1970-01-01 UTC."""

    seq: int
    at: int
    record: str
    hash: str


class Link(NamedTuple):
    """A place in the chain, and the hash of what stands there."""

    seq: int
    hash: str


class Ends(NamedTuple):
    """`base`: the last one that was forgotten; `head`: the newest."""

    base: Link
    head: Link


def ends_of(row: tuple[int, str, int, str] | None) -> Ends:
    """From a row of the stores; None: nothing was ever recorded."""
    base, base_hash, head, head_hash = row or (0, NOTHING, 0, NOTHING)
    return Ends(Link(base, base_hash), Link(head, head_hash))


class Fault(NamedTuple):
    seq: int
    what: str


def link_hash(before: str, seq: int, at: int, record: str) -> str:
    """The stores compute the same where they can."""
    return str(sha256(f"{before}\n{seq}\n{at}\n{record}".encode()).hexdigest())


def record_of(actor: Actor, act: Act) -> str:
    """JSON, always the same for the same."""
    return _text({"who": actor._asdict(), **act._asdict()})


def alike(values: Mapping[str, Any]) -> Any:
    """What all of these have, or what each of them has."""
    found = list(values.values())
    return found[0] if found and all(value == found[0] for value in found) else dict(values)


def faults(entries: Iterable[Entry], ends: Ends) -> Iterator[Fault]:
    """Where the chain does not hold, from the first to the last. `entries`: all, in their order."""
    seq, before = ends.base
    for entry in entries:
        if entry.seq != seq + 1:
            missing = f"{seq + 1}" if entry.seq == seq + 2 else f"{seq + 1} to {entry.seq - 1}"
            yield Fault(entry.seq, f"record {missing} was removed")
        elif link_hash(before, *entry[:3]) != entry.hash:
            yield Fault(entry.seq, f"record {entry.seq} is not the one that was written, or does not follow {seq}")
        seq, before = entry.seq, entry.hash
    if (seq, before) != ends.head:
        gone = seq < ends.head.seq
        yield Fault(seq, f"the newest records, up to {ends.head.seq}, were removed" if gone else "the end was changed")


def _text(value: Any) -> str:
    # Not by the module json: to load that takes longer than all the rest.
    match value:
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case Mapping():
            return "{" + ",".join(f"{_text(str(key))}:{_text(part)}" for key, part in value.items()) + "}"
        case _:
            return _list(value)


def _list(values: Sequence[Any]) -> str:
    # A hundred thousand ids need no escapes, and it is enough to ask once.
    if values and isinstance(values[0], str) and all(isinstance(one, str) and one.isalnum() for one in values):
        return '["' + '","'.join(values) + '"]'
    return "[" + ",".join(map(_text, values)) + "]"
