"""The rules of alerts: when one fires, when it resolves, and which notification follows.

An alert fires when its value has been at or above the threshold for `for_ms`. It resolves when the value has been below 80 % of the
threshold for the same time. Between the two it keeps its state (hysteresis), so a fluctuating value sends no notifications.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, assert_never

from queuectl.cron.schedule import format_time
from queuectl.text import WEBHOOK_QUEUE, plural
from queuectl.units import MINUTE_MS, format_duration, to_seconds
from queuectl.webhooks.rules import redact_url

MAX_UNSENT: Final = 20  # per alert: after a long outage the oldest notifications are of no use
RETRY_AFTER_MS: Final = MINUTE_MS  # a process that has begun a delivery has this long before another process repeats it


class Kind(StrEnum):
    """What an alert measures. The threshold is a number of jobs, or milliseconds."""

    DEAD = "dead"  # number of jobs that are dead, or that died within a period
    OLDEST = "oldest"  # waiting time of the oldest due job
    NO_WORKER = "no-worker"  # time without a worker that claims jobs


class AlertEvent(StrEnum):
    """What a notification reports."""

    FIRING = "firing"
    STILL_FIRING = "still-firing"  # a reminder, for alerts with `repeat`
    OVER = "over"
    TEST = "test"


class Notification(NamedTuple):
    """One message to send. `id` is the same for every delivery attempt."""

    id: str
    event: AlertEvent
    value: int
    at_ms: int
    latest: str | None = None  # the job that died last, and why


class Alert(NamedTuple):
    name: str
    kind: Kind
    threshold: int
    within_ms: int | None  # for dead jobs: count only those that died within this period
    queue: str | None  # None: all queues except that of the webhooks
    for_ms: int
    repeat_ms: int | None
    url: str | None  # the webhook, or
    command: str | None  # the command
    cwd: str
    created_ms: int
    # The state at the last check.
    is_firing: bool = False
    changed_ms: int | None = None  # when it fired or resolved
    since_ms: int | None = None  # since when the value has been beyond the threshold for a change of state
    told_ms: int | None = None  # when the last notification was decided, delivered or not
    seen_ms: int | None = None  # when a worker was last seen
    checked_ms: int | None = None
    value: int | None = None
    untold: tuple[Notification, ...] = ()  # notifications without a delivery job, because no worker was alive
    tried_ms: int | None = None  # when a process last began to deliver them without a worker
    turn: int = 0  # version of the row: of concurrent checks, one writes
    is_paused: bool = False  # not evaluated

    @property
    def state(self) -> str:
        return "paused" if self.is_paused else "firing" if self.is_firing else "ok"

    def has_unsent(self, now_ms: int) -> bool:
        """Whether there are unsent notifications that no other process is delivering."""
        return bool(self.untold) and (self.tried_ms is None or not 0 <= now_ms - self.tried_ms < RETRY_AFTER_MS)

    def to_dict(self, message: str | None = None) -> dict[str, Any]:
        """`message`: the delivery status of the last notification, see store/alerts.py."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "threshold": self.plain(self.threshold),
            "within": to_seconds(self.within_ms),
            "queue": self.queue,
            "for": to_seconds(self.for_ms),
            "repeat": to_seconds(self.repeat_ms),
            "webhook": None if self.url is None else redact_url(self.url),
            "command": self.command,
            "state": self.state,
            "value": self.plain(self.value),
            "changed_at": format_time(self.changed_ms),
            "checked_at": format_time(self.checked_ms),
            "told_at": format_time(self.told_ms),
            "message": message,
            "untold": len(self.untold),
            "created_at": format_time(self.created_ms),
        }

    def plain(self, value: int | None) -> float | None:
        """The value for JSON: a number of jobs, or seconds."""
        return value if self.kind is Kind.DEAD else to_seconds(value)

    @property
    def condition(self) -> str:
        """The condition, as text."""
        where = "" if self.queue is None else f" in {self.queue}"
        match self.kind:
            case Kind.DEAD:
                period = "" if self.within_ms is None else f" within {format_duration(self.within_ms)}"
                return f"{plural(self.threshold, 'job')} dead{period}{where}"
            case Kind.OLDEST:
                return f"oldest job waits {format_duration(self.threshold)}{where}"
            case Kind.NO_WORKER:
                return f"no worker takes jobs for {format_duration(self.threshold)}{where}"
            case unreachable:
                assert_never(unreachable)

    def describe(self, value: int) -> str:
        """The current situation, as text."""
        where = "" if self.queue is None else f" of {self.queue}"
        whole = format_duration(value - value % 1000)
        match self.kind:
            case Kind.DEAD:
                verb = "are dead" if self.within_ms is None else f"died within {format_duration(self.within_ms)}"
                verb = verb.replace("are", "is") if value == 1 else verb
                return f"{plural(value, 'job')}{where} {verb}"
            case Kind.OLDEST:
                return f"the oldest job{where} has waited for {whole}" if value else f"no job{where} waits"
            case Kind.NO_WORKER:
                # A worker that is stopping claims no more jobs.
                return f"no worker takes jobs{where}, for {whole} now" if value else f"a worker takes jobs{where}"
            case unreachable:
                assert_never(unreachable)


def pause(alert: Alert) -> Alert:
    """A paused alert is not evaluated and does not fire; unsent notifications are dropped."""
    return _without_state(alert)._replace(is_paused=True)


