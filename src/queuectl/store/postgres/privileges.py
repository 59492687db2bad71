"""The privileges that a role needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from queuectl import errors
from queuectl.store.postgres.connection import SQL
from queuectl.store.postgres.errors import GRANTS
from queuectl.store.transactions import Query
from queuectl.store.types import Row

_ALL: Final = ("select", "insert", "update", "delete")
_NO_UPDATE: Final = ("select", "insert", "delete")
_NO_DELETE: Final = ("select", "insert", "update")
# The privileges that a role needs. docs/guides/postgresql.md has the grants.
RIGHTS: Final[Mapping[str, tuple[str, ...]]] = {
    "alerts": _ALL, "audit": _NO_UPDATE, "batches": _ALL, "buckets": _NO_DELETE, "webhook_outbox": _ALL,
    "config": _ALL, "counters": _NO_DELETE, "done": _NO_UPDATE, "edges": _ALL, "job_tags": _NO_UPDATE, "jobs": _ALL,
    "jobs_seq_seq": ("usage", "select"), "locks": ("select", "update"), "meta": ("select",), "moves": _ALL, "output": _ALL, "points": _ALL, "queues": _ALL,
    "requests": _ALL, "runs": _NO_UPDATE, "sampling": _NO_DELETE, "schedules": _ALL, "starts": _ALL, "schedule_runs": _ALL, "undecided": _ALL,
    "workers": _ALL,
}  # fmt: skip


def privileges_query() -> Query:
    return Query(SQL["tables"], {"names": list(RIGHTS), "rights": [" ".join(rights) for rights in RIGHTS.values()]})


def check_privileges(tables: Iterable[Row], shown: str) -> None:
    """Raise StoreRefused, which names all missing privileges. `tables`: the rows of `privileges_query`."""
    if missing := missing_privileges(tables):
        raise errors.StoreRefused(shown, describe_missing(missing), hint=GRANTS)


def missing_privileges(tables: Iterable[Row]) -> dict[str, Sequence[str]]:
    return {name: rights for name, _, rights in tables if rights}


def describe_missing(missing: Mapping[str, Sequence[str]]) -> str:
    """In the order of a grant."""
    tables = {right: [name for name in missing if right in missing[name]] for right in (*_ALL, "usage")}
    return "this role lacks " + "; ".join(f"{right} on {', '.join(found)}" for right, found in tables.items() if found)
