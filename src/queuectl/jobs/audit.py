"""The audit log: actors, actions, entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

FORGET: Final = "audit forget"  # recorded when retention removes the oldest entries


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


def alike(values: Mapping[str, Any]) -> Any:
    """The value that all of these have in common, or all of them by key."""
    found = list(values.values())
    return found[0] if found and all(value == found[0] for value in found) else dict(values)
