"""The audit log: actors, actions, and how an entry is serialized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

FORGET: Final = "audit forget"  # recorded when retention removes the oldest entries
_ESCAPES: Final = {number: f"\\u{number:04x}" for number in (*range(32), 127)} | {ord('"'): '\\"', ord("\\"): "\\\\"}


class Actor(NamedTuple):
    """The user that makes a change. `token`: the name of the API token, if the change came over HTTP."""

    uid: int
    user: str | None
    host: str
    program: str
    token: str | None = None

    def __str__(self) -> str:
        name = f"{self.user or self.uid}@{self.host}"
        return f"{name} ({self.token})" if self.token else name


class Act(NamedTuple):
    """One change. `action`: the command that makes it; `targets`: IDs or names; `before` and `after`: the changed values."""

    action: str
    targets: Sequence[str]
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None


class Entry(NamedTuple):
    """A row of the audit log. `at` is in milliseconds since 1970-01-01 UTC; all but the action are JSON."""

    seq: int
    at: int
    actor: str
    action: str
    targets: str
    before: str | None
    after: str | None


def entry_row(actor: Actor, act: Act, *, at_ms: int) -> dict[str, Any]:
    """The parameters of `add_audit`."""
    return {
        "at": at_ms,
        "actor": _json(actor._asdict()),
        "action": act.action,
        "targets": _list(act.targets),
        "before": None if act.before is None else _json(act.before),
        "after": None if act.after is None else _json(act.after),
    }


def alike(values: Mapping[str, Any]) -> Any:
    """The value that all of these have in common, or all of them by key."""
    found = list(values.values())
    return found[0] if found and all(value == found[0] for value in found) else dict(values)


def _json(value: Any) -> str:
    # Loading the module json takes longer than everything else that `enqueue` does here.
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
            return "{" + ",".join(f"{_json(str(key))}:{_json(part)}" for key, part in value.items()) + "}"
        case _:
            return _list(value)


def _list(values: Sequence[Any]) -> str:
    # One check for all: a hundred thousand job IDs need no escapes.
    if values and isinstance(values[0], str) and all(isinstance(one, str) and one.isalnum() for one in values):
        return '["' + '","'.join(values) + '"]'
    return "[" + ",".join(map(_json, values)) + "]"
