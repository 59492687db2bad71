"""Evaluate alerts on a real database with a fake clock."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from queuectl.alerts.evaluator import (
    CHECK_INTERVAL,
    ERROR_PAUSE,
    IDLE_INTERVAL,
    MAX_STATUS_AGE_MS,
    MIN_INTERVAL,
    AlertTask,
    Sent,
    check,
)
from queuectl.alerts.operations import AlertRequest, parse_alert
from queuectl.alerts.rules import RETRY_AFTER_MS, Alert, Kind, Notification
from queuectl.config import Here, load_settings
from queuectl.errors import StoreRefused, WebhookUnanswered
from queuectl.events import AlertTold, Event, StoreTrouble
from queuectl.jobs.states import State
from queuectl.paths import make_folders, make_home, store_file
from queuectl.settings import Settings
from queuectl.store.sqlite.store import SqliteStore
from queuectl.text import WEBHOOK_QUEUE
from queuectl.units import parse_duration_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import BAD, Hands

HERE = Here("there", "there")  # so that a worker of the test is one by its heartbeat
LEASE = 30


def plain_settings() -> Settings:
    return load_settings({}, {})


class AlertSystem:
    """A database, workers that evaluate alerts, and a process that evaluates them without a worker."""

    def __init__(self, home: Path, clock: FakeClock) -> None:
        self.home, self.clock = home, clock
        self.store = SqliteStore(store_file(str(home)), clock=clock)
        self.events: list[Event] = []
        self.direct: list[tuple[str, str]] = []
        self.trouble: BaseException | None = None
        self._me: Hands | None = None

    def add(self, kind: Kind, threshold: int, name: str = "a", **fields: Any) -> None:
        now = self.clock.now_ms()
        plain = Alert(name, kind, threshold, None, None, 0, None, None, "page", "/", now, seen_ms=now)
        self.store.alerts.add(plain._replace(**fields))

    def task(self, store: SqliteStore | None = None) -> AlertTask:
        return AlertTask(store=store or self.store, here=HERE, settings=plain_settings, emit=self.events.append)

    def step(self) -> None:
        """As a worker that begins does."""
        if self._me is None:
            self._me = Hands(self.store, self.home, name="me", queues=("default",))
        self.store.claims.heartbeat("me", slots=1, stopping=False)
        self.task().step(self.clock.monotonic())

    def check(self) -> list[Sent]:
        """As `alert check` does."""
        return check(self.store, here=HERE, settings=plain_settings, deliver=self.deliver)

    def deliver(self, alert: Alert, notification: Notification) -> None:
        self.direct.append((notification.event.value, notification.id))
        if self.trouble is not None:
            raise self.trouble

    def kill(self, hands: Hands, jobs: int) -> None:
        self.store.enqueue([new_job(max_retries=1) for _ in range(jobs)])
        for claim in hands.claim(jobs):
            hands.end(claim, BAD, last_output="no such table")

    def notifications(self) -> list[str]:
        """The states that the delivery jobs report, in order."""
        jobs = self.store.jobs(descending=False)
        return [(job.env or {})["QUEUECTL_ALERT_STATE"] for job in jobs if job.queue == WEBHOOK_QUEUE]

    def close(self) -> None:
        if self._me is not None:
            self._me.wakeup.close()
        self.store.close()

    def start_worker(self) -> Hands:
        return Hands(self.store, self.home, queues=("default",))


@pytest.fixture
def system(home: Path, clock: FakeClock) -> Iterator[AlertSystem]:
    make_home(str(home))
    make_folders(str(home))
    made = AlertSystem(home, clock)
    yield made
    made.close()


@pytest.fixture
def worker(system: AlertSystem) -> Iterator[Hands]:
    hands = system.start_worker()
    yield hands
    hands.wakeup.close()


# ── by jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_notification_is_sent_when_an_alert_fires_and_one_when_it_resolves(
    system: AlertSystem, worker: Hands
) -> None:
    system.add(Kind.DEAD, 5)
    for dead, expected in ((4, []), (1, ["firing"]), (3, ["firing"])):
        system.kill(worker, dead)
        system.step()
        system.step()
        assert system.notifications() == expected
    ids = [job.id for job in system.store.jobs() if job.state is State.DEAD]
    for purged, expected in ((4, ["firing"]), (5, ["firing", "over"]), (8, ["firing", "over"])):
        system.store.purge(ids[:purged])
        system.step()
        assert system.notifications() == expected
    reason = f"5 jobs are dead; the latest is {ids[3]}: exit code 3: no such table"
    assert system.events == [AlertTold("a", "firing", reason), AlertTold("a", "over", "3 jobs are dead")]


def test_of_concurrent_evaluators_one_sends_the_notification(
    system: AlertSystem, worker: Hands, clock: FakeClock
) -> None:
    system.add(Kind.DEAD, 1)
    system.kill(worker, 1)
    others = [SqliteStore(store_file(str(system.home)), clock=clock) for _ in range(3)]
    seen = system.store.alerts.all()
    for other in others:  # all of them have seen the same before one of them has written
        check(other, here=HERE, settings=plain_settings, alerts=seen)
        other.close()
    assert system.notifications() == ["firing"]


def test_only_jobs_that_died_within_the_period_count(system: AlertSystem, worker: Hands, clock: FakeClock) -> None:
    system.add(Kind.DEAD, 2, within_ms=60_000)
    for _ in range(3):
        system.kill(worker, 1)
        system.step()
        clock.advance(50)
    assert system.notifications() == ["firing"]
    clock.advance(30)
    system.step()
    assert system.notifications() == ["firing", "over"]


def test_the_oldest_waiting_job_fires_after_the_condition_lasted(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.OLDEST, 600_000, for_ms=60_000)
    system.store.enqueue([new_job()])
    for seconds, expected in ((599, []), (1, []), (59, []), (1, ["firing"])):
        clock.advance(seconds)
        system.step()
        assert system.notifications() == expected


def test_delivery_jobs_do_not_trigger_alerts(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.OLDEST, 1000)
    system.store.enqueue([new_job("a", queue=WEBHOOK_QUEUE)])
    clock.advance(100)
    system.step()
    assert system.store.alerts.get("a").value == 0


def test_an_unchanged_status_is_written_now_and_then(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.DEAD, 1)
    for seconds, turn in ((0, 1), (MAX_STATUS_AGE_MS / 1000 - 1, 1), (1, 2)):
        clock.advance(seconds)
        system.step()
        assert system.store.alerts.get("a").turn == turn


def test_a_worker_checks_every_two_seconds_and_not_at_every_wakeup(system: AlertSystem, worker: Hands) -> None:
    duty = system.task()
    assert duty.step(100.0) == 100.0 + IDLE_INTERVAL
    system.add(Kind.DEAD, 1)
    assert duty.step(100.1) == 100.0 + MIN_INTERVAL
    assert duty.step(101.0) == 101.0 + CHECK_INTERVAL
    assert system.store.alerts.get("a").turn == 1


def test_the_last_worker_decides_nothing_while_it_stops(system: AlertSystem, worker: Hands) -> None:
    system.add(Kind.DEAD, 1)
    system.kill(worker, 1)
    system.store.claims.heartbeat(worker.name, slots=1, stopping=True)
    system.task().step(system.clock.monotonic())
    assert system.store.alerts.get("a").turn == 0
    assert system.notifications() == []
    system.check()
    assert [word for word, _ in system.direct] == ["firing"]


class Unable:
    @property
    def alerts(self) -> Self:
        return self

    def all(self) -> list[Alert]:
        raise StoreRefused("x", "permission denied for table alerts")


def test_a_missing_privilege_is_reported_once_and_does_not_stop_the_worker(system: AlertSystem) -> None:
    duty = system.task(Unable())  # type: ignore[arg-type]
    assert [duty.step(5.0), duty.step(99.0)] == [5.0 + ERROR_PAUSE, 99.0 + ERROR_PAUSE]
    (event,) = system.events
    assert isinstance(event, StoreTrouble)


# ── where there is no worker ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("threshold", ["2m", "10s"])
def test_no_worker_fires_when_its_time_has_passed_since_the_last_heartbeat(
    system: AlertSystem, worker: Hands, clock: FakeClock, threshold: str
) -> None:
    system.store.claims.heartbeat(worker.name, slots=1, stopping=False)
    wish = AlertRequest("a", no_worker=threshold, command="page")
    system.store.alerts.add(parse_alert(wish, cwd="/", now_ms=clock.now_ms()))
    passed = 0
    while not system.check():
        assert passed < 300
        clock.advance(1)
        passed += 1
    assert passed == max(
        parse_duration_ms(threshold, subject="") // 1000, LEASE
    )  # within the lease it counts as serving


def test_oldest_fires_when_a_job_has_waited_for_its_time(system: AlertSystem, clock: FakeClock) -> None:
    system.store.enqueue([new_job()])
    system.store.alerts.add(
        parse_alert(AlertRequest("a", oldest="10m", command="page"), cwd="/", now_ms=clock.now_ms())
    )
    clock.advance(599)
    assert not system.check()
    clock.advance(1)
    assert [sent.notification.event for sent in system.check()] == ["firing"]


def test_without_a_worker_a_notification_is_sent_without_a_job(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.NO_WORKER, 120_000)
    for seconds, expected in ((119, []), (1, ["firing"]), (300, ["firing"])):
        clock.advance(seconds)
        system.check()
        assert [word for word, _ in system.direct] == expected
    assert system.notifications() == []
    assert system.store.alerts.get("a").untold == ()


def test_a_new_worker_resolves_the_alert_with_a_job(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.NO_WORKER, 1000)
    clock.advance(1)
    system.check()
    hands = system.start_worker()
    system.check()
    assert ([word for word, _ in system.direct], system.notifications()) == (["firing"], ["over"])
    clock.advance(LEASE + 2)  # it gives no sign any more
    system.check()
    assert [word for word, _ in system.direct] == ["firing", "firing"]
    hands.wakeup.close()


def test_a_failed_delivery_is_retried_after_a_minute_with_the_same_id(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.NO_WORKER, 1000)
    system.trouble = WebhookUnanswered("example.org", "it answered 500")
    clock.advance(1)
    (told,) = system.check()
    assert (told.error, told.by_job) == (system.trouble, False)
    clock.advance(RETRY_AFTER_MS / 1000 - 1)
    assert system.check() == []
    system.trouble = None
    clock.advance(1)
    (told,) = system.check()
    assert told.error is None
    assert len(system.direct) == 2
    assert len(set(system.direct)) == 1
    clock.advance(RETRY_AFTER_MS / 1000)
    assert system.check() == []


def test_a_new_worker_sends_the_unsent_notifications_in_order(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.NO_WORKER, 1000)
    system.trouble = WebhookUnanswered("example.org", "no answer")
    clock.advance(1)
    system.check()
    hands = system.start_worker()
    system.step()
    assert system.notifications() == ["over"]  # another process is about to retry the other one
    clock.advance(RETRY_AFTER_MS / 1000)
    hands.store.claims.heartbeat(hands.name, slots=1, stopping=False)
    system.step()
    assert sorted(system.notifications()) == ["firing", "over"]
    assert system.store.alerts.get("a").untold == ()
    assert {id_ for _, id_ in system.direct} < {job.id for job in system.store.jobs()}
    hands.wakeup.close()


def test_after_a_crash_during_a_delivery_another_process_retries_it(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.NO_WORKER, 1000)
    system.trouble = KeyboardInterrupt()
    clock.advance(1)
    with pytest.raises(KeyboardInterrupt):
        system.check()
    system.trouble = None
    clock.advance(RETRY_AFTER_MS / 1000)
    assert [sent.error for sent in system.check()] == [None]
    assert len(set(system.direct)) == 1


def test_an_alert_that_is_removed_during_a_delivery_stays_removed(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.NO_WORKER, 1000)
    clock.advance(1)

    def deliver(alert: Alert, notification: Notification) -> None:
        system.store.alerts.remove(alert.name)

    assert len(check(system.store, here=HERE, settings=plain_settings, deliver=deliver)) == 1
    assert system.store.alerts.all() == []


def test_the_status_may_be_written_during_a_delivery(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.NO_WORKER, 1000)
    clock.advance(1)

    def deliver(alert: Alert, notification: Notification) -> None:
        assert system.store.alerts.update(system.store.alerts.get("a")._replace(value=77))

    check(system.store, here=HERE, settings=plain_settings, deliver=deliver)
    after = system.store.alerts.get("a")
    assert (after.value, after.untold, after.is_firing) == (77, (), True)


def test_all_alerts_are_sent_directly_without_a_worker(system: AlertSystem, clock: FakeClock) -> None:
    system.add(Kind.OLDEST, 1000)
    system.store.enqueue([new_job()])
    clock.advance(1)
    system.check()
    assert [word for word, _ in system.direct] == ["firing"]
    assert system.notifications() == []
