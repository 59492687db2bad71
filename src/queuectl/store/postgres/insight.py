"""What the store knows about itself and about the line: see store/insight.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from queuectl import errors
from queuectl.store.insight import ERROR_SHOWN, MOST_DEATHS, Caution, Deaths, Health, Link, Place, bounds, count_late
from queuectl.store.postgres.base import PostgresBase
from queuectl.store.postgres.connection import LONG_SECONDS, SNAPSHOT, SQL, Question
from queuectl.store.postgres.schema import LATEST
from queuectl.store.postgres.session import Row
from queuectl.store.postgres.trouble import GRANTS, read_only

_ALL: Final = ("select", "insert", "update", "delete")
_NO_UPDATE: Final = ("select", "insert", "delete")
_NO_DELETE: Final = ("select", "insert", "update")
# What a role needs to work, of every table and of the sequence. docs/how-to/use-postgresql.md says how to grant it.
RIGHTS: Final[Mapping[str, tuple[str, ...]]] = {
    "alerts": _ALL, "audit": _NO_UPDATE, "audit_ends": _NO_DELETE, "batches": _ALL, "buckets": _NO_DELETE, "calls": _ALL,
    "config": _ALL, "counters": _NO_DELETE, "done": _NO_UPDATE, "edges": _ALL, "job_tags": _NO_UPDATE, "jobs": _ALL,
    "jobs_seq_seq": ("usage", "select"), "locks": ("select", "update"), "meta": ("select",), "moves": _ALL, "output": _ALL, "points": _ALL, "queues": _ALL,
    "requests": _ALL, "runs": _NO_UPDATE, "sampling": _NO_DELETE, "schedules": _ALL, "starts": _ALL, "ticks": _ALL, "undecided": _ALL,
    "workers": _ALL,
}  # fmt: skip

_SYNCHRONOUS_COMMIT_OFF: Final = (
    "a crash of the server can lose jobs that were enqueued in the last second",
    "alter database … set synchronous_commit = on",
)
_FSYNC_OFF: Final = ("a loss of power can lose or damage the whole database", "set fsync = on in postgresql.conf")


class PostgresInsight(PostgresBase):
    def ahead(self, job_id: str, *, queues: tuple[str, ...] | None, most: int) -> int:
        with self._db.transaction(begin=SNAPSHOT):
            place, _ = self._place(job_id)
            values = {"now": self._clock.now_ms(), "limit": most}
            late = [Place(*row) for row in self._db.all(SQL["late"], values)]
            known = {one.queue for one in late} if queues is None else queues
            limits = bounds(place, known, in_one_order=queues is None)
            if queues is None:
                questions = [Question(SQL["ahead_of_all"], {**place._asdict(), "limit": most})]
            else:
                questions = [Question(SQL["ahead"], {**limit._asdict(), "limit": most}) for limit in limits]
            found = sum(int(rows[0][0]) for rows in self._db.ask(*questions))
        return min(most, found + count_late(late, limits))

    def parents(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        (found,) = self._db.ask(Question(SQL["parents"], {"ids": list(ids), "limit": limit}))
        return [Link.of(row) for row in found]

    def children(self, ids: Sequence[str], *, limit: int) -> list[Link]:
        (found,) = self._db.ask(Question(SQL["children"], {"ids": list(ids), "limit": limit}))
        return [Link.of(row) for row in found]

    def dead_by_error(self, *, limit: int, most: int = MOST_DEATHS) -> list[Deaths]:
        question = Question(SQL["dead_by_error"], {"limit": limit, "most": most, "shown": ERROR_SHOWN})
        (found,) = self._db.ask(question, plan_freely=True)
        return [Deaths(*row) for row in found]

    def is_called_off(self, job_id: str) -> bool:
        with self._db.transaction(begin=SNAPSHOT):
            return self._place(job_id)[1]

    def examine(self) -> Health:
        server, tables = self._db.ask(Question(SQL["server"]), asking_rights())
        version, is_read_only, schema, synchronous_commit, fsync = server[0]
        cautions = [
            Caution("not-durable", f"the server has {name} = off: {risk}", hint)
            for name, value, risk, hint in (
                ("synchronous_commit", synchronous_commit, *_SYNCHRONOUS_COMMIT_OFF),
                ("fsync", fsync, *_FSYNC_OFF),
            )
            if value == "off"
        ]
        problems = [f"the table queuectl.{name} is missing" for name, is_there, _ in tables if not is_there]
        lacking = _lacking(tables)
        hindrances: list[errors.QueuectlError] = [read_only(self._db.shown)] if is_read_only else []
        if lacking:
            hindrances.append(errors.StoreRefused(self._db.shown, _lack(lacking), hint=GRANTS))
        if not problems and not any("select" in rights for rights in lacking.values()):
            with self._db.transaction(begin=SNAPSHOT, seconds=LONG_SECONDS, plan_freely=True):
                strays = self._db.all(SQL["strays"])
            problems += [
                f"{count:,} rows of {table} belong to jobs that are not there" for table, count in strays if count
            ]
        return Health(
            f"PostgreSQL {version.split()[0]}", schema, LATEST, tuple(problems), tuple(hindrances), tuple(cautions)
        )

    def _place(self, job_id: str) -> tuple[Place, bool]:
        """Within a transaction."""
        row = self._db.one(SQL["place"], {"id": job_id})
        if row is None:
            raise errors.JobNotFound(job_id)
        return Place(*row[:3]), bool(row[3])


def asking_rights() -> Question:
    return Question(SQL["tables"], {"names": list(RIGHTS), "rights": [" ".join(rights) for rights in RIGHTS.values()]})


def refuse_lack(tables: Iterable[Row], shown: str) -> None:
    """Raises StoreRefused, which names all that a role lacks, by the answer to `asking_rights`."""
    if lacking := _lacking(tables):
        raise errors.StoreRefused(shown, _lack(lacking), hint=GRANTS)


def _lacking(tables: Iterable[Row]) -> dict[str, Sequence[str]]:
    return {name: rights for name, _, rights in tables if rights}


def _lack(lacking: Mapping[str, Sequence[str]]) -> str:
    """As a grant would name it."""
    tables = {right: [name for name in lacking if right in lacking[name]] for right in (*_ALL, "usage")}
    return "this role lacks " + "; ".join(f"{right} on {', '.join(found)}" for right, found in tables.items() if found)
