"""The audit in a SQLite file. See store/auditing.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from queuectl.job.audit import Act, Actor, Ends, Entry, Link, ends_of
from queuectl.store.auditing import forgotten_until
from queuectl.store.sqlite.base import SQL, SqliteBase

PAGE: Final = 500
EVER: Final = 2**63 - 1


class SqliteAudit(SqliteBase):
    def audit_ends(self) -> Ends:
        return ends_of(self._db.one(SQL["audit_ends"]))

    def audit(
        self, *, since_ms: int = 0, has: str | None = None, newest: bool = False, behind: int | None = None
    ) -> Iterator[Entry]:
        if behind is None:
            behind = EVER if newest else 0
        while True:
            values = {"behind": behind, "since": since_ms, "has": has, "limit": PAGE}
            page = self._db.all(SQL["audit_newest" if newest else "audit"], values)
            yield from map(Entry._make, page)
            if len(page) < PAGE:
                return
            behind = page[-1][0]

    def note(self, act: Act) -> None:
        with self._db.transaction():
            self._record(act)

    def forget_audit(self, *, before_ms: int, rows: int, by: Actor) -> int:
        with self._db.transaction():
            found = self._db.one(SQL["audit_until"], {"before": before_ms, "rows": rows})
            if found is None:
                return 0
            base = Link._make(found)
            self._db.execute(SQL["move_audit_base"], base._asdict())
            forgotten = self._db.execute(SQL["forget_audit"]).rowcount
            self._record(forgotten_until(base), by)
            return forgotten
