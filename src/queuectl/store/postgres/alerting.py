"""Alerts in PostgreSQL. See store/alerting.py."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.errors import AlertExists, AlertNotFound
from queuectl.job.alert import Alert
from queuectl.job.audit import Act
from queuectl.job.newjob import NewJob
from queuectl.store.alerting import alert_of, alert_values
from queuectl.store.auditing import alert_added
from queuectl.store.postgres.connection import SQL, Question
from queuectl.store.postgres.inbox import PostgresInbox
from queuectl.store.postgres.trouble import run_again


class PostgresAlerts(PostgresInbox):
    def alerts(self) -> list[Alert]:
        (found,) = self._db.ask(Question(SQL["alerts"]))
        return [alert_of(row) for row in found]

    def alert(self, name: str) -> Alert:
        (found,) = self._db.ask(Question(SQL["alert"], {"name": name}))
        if not found:
            raise AlertNotFound(name)
        return alert_of(found[0])

    def died_since(self, since_ms: int) -> dict[str, int]:
        (found,) = self._db.ask(Question(SQL["died_since"], {"since": since_ms}))
        return dict(found)

    @run_again
    def add_alert(self, alert: Alert) -> None:
        with self._db.transaction(after=self._ring()):
            if not self._db.execute(SQL["add_alert"], alert_values(alert)):
                raise AlertExists(alert.name)
            self._record(alert_added(alert))

    @run_again
    def turn_alert(self, alert: Alert, jobs: Sequence[NewJob] = ()) -> bool:
        if not jobs:
            (turned,) = self._db.transact([Question(SQL["turn_alert"], alert_values(alert))])
            return turned.touched == 1
        with self._moving(Question(SQL["hold_ageing"]), ring=True) as moves:
            # First: whoever has been faster has locked the row, and then it is another one.
            if not self._db.execute(SQL["turn_alert"], alert_values(alert)):
                return False
            self._add(jobs, [str(job.id) for job in jobs], moves)
        return True

    @run_again
    def remove_alert(self, name: str) -> None:
        with self._db.transaction():
            if not self._db.execute(SQL["remove_alert"], {"name": name}):
                raise AlertNotFound(name)
            self._record(Act("alert remove", [name]))
