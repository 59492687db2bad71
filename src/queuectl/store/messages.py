"""What became of the last thing that somebody was told for an alert: that it was decided does not say that it arrived."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from queuectl.job.alert import Alert
from queuectl.job.cron.model import moment
from queuectl.job.lifecycle import State
from queuectl.job.names import WEBHOOKS
from queuectl.store.alerting import TAG
from queuectl.store.protocol import Filter, Reads

MOST_LOOKED_AT: Final = 1_000  # jobs that tell, from the newest on


class Fate(StrEnum):
    UNTOLD = "untold"  # no worker was there, and whoever tried has not reached anybody
    QUEUED = "queued"  # its job waits, runs, or waits for another try
    DELIVERED = "delivered"
    DEAD = "dead"  # its job has failed for good
    CANCELLED = "cancelled"
    TOLD = "told"  # by whoever looked where no worker was, so without a job; or its job was removed


class Message(NamedTuple):
    fate: Fate
    job: str | None = None


_FATES: Final = {
    State.COMPLETED: Fate.DELIVERED,
    State.DEAD: Fate.DEAD,
    State.CANCELLED: Fate.CANCELLED,
}


def last_messages(reads: Reads, alerts: Sequence[Alert]) -> dict[str, Message]:
    """By the name of the alert; without those of which nothing was ever told."""
    found = {alert.name: Message(Fate.UNTOLD) for alert in alerts if alert.untold}
    # A job knows for which alert it tells, and when that was decided.
    wanted = {
        (alert.name, moment(alert.told_ms)): alert.told_ms
        for alert in alerts
        if alert.told_ms is not None and not alert.untold
    }
    if not wanted:
        return found
    where = Filter(queues=frozenset({WEBHOOKS}), tags=frozenset({TAG}), since_ms=min(wanted.values()))
    for job in reads.jobs(where, limit=MOST_LOOKED_AT):
        env = job.env
        name, at = env.get("QUEUECTL_ALERT", ""), env.get("QUEUECTL_ALERT_AT")
        if wanted.pop((name, at), None) is not None:
            found[name] = Message(_FATES.get(job.state, Fate.QUEUED), job.id)
        if not wanted:
            break
    return {**found, **{name: Message(Fate.TOLD) for name, _ in wanted}}
