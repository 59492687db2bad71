"""Alerts: their rows, the jobs that send their notifications, and the status of those.

An evaluation reads without a lock. The row of an alert has a version; the update names the version that was read, so of several
concurrent evaluations one writes, together with the notification job.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from queuectl.alerts.rules import Alert, AlertEvent, Kind, Notification, notification_variables
from queuectl.cron.schedule import format_time
from queuectl.errors import AlertExists, AlertNotFound
from queuectl.jobs.audit import Act
from queuectl.jobs.spec import NewJob
from queuectl.jobs.states import State
from queuectl.store.audit import alert_added, alert_changed
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.enqueue import EnqueueSteps
from queuectl.store.reads import Reads
from queuectl.store.transactions import Transactions
from queuectl.store.types import Filter, Row
from queuectl.store.webhook_outbox import delivery_job
from queuectl.text import WEBHOOK_QUEUE
from queuectl.webhooks.rules import ALERT_EVENT, DELIVER_PROGRAM, ORIGIN_VARIABLE, URL_VARIABLE, Origin

NOTIFICATION_TAG: Final = "alert"
NOTIFICATION_PRIORITY: Final = 100  # before the webhooks of jobs, which are in the same queue
COMMAND_TIMEOUT_MS: Final = 300_000


def notification_job(alert: Alert, notification: Notification) -> NewJob:
    """The job that sends a notification. URLs are often secrets, so they go into the environment, which is not shown."""
    env = notification_variables(alert, notification)
    if alert.url is not None:
        # An operator configured it, so it may name a destination that is refused to others.
        env |= {URL_VARIABLE: alert.url, ORIGIN_VARIABLE: Origin.CONFIG.value}
    argv = None if alert.url is None else (DELIVER_PROGRAM, ALERT_EVENT, alert.name, notification.event.value)
    job = delivery_job(argv=argv, env=env, tag=NOTIFICATION_TAG, command=alert.command, cwd=alert.cwd)
    timeout_ms = COMMAND_TIMEOUT_MS if alert.url is None else job.timeout_ms
    return job._replace(id=notification.id, priority=NOTIFICATION_PRIORITY, timeout_ms=timeout_ms)


def alert_of(row: Row) -> Alert:
    """From the columns of `alert`."""
    found = Alert._make(row)
    untold = tuple(Notification(id_, AlertEvent(word), *rest) for id_, word, *rest in json.loads(row[_UNTOLD]))
    found = found._replace(is_firing=bool(found.is_firing), is_paused=bool(found.is_paused))
    return found._replace(kind=Kind(found.kind), untold=untold)


def alert_values(alert: Alert) -> dict[str, Any]:
    """The parameters of `add_alert` and `update_alert`."""
    untold = json.dumps([list(notification) for notification in alert.untold])
    return {**alert._asdict(), "kind": alert.kind.value, "untold": untold}


_UNTOLD: Final = Alert._fields.index("untold")


MAX_NOTIFICATIONS_READ: Final = 1_000  # from the newest on


class NotificationStatus(StrEnum):
    UNSENT = "untold"  # there was no worker, and sending it directly failed
    QUEUED = "queued"  # its job waits, runs, or waits for a retry
    DELIVERED = "delivered"
    DEAD = "dead"  # its job has failed for good
    CANCELLED = "cancelled"
    SENT = "told"  # sent directly, without a worker and a job; or its job was removed


class LastNotification(NamedTuple):
    status: NotificationStatus
    job: str | None = None


_STATUS_OF: Final = {
    State.COMPLETED: NotificationStatus.DELIVERED,
    State.DEAD: NotificationStatus.DEAD,
    State.CANCELLED: NotificationStatus.CANCELLED,
}


def last_notifications(reads: Reads, alerts: Sequence[Alert]) -> dict[str, LastNotification]:
    """The last notification of each alert that ever sent one, by name."""
    found = {alert.name: LastNotification(NotificationStatus.UNSENT) for alert in alerts if alert.untold}
    # The environment of a job names its alert, and the time of the decision.
    wanted = {
        (alert.name, format_time(alert.told_ms)): alert.told_ms
        for alert in alerts
        if alert.told_ms is not None and not alert.untold
    }
    if not wanted:
        return found
    where = Filter(queues=frozenset({WEBHOOK_QUEUE}), tags=frozenset({NOTIFICATION_TAG}), since_ms=min(wanted.values()))
    for job in reads.jobs(where, limit=MAX_NOTIFICATIONS_READ):
        env = job.env
        name, at = env.get("QUEUECTL_ALERT", ""), env.get("QUEUECTL_ALERT_AT")
        if wanted.pop((name, at), None) is not None:
            found[name] = LastNotification(_STATUS_OF.get(job.state, NotificationStatus.QUEUED), job.id)
        if not wanted:
            break
    return {**found, **{name: LastNotification(NotificationStatus.SENT) for name, _ in wanted}}


class StoredNotification(NamedTuple):
    """A notification whose delivery job is still stored."""

    alert: str
    at: str  # in ISO format
    event: AlertEvent
    text: str
    status: NotificationStatus
    job: str
    error: str | None  # why the last attempt to deliver it failed

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if name != "alert"}


def stored_notifications(reads: Reads, name: str | None = None, *, limit: int) -> list[StoredNotification]:
    """The latest notifications of an alert, or of all alerts, the newest first. Those that were sent without a worker had no job."""
    where = Filter(queues=frozenset({WEBHOOK_QUEUE}), tags=frozenset({NOTIFICATION_TAG}))
    found: list[StoredNotification] = []
    for job in reads.jobs(where, limit=MAX_NOTIFICATIONS_READ):
        env = job.env
        if (alert := env.get("QUEUECTL_ALERT")) is None or name not in (None, alert):
            continue
        at, event = env.get("QUEUECTL_ALERT_AT", ""), AlertEvent(env.get("QUEUECTL_ALERT_STATE", ""))
        status = _STATUS_OF.get(job.state, NotificationStatus.QUEUED)
        text = env.get("QUEUECTL_ALERT_TEXT", "")
        found.append(StoredNotification(alert, at, event, text, status, job.id, job.error))
        if len(found) == limit:
            break
    return found


class Alerts:
    def __init__(self, tx: Transactions, enqueuer: EnqueueSteps) -> None:
        self._tx = tx
        self._enqueuer = enqueuer

    def all(self) -> list[Alert]:
        """All alerts, by name."""
        return [alert_of(row) for row in self._tx.all("alerts")]

    def get(self, name: str) -> Alert:
        """Raises AlertNotFound."""
        row = self._tx.one("alert", {"name": name})
        if row is None:
            raise AlertNotFound(name)
        return alert_of(row)

    def died_since(self, since_ms: int) -> dict[str, int]:
        """For each queue, the dead jobs that died after this time."""
        return dict(self._tx.all("died_since", {"since": since_ms}))

    @retry_conflicts
    def add(self, alert: Alert) -> None:
        """Raises AlertExists if the name is taken."""
        with self._tx.write(notify=True):
            self.insert(alert)
            self._tx.record(alert_added(alert))

    def insert(self, alert: Alert) -> None:
        """Within a transaction. Raises AlertExists."""
        if not self._tx.execute("add_alert", alert_values(alert)):
            raise AlertExists(alert.name)

    @retry_conflicts
    def update(self, alert: Alert, jobs: Sequence[NewJob] = ()) -> bool:
        """Write the state of an alert, and enqueue its notifications, in one transaction. `alert` has the version that was read: if
        it was written or removed since, nothing is written and this is False."""
        with self._tx.write(*(["hold_ageing"] if jobs else []), notify=bool(jobs)) as transitions:
            # First: a concurrent evaluation has locked the row, and then its version differs.
            if not self._tx.execute("update_alert", alert_values(alert)):
                return False
            self._enqueuer.add(jobs, [str(job.id) for job in jobs], transitions)
        return True

    @retry_conflicts
    def change(self, name: str, rule: Callable[[Alert], Alert], *, action: str) -> Alert:
        """Write what `rule` makes of an alert, and the action to the audit log. Raises AlertNotFound. An evaluation may write its
        state at the same time; then `rule` is called again."""
        while True:
            before = self.get(name)
            after = rule(before)
            if after == before:
                return after
            with self._tx.write(notify=True):
                if self._tx.execute("update_alert", alert_values(after)):
                    self._tx.record(alert_changed(action, before, after))
                    return after

    @retry_conflicts
    def remove(self, name: str) -> None:
        """Raises AlertNotFound."""
        with self._tx.write():
            if not self._tx.execute("remove_alert", {"name": name}):
                raise AlertNotFound(name)
            self._tx.record(Act("alert remove", [name]))
