"""Alerts: how each stands is written by one of all who look, with the job that tells of it."""

from __future__ import annotations

from typing import Any

import pytest

from queuectl.alerts.rules import Alert, AlertEvent, Kind, Notification, add_unsent
from queuectl.errors import AlertExists, AlertNotFound
from queuectl.jobs.outcome import Exited
from queuectl.jobs.states import State
from queuectl.store.alerts import LastNotification, NotificationStatus, last_notifications, notification_job
from queuectl.store.store import Store
from queuectl.text import WEBHOOK_QUEUE
from queuectl.webhooks.rules import ORIGIN_VARIABLE, URL_VARIABLE
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.conftest import Hire
from tests.store.hands import BAD, Hands

NOW = 1_900_000_000_000
TELLING = Notification("told", AlertEvent.FIRING, 12, NOW)


def alert(name: str = "a", **fields: Any) -> Alert:
    return Alert(name, Kind.DEAD, 10, 3_600_000, None, 0, None, None, "page", "/tmp", NOW)._replace(**fields)


def test_an_alert_is_kept_as_it_was_given(store: Store, other: Store) -> None:
    full = alert("b", queue="q", repeat_ms=5, url="https://example.org/x", command=None, seen_ms=7)
    store.alerts.add(full)
    store.alerts.add(alert())
    assert other.alerts.all() == [alert(), full]
    assert other.alerts.get("b") == full


def test_a_name_that_is_taken_is_refused(store: Store) -> None:
    store.alerts.add(alert())
    with pytest.raises(AlertExists):
        store.alerts.add(alert(threshold=5))
    assert store.alerts.all() == [alert()]


def test_one_that_is_not_there_is_not_found(store: Store) -> None:
    for act in (store.alerts.get, store.alerts.remove):
        with pytest.raises(AlertNotFound):
            act("none")
    assert not store.alerts.update(alert())
    store.alerts.add(alert())
    store.alerts.remove("a")
    assert store.alerts.all() == []


def test_how_it_stands_is_written_with_the_job_that_tells(store: Store, other: Store) -> None:
    store.alerts.add(alert())
    firing = add_unsent(alert(is_firing=True, value=12, told_ms=NOW, checked_ms=NOW, tried_ms=3), TELLING)
    assert store.alerts.update(firing, [notification_job(firing, TELLING)])
    assert other.alerts.get("a") == firing._replace(turn=1)
    job = other.get("told")
    assert (job.state, job.queue, job.command, job.cwd, job.tags) == (
        State.PENDING,
        WEBHOOK_QUEUE,
        "page",
        "/tmp",
        ("alert",),
    )
    assert (job.env or {})["QUEUECTL_ALERT_STATE"] == "firing"
    assert store.tally()[WEBHOOK_QUEUE][State.PENDING] == 1


def test_a_call_says_nothing_of_its_url_to_those_who_look(store: Store) -> None:
    calls = alert(url="https://example.org/hidden", command=None)
    store.alerts.add(calls)
    store.alerts.update(calls, [notification_job(calls, TELLING)])
    job = store.get("told")
    assert job.argv == ("queuectl:webhook", "alert", "a", "firing")
    assert ((job.env or {})[URL_VARIABLE], (job.env or {})[ORIGIN_VARIABLE]) == ("https://example.org/hidden", "config")
    assert "hidden" not in str(job.to_dict())


@pytest.mark.parametrize("receiver", [{}, {"url": "https://example.org/secret", "command": None}])
def test_the_fate_of_the_last_message_is_that_of_its_job(
    store: Store, hire: Hire, clock: FakeClock, receiver: dict[str, Any]
) -> None:
    def tell(one: Alert, job: str) -> Alert:
        now = clock.now_ms()
        told = one._replace(told_ms=now)
        assert store.alerts.update(told, [notification_job(told, Notification(job, AlertEvent.FIRING, 12, now))])
        return store.alerts.get(one.name)

    store.alerts.add(alert(**receiver))
    store.alerts.add(alert("never"))
    assert last_notifications(store, store.alerts.all()) == {}
    first = tell(store.alerts.get("a"), "first")
    hire("w", queues=(WEBHOOK_QUEUE,)).run()
    assert last_notifications(store, [first]) == {"a": LastNotification(NotificationStatus.DELIVERED, "first")}
    clock.advance(60)
    second = tell(first, "second")
    assert last_notifications(store, [second]) == {"a": LastNotification(NotificationStatus.QUEUED, "second")}
    store.cancel(["second"])
    assert last_notifications(store, [second]) == {"a": LastNotification(NotificationStatus.CANCELLED, "second")}
    assert last_notifications(store, [add_unsent(second, TELLING)]) == {
        "a": LastNotification(NotificationStatus.UNSENT)
    }
    clock.advance(60)
    assert last_notifications(store, [second._replace(told_ms=clock.now_ms())]) == {
        "a": LastNotification(NotificationStatus.SENT)
    }


def test_of_those_who_have_seen_the_same_one_writes(store: Store, other: Store) -> None:
    store.alerts.add(alert())
    seen = [one.alerts.get("a")._replace(is_firing=True) for one in (store, other)]
    jobs = [notification_job(seen[0], TELLING._replace(id=name)) for name in ("first", "second")]
    assert [store.alerts.update(seen[0], [jobs[0]]), other.alerts.update(seen[1], [jobs[1]])] == [True, False]
    assert [job.id for job in store.jobs()] == ["first"]
    assert not other.alerts.update(seen[1])
    assert other.alerts.update(other.alerts.get("a"))


def test_an_alert_that_was_removed_and_added_again_is_another(store: Store) -> None:
    store.alerts.add(alert())
    seen = store.alerts.get("a")
    store.alerts.remove("a")
    store.alerts.add(alert(created_ms=NOW + 1))
    assert not store.alerts.update(seen._replace(is_firing=True))


def test_the_dead_are_counted_by_queue_and_from_a_moment_on(store: Store, worker: Hands, clock: FakeClock) -> None:
    moments = []
    for queue in ("q", "r", "r"):
        moments.append(store.now_ms())
        clock.advance(10)
        store.enqueue([new_job(queue=queue, max_retries=1), new_job(queue=queue)])
        worker.run(BAD)
        worker.run(Exited(0))
    assert [store.alerts.died_since(moment) for moment in moments] == [{"q": 1, "r": 2}, {"r": 2}, {"r": 1}]
    assert store.alerts.died_since(store.now_ms()) == {}


def test_a_reset_keeps_the_alerts(store: Store) -> None:
    store.alerts.add(alert())
    store.reset()
    assert store.alerts.all() == [alert()]
