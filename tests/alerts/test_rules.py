from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.alerts.rules import (
    MAX_UNSENT,
    RETRY_AFTER_MS,
    Alert,
    AlertEvent,
    Kind,
    Measurements,
    Notification,
    add_unsent,
    decide,
    is_repeat_due,
    measure_alert,
    notification_variables,
    pause,
    redefine,
    resume,
)
from queuectl.text import WEBHOOK_QUEUE

NOW = 1_900_000_000_000
URL = "https://example.org/secret"


def alert(**fields: Any) -> Alert:
    plain = Alert("a", Kind.DEAD, 10, None, None, 0, None, URL, None, "/", NOW)
    return plain._replace(**fields)


def figures(**fields: Any) -> Measurements:
    return Measurements(NOW, {}, {}, {}, ())._replace(**fields)


def told(one: Alert, *values: tuple[int, int]) -> list[tuple[int, str]]:
    """What is said of values at moments: seconds from now, and the value."""
    said = []
    numbers = map(str, count())
    for seconds, value in values:
        one, notification = decide(one, value, now_ms=NOW + seconds * 1000, new_id=lambda: next(numbers))
        if notification is not None:
            said.append((seconds, notification.event.value))
    return said


# ── when ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_alert_fires_at_its_threshold_and_resolves_below_80_percent() -> None:
    assert told(alert(), (0, 9), (1, 10), (2, 11), (3, 9), (4, 8), (5, 7)) == [(1, "firing"), (5, "over")]


def test_a_threshold_of_one_resolves_at_zero() -> None:
    assert told(alert(threshold=1), (0, 1), (1, 1), (2, 0)) == [(0, "firing"), (2, "over")]


def test_the_condition_has_to_last_in_both_directions() -> None:
    slow = alert(for_ms=60_000)
    assert told(slow, (0, 10), (59, 10), (60, 10)) == [(60, "firing")]
    assert told(slow, (0, 10), (30, 9), (60, 10), (119, 10)) == []
    firing = slow._replace(is_firing=True)
    assert told(firing, (0, 0), (59, 0), (60, 0)) == [(60, "over")]
    assert told(firing, (0, 0), (30, 9), (60, 0), (119, 0)) == []


def test_a_notification_is_repeated_only_with_the_option() -> None:
    assert told(alert(), (0, 10), (3600, 10)) == [(0, "firing")]
    often = alert(repeat_ms=60_000)
    expected = [(0, "firing"), (60, "still-firing"), (130, "still-firing"), (140, "over")]
    assert told(often, (0, 10), (59, 10), (60, 10), (119, 10), (130, 9), (140, 0), (300, 0)) == expected


def test_an_unsent_notification_is_not_repeated() -> None:
    one = alert(is_firing=True, repeat_ms=1000, told_ms=NOW)
    assert is_repeat_due(one, NOW + 1000)
    assert not is_repeat_due(add_unsent(one, Notification("t", AlertEvent.FIRING, 10, NOW)), NOW + 1000)


def test_after_a_clock_was_set_back_the_period_starts_again() -> None:
    assert told(alert(for_ms=60_000, since_ms=NOW + 10**9), (0, 10), (59, 10), (60, 10)) == [(60, "firing")]
    one, _ = decide(alert(for_ms=60_000, since_ms=NOW + 10**9), 10, now_ms=NOW, new_id=str)
    assert one.since_ms == NOW
    assert is_repeat_due(alert(is_firing=True, repeat_ms=1000, told_ms=NOW + 10**9), NOW)


Steps = list[tuple[int, int]]
RULES = st.builds(
    lambda threshold, hold, repeat: alert(threshold=threshold, for_ms=hold, repeat_ms=repeat),
    st.integers(1, 50),
    st.sampled_from([0, 1000, 60_000]),
    st.sampled_from([None, 1000, 120_000]),
)
STEPS: st.SearchStrategy[Steps] = st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 60)), max_size=60)


def play(one: Alert, steps: Steps) -> Iterator[tuple[int, int, Alert, Notification | None]]:
    now = NOW
    for passed, value in steps:
        now += passed
        one, notification = decide(one, value, now_ms=now, new_id=lambda: "x")
        yield now, value, one, notification


