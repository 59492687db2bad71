"""Alerts in a SQLite file. See store/alerting.py."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.errors import AlertExists, AlertNotFound
from queuectl.job.alert import Alert
from queuectl.job.audit import Act
from queuectl.job.newjob import NewJob
from queuectl.store.alerting import alert_of, alert_values
from queuectl.store.auditing import alert_added
from queuectl.store.sqlite.base import SQL
from queuectl.store.sqlite.inbox import SqliteInbox


class SqliteAlerts(SqliteInbox):
    def alerts(self) -> list[Alert]:
        return [alert_of(row) for row in self._db.all(SQL["alerts"])]

    def alert(self, name: str) -> Alert:
        row = self._db.one(SQL["alert"], {"name": name})
        if row is None:
            raise AlertNotFound(name)
        return alert_of(row)

    def died_since(self, since_ms: int) -> dict[str, int]:
        return dict(self._db.all(SQL["died_since"], {"since": since_ms}))

    def add_alert(self, alert: Alert) -> None:
        with self._db.transaction():
            if not self._db.execute(SQL["add_alert"], alert_values(alert)).rowcount:
                raise AlertExists(alert.name)
            self._record(alert_added(alert))
        self._ring()

    def turn_alert(self, alert: Alert, jobs: Sequence[NewJob] = ()) -> bool:
        with self._moving() as moves:
            if not self._db.execute(SQL["turn_alert"], alert_values(alert)).rowcount:
                return False
            self._add(jobs, [str(job.id) for job in jobs], moves)
        if jobs:
            self._ring()
        return True

    def remove_alert(self, name: str) -> None:
        with self._db.transaction():
            if not self._db.execute(SQL["remove_alert"], {"name": name}).rowcount:
                raise AlertNotFound(name)
            self._record(Act("alert remove", [name]))
