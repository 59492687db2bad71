"""Evaluate alerts: measure, decide, and enqueue or send the notifications.

Every worker does this periodically. Without a worker, the dashboard and `queuectl alert check` do it and send the notifications
themselves. Of concurrent evaluators one writes the decision, together with the delivery job. Without a worker the decision is
written with the unsent notification, which is removed after its delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl import __version__
from queuectl.alerts.rules import (
    Alert,
    AlertEvent,
    Kind,
    Measurements,
    Notification,
    add_unsent,
    decide,
    measure_alert,
    notification_text,
    notification_variables,
)
from queuectl.clock import Clock
from queuectl.config import Here, here
from queuectl.errors import (
    AlertNotFound,
    CommandFailed,
    CommandRefused,
    QueuectlError,
    StoreFailed,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
)
from queuectl.events import AlertTold, Sink, StoreTrouble
from queuectl.jobs.outcome import failure_text
from queuectl.jobs.states import State
from queuectl.maintenance.liveness import last_seen_ms
from queuectl.policy.evaluator import Request
from queuectl.policy.gate import Gate
from queuectl.policy.rules import Refusal
from queuectl.process.helper_command import HelperFailure, run_helper
from queuectl.settings import Settings
from queuectl.store.alerts import notification_job
from queuectl.store.audit import alert_tested
from queuectl.store.enqueue import new_job_ids
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.store.types import Filter, Sort
from queuectl.webhooks.delivery import deliver_alert
from queuectl.webhooks.rules import redact_url

CHECK_INTERVAL: Final = 2.0  # seconds, as all of these
IDLE_INTERVAL: Final = 5.0  # without alerts
MIN_INTERVAL: Final = 0.5  # while other processes write continuously
MAX_STATUS_AGE_MS: Final = 5_000  # an unchanged status is written again after this time
ERROR_PAUSE: Final = 60.0
MAX_WRITE_ATTEMPTS: Final = 10

Deliver = Callable[[Alert, Notification], object]  # raises a QueuectlError if the delivery failed


class Sent(NamedTuple):
    """A notification that was enqueued or sent. `error`: why it could not be sent; it is retried."""

    alert: Alert
    notification: Notification
    by_job: bool
    error: QueuectlError | None = None


class AlertTask:
    adds_work: Final = True

    def __init__(self, *, store: Store, here: Here, settings: Callable[[], Settings], emit: Sink) -> None:
        self._store = store
        self._here = here
        self._settings = settings
        self._emit = emit
        self._looked = self._again = 0.0
        self._said: str | None = None

    def step(self, now: float) -> float:
        if now < self._again and now < self._looked + MIN_INTERVAL:
            return min(self._again, self._looked + MIN_INTERVAL)
        self._looked = now
        try:
            alerts = self._store.alerts.all()
            self._again = now + (CHECK_INTERVAL if alerts else IDLE_INTERVAL)
            sent = check(self._store, here=self._here, settings=self._settings, alerts=alerts)
        except (StoreFailed, StoreFull, StoreReadOnly, StoreRefused) as exc:
            # Jobs can still run: do not stop the worker.
            if exc.message != self._said:
                self._said = exc.message
                self._emit(StoreTrouble(exc.message))
            self._looked = self._again = now + ERROR_PAUSE
            return self._again
        for one in sent:
            self._emit(
                AlertTold(one.alert.name, one.notification.event, notification_text(one.alert, one.notification))
            )
        return now if sent else self._again


def check(
    store: Store,
    *,
    here: Here,
    settings: Callable[[], Settings],
    alerts: Sequence[Alert] | None = None,
    deliver: Deliver | None = None,
) -> list[Sent]:
    """Evaluate all alerts. `deliver`: sends a notification if no worker is alive; None: the caller is a worker."""
    found = [alert for alert in (store.alerts.all() if alerts is None else alerts) if not alert.is_paused]
    if not found:
        return []
    figures = measure(store, found, here=here, settings=settings)
    has_worker = bool(figures.served)
    if deliver is None and not has_worker:
        return []  # the last worker is stopping: no worker would run a delivery job
    sent: list[Sent] = []
    for alert in found:
        seen = measure_alert(alert, figures)
        assert seen.value is not None
        after, notification = decide(seen, seen.value, now_ms=figures.now_ms, new_id=lambda: new_job_ids(1)[0])
        if notification is not None and seen.kind is Kind.DEAD and notification.event is not AlertEvent.OVER:
            notification = notification._replace(latest=_latest_death(store, seen))
        sent += (
            _queue(store, alert, after, notification)
            if has_worker
            else _direct(store, alert, after, notification, deliver)
        )
    return sent


def measure(reads: Reads, alerts: Sequence[Alert], *, here: Here, settings: Callable[[], Settings]) -> Measurements:
    """Read the values that these alerts need, and always the running workers."""
    now_ms, kinds = reads.now_ms(), {alert.kind for alert in alerts}
    periods = {alert.within_ms for alert in alerts if alert.within_ms is not None}
    tally = reads.tally() if Kind.DEAD in kinds else {}
    workers = [worker for worker in reads.workers(busy=False) if worker.state == "running"]
    lease_ms = settings().lease_ms if workers else 0
    return Measurements(
        now_ms,
        dead={queue: states.get(State.DEAD, 0) for queue, states in tally.items()},
        died={within: reads.alerts.died_since(now_ms - within) for within in periods},
        oldest=reads.oldest_waiting_ms() if Kind.OLDEST in kinds else {},
        served=[
            (worker.queues, seen_ms)
            for worker in workers
            if (seen_ms := last_seen_ms(worker, here=here, now_ms=now_ms, lease_ms=lambda: lease_ms)) is not None
        ],
    )


def _latest_death(reads: Reads, alert: Alert) -> str | None:
    where = Filter(frozenset({State.DEAD}), frozenset(filter(None, [alert.queue])), includes_webhooks=False)
    latest = list(reads.jobs(where, sort=Sort.FINISHED, limit=1))
    return f"{latest[0].id}: {failure_text(latest[0].error, latest[0].last_output)}" if latest else None


def _queue(store: Store, before: Alert, after: Alert, notification: Notification | None) -> list[Sent]:
    """Enqueue delivery jobs for the new notification and for those that are still unsent."""
    notifications: tuple[Notification, ...] = () if notification is None else (notification,)
    if after.has_unsent(_checked_ms(after)):
        notifications = (*after.untold, *notifications)
        after = after._replace(untold=(), tried_ms=None)
    if not _is_worth_writing(before, after, notifications):
        return []
    if not store.alerts.update(after, [notification_job(after, one) for one in notifications]):
        return []  # another process was faster
    return [Sent(after, one, by_job=True) for one in notifications]


def _direct(
    store: Store, before: Alert, after: Alert, notification: Notification | None, deliver: Deliver | None
) -> list[Sent]:
    assert deliver is not None
    if notification is not None:
        after = add_unsent(after, notification)
    is_ours = after.has_unsent(_checked_ms(after))
    if is_ours:
        after = after._replace(tried_ms=_checked_ms(after))
    if not _is_worth_writing(before, after, ()) or not store.alerts.update(after) or not is_ours:
        return []
    sent: list[Sent] = []
    for one in after.untold:
        try:
            deliver(after, one)
        except QueuectlError as error:
            sent.append(Sent(after, one, by_job=False, error=error))
            break  # keep the order
        sent.append(Sent(after, one, by_job=False))
        _remove_unsent(store, after.name, one.id)
    return sent


def _remove_unsent(store: Store, name: str, notification: str) -> None:
    """Remove a delivered notification. Retry if other processes write the alert at the same time."""
    for _ in range(MAX_WRITE_ATTEMPTS):
        try:
            alert = store.alerts.get(name)
        except AlertNotFound:
            return
        rest = tuple(one for one in alert.untold if one.id != notification)
        if rest == alert.untold or store.alerts.update(
            alert._replace(untold=rest, tried_ms=alert.tried_ms if rest else None)
        ):
            return


def _is_worth_writing(before: Alert, after: Alert, notifications: Sequence[Notification]) -> bool:
    """Whether something has changed. An unchanged status is also written now and then, to show that checks run."""
    same = before._replace(value=after.value, seen_ms=after.seen_ms, checked_ms=after.checked_ms)
    age = _checked_ms(after) - (before.checked_ms or 0)
    return bool(notifications) or same != after or not 0 <= age < MAX_STATUS_AGE_MS


def _checked_ms(alert: Alert) -> int:
    assert alert.checked_ms is not None
    return alert.checked_ms


# ── without a worker ────────────────────────────────────────────────────────────────────────────────────────────────


COMMAND_TIMEOUT_MS: Final = 60_000
MAX_OUTPUT_BYTES: Final = 64 * 1024  # only the last line is shown


class AlertDelivery:
    """Sends notifications with the environment of this process, if `gate` allows it. `settings` returns the current ones."""

    def __init__(
        self, store: Store, settings: Callable[[], Settings], environ: Mapping[str, str], *, gate: Gate, clock: Clock
    ) -> None:
        self._store = store
        self._settings = settings
        self._environ = environ
        self._gate = gate
        self._clock = clock

    def check(self) -> list[Sent]:
        """Evaluate all alerts: with a worker by delivery jobs, else from this process."""
        return check(self._store, here=here(self._environ), settings=self._settings, deliver=self.deliver)

    def test(self, name: str) -> str:
        """Send a test notification now. Only the audit log changes, before anything runs.

        Returns the response as text. Raises AlertNotFound, WebhookRefused, WebhookUnanswered, CommandRefused or CommandFailed."""
        alert = self._store.alerts.get(name)
        self._store.audit.add(alert_tested(alert))
        figures = measure(self._store, [alert], here=here(self._environ), settings=self._settings)
        value = measure_alert(alert, figures).value or 0
        return self.deliver(alert, Notification(new_job_ids(1)[0], AlertEvent.TEST, value, figures.now_ms))

    def deliver(self, alert: Alert, notification: Notification) -> str:
        if alert.url is not None:
            facts = notification_variables(alert, notification)
            answer = deliver_alert(self._store, facts, self._settings(), url=alert.url, version=__version__)
            return f"called {redact_url(alert.url)}: {answer.status} {answer.text}".rstrip()
        last = self._run(alert, notification)
        return f"ran {alert.command}" + (f": {last}" if last else "")

    def _run(self, alert: Alert, notification: Notification) -> str:
        """Run the command and return its last line of output. The policy is evaluated for the same job that a worker would run."""
        job = notification_job(alert, notification)
        request = Request(
            job.queue, job.command, job.argv, job.cwd, job.env or {}, COMMAND_TIMEOUT_MS, sets_timeout=False
        )
        command = self._gate.command(request, name="it", max_output=MAX_OUTPUT_BYTES, is_log=True)
        if isinstance(command, Refusal):
            raise CommandRefused(alert.name, *command)
        answer = run_helper(command, self._clock)
        if isinstance(answer, HelperFailure):
            last = _last_line(answer.output)
            raise CommandFailed(alert.name, f"{answer.problem}: {last}" if last else answer.problem)
        return _last_line(answer)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