def resume(alert: Alert, now_ms: int) -> Alert:
    """As if it was added now: the time of the pause does not count."""
    return alert._replace(is_paused=False, seen_ms=now_ms) if alert.is_paused else alert


def redefine(alert: Alert, new: Alert) -> Alert:
    """The alert with the definition of `new`. With another condition its evaluation starts again."""
    names = ("kind", "threshold", "within_ms", "queue", "for_ms", "repeat_ms", "url", "command", "cwd")
    changed = alert._replace(**{name: getattr(new, name) for name in names})
    if changed.condition == alert.condition:
        return changed
    return _without_state(changed)._replace(seen_ms=new.seen_ms, checked_ms=None, value=None)


def _without_state(alert: Alert) -> Alert:
    return alert._replace(is_firing=False, since_ms=None, untold=(), tried_ms=None)


# Of a running worker: its queues (None: all), and when it was last known to be alive.
Served = tuple[tuple[str, ...] | None, int]


class Measurements(NamedTuple):
    """The values that alerts compare with their thresholds, by queue."""

    now_ms: int
    dead: Mapping[str, int]
    died: Mapping[int, Mapping[str, int]]  # by period
    oldest: Mapping[str, int]  # milliseconds
    served: Sequence[Served]


class Decision(NamedTuple):
    alert: Alert
    notification: Notification | None


def measure_alert(alert: Alert, figures: Measurements) -> Alert:
    """Return the alert with its current value."""
    now_ms = figures.now_ms
    match alert.kind:
        case Kind.DEAD:
            counts = figures.dead if alert.within_ms is None else figures.died[alert.within_ms]
            return alert._replace(value=sum(_values(alert, counts)), checked_ms=now_ms)
        case Kind.OLDEST:
            return alert._replace(value=max(_values(alert, figures.oldest), default=0), checked_ms=now_ms)
        case Kind.NO_WORKER:
            serving = [
                at for queues, at in figures.served if queues is None or alert.queue is None or alert.queue in queues
            ]
            # min: a clock that was set back must not lengthen the time. A dead worker on another host counts as running until the end
            # of its lease; after that, the time counts from its last heartbeat.
            seen = min(max([alert.seen_ms or alert.created_ms, *serving]), now_ms)
            return alert._replace(value=0 if serving else now_ms - seen, seen_ms=seen, checked_ms=now_ms)
        case unreachable:
            assert_never(unreachable)


def decide(alert: Alert, value: int, *, now_ms: int, new_id: Callable[[], str]) -> Decision:
    """Decide the next state of an alert with this value, and the notification to send."""
    is_turning = value * 5 < alert.threshold * 4 if alert.is_firing else value >= alert.threshold
    # min: after a clock was set back, the period starts again.
    since = min(alert.since_ms or now_ms, now_ms) if is_turning else None
    if since is not None and now_ms - since >= alert.for_ms:
        event = AlertEvent.OVER if alert.is_firing else AlertEvent.FIRING
        turned = alert._replace(is_firing=not alert.is_firing, changed_ms=now_ms, since_ms=None, told_ms=now_ms)
        return Decision(turned, Notification(new_id(), event, value, now_ms))
    alert = alert._replace(since_ms=since)
    if is_repeat_due(alert, now_ms):
        return Decision(alert._replace(told_ms=now_ms), Notification(new_id(), AlertEvent.STILL_FIRING, value, now_ms))
    return Decision(alert, None)


def is_repeat_due(alert: Alert, now_ms: int) -> bool:
    if not alert.is_firing or alert.repeat_ms is None or alert.untold:
        return False
    return not 0 <= now_ms - (alert.told_ms or 0) < alert.repeat_ms


def add_unsent(alert: Alert, notification: Notification) -> Alert:
    """Record a notification that cannot be sent by a job, because no worker is alive."""
    return alert._replace(untold=(*alert.untold, notification)[-MAX_UNSENT:])


def notification_text(alert: Alert, notification: Notification) -> str:
    """The situation that it reports."""
    latest = f"; the latest is {notification.latest}" if notification.latest else ""
    return alert.describe(notification.value) + latest


def notification_variables(alert: Alert, notification: Notification) -> dict[str, str]:
    """The environment variables of an alert command; a webhook gets the same values as JSON."""
    return {
        "QUEUECTL_ALERT": alert.name,
        "QUEUECTL_ALERT_ID": notification.id,
        "QUEUECTL_ALERT_STATE": notification.event.value,
        "QUEUECTL_ALERT_KIND": alert.kind.value,
        "QUEUECTL_ALERT_VALUE": str(alert.plain(notification.value)),
        "QUEUECTL_ALERT_THRESHOLD": str(alert.plain(alert.threshold)),
        "QUEUECTL_ALERT_QUEUE": alert.queue or "",
        "QUEUECTL_ALERT_AT": str(format_time(notification.at_ms)),
        "QUEUECTL_ALERT_TEXT": notification_text(alert, notification),
    }


def _values(alert: Alert, figures: Mapping[str, int]) -> list[int]:
    """Without the queue of the webhooks: a failed notification must not trigger further notifications."""
    if alert.queue is not None:
        return [figures.get(alert.queue, 0)]
    return [figure for queue, figure in figures.items() if queue != WEBHOOK_QUEUE]