@given(RULES, STEPS)
def test_an_alert_never_fires_twice_without_resolving(one: Alert, steps: Steps) -> None:
    said = [notification.event for *_, notification in play(one, steps) if notification is not None]
    turns = [word for word in said if word is not AlertEvent.STILL_FIRING]
    assert turns == [AlertEvent.FIRING, AlertEvent.OVER] * (len(turns) // 2) + [AlertEvent.FIRING] * (len(turns) % 2)
    is_firing = False
    for word in said:
        assert is_firing is (word is not AlertEvent.FIRING)
        is_firing = word is not AlertEvent.OVER


@given(RULES, STEPS)
def test_the_state_changes_only_after_the_whole_period(one: Alert, steps: Steps) -> None:
    since: int | None = None
    for (now, value, after, notification), before in zip(
        play(one, steps), [one, *(seen for _, _, seen, _ in play(one, steps))], strict=False
    ):
        looks_so = value * 5 < one.threshold * 4 if before.is_firing else value >= one.threshold
        since = (since or now) if looks_so else None
        assert (after.is_firing is not before.is_firing) is (since is not None and now - since >= one.for_ms)
        if after.is_firing is not before.is_firing:
            assert notification is not None
            since = None


@given(RULES, st.booleans(), STEPS)
def test_within_the_hysteresis_band_the_state_stays(one: Alert, is_firing: bool, steps: Steps) -> None:
    low, high = -(-one.threshold * 4 // 5), one.threshold - 1
    within = [(passed, low + value % (high - low + 1)) for passed, value in steps] if low <= high else []
    for _, _, after, notification in play(one._replace(is_firing=is_firing, told_ms=NOW), within):
        assert after.is_firing is is_firing
        assert notification is None or notification.event is AlertEvent.STILL_FIRING


# ── what it goes by ─────────────────────────────────────────────────────────────────────────────────────────────────

DEAD: Mapping[str, int] = {"default": 3, "mail": 2, WEBHOOK_QUEUE: 50}


def test_dead_jobs_are_counted_without_deliveries() -> None:
    assert measure_alert(alert(), figures(dead=DEAD)).value == 5
    assert measure_alert(alert(queue="mail"), figures(dead=DEAD)).value == 2
    assert measure_alert(alert(queue=WEBHOOK_QUEUE), figures(dead=DEAD)).value == 50
    assert measure_alert(alert(queue="none"), figures(dead=DEAD)).value == 0
    assert measure_alert(alert(within_ms=1000), figures(dead={}, died={1000: DEAD})).value == 5


def test_the_oldest_job_is_that_of_the_queue_or_of_all_queues() -> None:
    ages = {"default": 3000, "mail": 9000, WEBHOOK_QUEUE: 99_000}
    assert measure_alert(alert(kind=Kind.OLDEST), figures(oldest=ages)).value == 9000
    assert measure_alert(alert(kind=Kind.OLDEST, queue="default"), figures(oldest=ages)).value == 3000
    assert measure_alert(alert(kind=Kind.OLDEST), figures()).value == 0


def test_no_worker_measures_the_time_since_the_last_worker() -> None:
    one = alert(kind=Kind.NO_WORKER, created_ms=NOW - 5000)
    assert measure_alert(one, figures()).value == 5000
    seen = measure_alert(one, figures(served=[(("mail",), NOW)]))
    assert (seen.value, seen.seen_ms, seen.checked_ms) == (0, NOW, NOW)
    assert measure_alert(seen, figures(now_ms=NOW + 7000)).value == 7000
    assert measure_alert(seen, figures(now_ms=NOW - 7000)).value == 0


def test_no_worker_of_a_queue_counts_only_workers_of_that_queue() -> None:
    one = alert(kind=Kind.NO_WORKER, queue="q", created_ms=NOW - 5000)
    mail, every, own = (("mail",), NOW), (None, NOW), (("q",), NOW)
    assert [measure_alert(one, figures(served=served)).value for served in ([mail], [every], [mail, own])] == [
        5000,
        0,
        0,
    ]


def test_a_worker_that_is_lost_counts_as_missing_since_its_last_heartbeat() -> None:
    one = alert(kind=Kind.NO_WORKER, created_ms=NOW - 50_000)
    seen = measure_alert(one, figures(served=[(None, NOW - 20_000)]))
    assert seen.value == 0
    assert measure_alert(seen, figures(now_ms=NOW + 10_000)).value == 30_000


# ── who is to be told ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_latest_unsent_notifications_are_kept() -> None:
    one = alert()
    for number in range(MAX_UNSENT + 5):
        one = add_unsent(one, Notification(str(number), AlertEvent.FIRING, 10, NOW))
    assert [notification.id for notification in one.untold] == [str(number) for number in range(5, MAX_UNSENT + 5)]


def test_a_delivery_in_progress_is_not_repeated_for_a_minute() -> None:
    assert not alert().has_unsent(NOW)
    owed = add_unsent(alert(), Notification("t", AlertEvent.FIRING, 10, NOW))
    assert owed.has_unsent(NOW)
    tried = owed._replace(tried_ms=NOW)
    assert [tried.has_unsent(NOW + ms) for ms in (0, RETRY_AFTER_MS - 1, RETRY_AFTER_MS, -1)] == [
        False,
        False,
        True,
        True,
    ]


def test_a_command_gets_the_notification_in_its_environment() -> None:
    one = alert(kind=Kind.OLDEST, threshold=600_000, queue="mail")
    assert notification_variables(one, Notification("t7", AlertEvent.OVER, 61_500, NOW)) == {
        "QUEUECTL_ALERT": "a",
        "QUEUECTL_ALERT_ID": "t7",
        "QUEUECTL_ALERT_STATE": "over",
        "QUEUECTL_ALERT_KIND": "oldest",
        "QUEUECTL_ALERT_VALUE": "61.5",
        "QUEUECTL_ALERT_THRESHOLD": "600",
        "QUEUECTL_ALERT_QUEUE": "mail",
        "QUEUECTL_ALERT_AT": "2030-03-17T17:46:40.000Z",
        "QUEUECTL_ALERT_TEXT": "the oldest job of mail has waited for 1m1s",
    }
    assert notification_variables(alert(), Notification("t8", AlertEvent.TEST, 3, NOW))["QUEUECTL_ALERT_QUEUE"] == ""


@pytest.mark.parametrize(
    "fields, value, condition, text",
    [
        ({}, 1, "10 jobs dead", "1 job is dead"),
        ({"threshold": 1}, 1234, "1 job dead", "1,234 jobs are dead"),
        (
            {"within_ms": 3_600_000, "queue": "q"},
            2,
            "10 jobs dead within 1h in q",
            "2 jobs of q died within 1h",
        ),
        ({"kind": Kind.OLDEST, "threshold": 1000}, 0, "oldest job waits 1s", "no job waits"),
        (
            {"kind": Kind.NO_WORKER, "threshold": 1000},
            1,
            "no worker takes jobs for 1s",
            "no worker takes jobs, for 0s now",
        ),
        (
            {"kind": Kind.NO_WORKER, "queue": "q", "threshold": 1},
            0,
            "no worker takes jobs for 1ms in q",
            "a worker takes jobs of q",
        ),
    ],
)
def test_conditions_and_values_are_described_as_text(
    fields: dict[str, Any], value: int, condition: str, text: str
) -> None:
    one = alert(**fields)
    assert (one.condition, one.describe(value)) == (condition, text)


def test_the_json_has_numbers_and_no_secrets() -> None:
    shown = alert(is_firing=True, value=12, for_ms=1500, repeat_ms=3_600_000, checked_ms=NOW).to_dict()
    assert shown == {
        "name": "a",
        "kind": "dead",
        "threshold": 10,
        "within": None,
        "queue": None,
        "for": 1.5,
        "repeat": 3600,
        "webhook": "https://example.org/…",
        "command": None,
        "state": "firing",
        "value": 12,
        "changed_at": None,
        "checked_at": "2030-03-17T17:46:40.000Z",
        "told_at": None,
        "message": None,
        "untold": 0,
        "created_at": "2030-03-17T17:46:40.000Z",
    }
    other = alert(kind=Kind.OLDEST, threshold=90_000, url=None, command="page").to_dict()
    assert (other["threshold"], other["webhook"], other["command"], other["state"]) == (90, None, "page", "ok")


# ── changes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_another_condition_starts_the_evaluation_again_and_another_target_does_not() -> None:
    firing = alert(is_firing=True, value=12, since_ms=NOW)
    assert redefine(firing, alert(url="https://other.example/", repeat_ms=5)).is_firing
    changed = redefine(firing, alert(threshold=20))
    assert (changed.is_firing, changed.value, changed.since_ms) == (False, None, None)


def test_the_time_of_a_pause_does_not_count() -> None:
    paused = pause(alert(kind=Kind.NO_WORKER, is_firing=True, seen_ms=NOW))
    assert (paused.state, paused.is_firing) == ("paused", False)
    resumed = resume(paused, NOW + 5_000)
    assert (resumed.state, resumed.seen_ms) == ("ok", NOW + 5_000)
    assert resume(resumed, NOW + 9_000) == resumed
