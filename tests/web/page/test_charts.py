"""Timelines, formats and issues."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from queuectl.alerts.rules import Alert, Kind
from queuectl.jobs.model import Worker
from queuectl.jobs.states import State
from queuectl.store.open import open_store
from queuectl.text import WEBHOOK_QUEUE
from queuectl.units import to_ms
from queuectl.web.issues import Overview, find_issues
from queuectl.web.pages import render
from queuectl.web.pages.job import timeline
from queuectl.web.pages.render import command, whole_command
from tests.operations import life

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)


@pytest.mark.parametrize(
    "ms, words",
    [
        (None, "—"),
        (0, "0ms"),
        (850, "850ms"),
        (2500, "2.5s"),
        (61_000, "1m 1s"),
        (3_600_000, "1h"),
        (100_000_000, "1d 3h"),
    ],
)
def test_a_duration_has_at_most_two_units(ms: int | None, words: str) -> None:
    assert render.span(ms) == words


@pytest.mark.parametrize(
    "seconds, words", [(0, "now"), (-5, "5s ago"), (-3700, "1h ago"), (90, "in 1m"), (200_000, "in 2d")]
)
def test_a_relative_time_has_its_largest_unit(seconds: int, words: str) -> None:
    assert render.ago(NOW + timedelta(seconds=seconds), NOW_MS) == words


def test_times_in_messages_have_the_format_of_the_pages() -> None:
    said = "not due until 2026-11-18T01:42:15.785Z, enqueued 2026-11-18T00:42:15Z"
    assert render.moments(said) == "not due until 2026-11-18 01:42:15 UTC, enqueued 2026-11-18 00:42:15 UTC"


@pytest.mark.parametrize(
    "value, words",
    [(999, "999"), (1000, "1,000"), (99_999, "99,999"), (123_456, "123.5k"), (1_000_000, "1M"), (0.5, "0.5")],
)
def test_a_number_is_abbreviated(value: float, words: str) -> None:
    assert render.short(value) == words


def bee(**facts: Any) -> Worker:
    bare = {
        "host": "h",
        "pid": 1,
        "home": "/",
        "slots": 1,
        "busy": 0,
        "started_at": NOW,
        "heartbeat_at": NOW,
        "beats": 1,
    }
    return Worker(**{"id": "bee", "state": "running", "queues": None, "jobs_done": 0, **bare, **facts})


CALM = Overview({"default": {State.PENDING: 3}}, frozenset(), {"default": 1000}, [bee()], None, NOW_MS)


def test_a_healthy_queue_has_no_issues() -> None:
    assert find_issues(CALM) == []


@pytest.mark.parametrize(
    "sight, kind, words",
    [
        (CALM._replace(workers=[]), "bad", "No workers are running; 3 jobs are waiting"),
        (
            CALM._replace(workers=[bee(queues=("mail",))]),
            "bad",
            "No worker serves the queue default; 3 jobs are waiting",
        ),
        (CALM._replace(workers=[bee(), bee(id="wasp", state="lost")]), "bad", "1 worker is not responding"),
        (CALM._replace(paused=frozenset({"default"}), oldest={}), "warn", "The queue default is paused"),
        (CALM._replace(oldest={"default": 600_000}), "warn", "The oldest job in default has waited for 10m"),
        (
            CALM._replace(oldest={"a": 600_000, "b": 900_000, "c": 1}, tally={"a": {State.PENDING: 5}}),
            "warn",
            "2 queues are late; 5 jobs are waiting",
        ),
        (
            CALM._replace(workers=[bee(queues=("mail",))], oldest={"a": 9, "b": 9}),
            "bad",
            "No worker serves 2 queues; 0 jobs are waiting",
        ),
        (CALM._replace(tally={"a": {State.DEAD: 1}}, last_dead_at=NOW), "bad", "1 job is dead"),
        (
            CALM._replace(tally={"a": {State.DEAD: 2}}, last_dead_at=NOW - timedelta(days=2)),
            "warn",
            "2 jobs are dead",
        ),
    ],
)
def test_the_most_important_issue_is_first(sight: Overview, kind: str, words: str) -> None:
    first = find_issues(sight)[0]
    assert (first.kind, first.text) == (kind, words)


@pytest.mark.parametrize(
    "sight, texts",
    [
        (CALM._replace(workers=[], oldest={"default": 10**6}), ["No workers are running; 3 jobs are waiting"]),
        (
            CALM._replace(workers=[bee(queues=("mail",))], oldest={"default": 10**6}),
            ["No worker serves the queue default; 3 jobs are waiting"],
        ),
        (
            CALM._replace(paused=frozenset("abc"), tally={key: {State.PENDING: 2} for key in "abc"}, oldest={}),
            ["3 queues are paused; 6 jobs are waiting"],
        ),
    ],
)
def test_one_cause_is_one_issue(sight: Overview, texts: list[str]) -> None:
    assert [issue.text for issue in find_issues(sight)] == texts


@pytest.mark.parametrize("busy, words", [(0, "Check the limits of the queue"), (1, "consider adding more")])
def test_more_slots_are_suggested_only_if_all_are_busy(busy: int, words: str) -> None:
    (issue,) = find_issues(CALM._replace(oldest={"default": 600_000}, workers=[bee(busy=busy)]))
    assert words in issue.more


def test_webhook_deliveries_do_not_count_as_waiting_or_dead_jobs() -> None:
    tally = {"default": {State.PENDING: 3}, WEBHOOK_QUEUE: {State.PENDING: 6, State.DEAD: 2}}
    sight = CALM._replace(tally=tally, oldest={"default": 1, WEBHOOK_QUEUE: 1}, workers=[], last_dead_at=NOW)
    assert [one.text for one in find_issues(sight)] == ["No workers are running; 3 jobs are waiting"]


# ── a job ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_command_cannot_look_like_another_one() -> None:
    job = {"command": "echo safe\n\trm \u202egnihton\u202c \x1b[2K"}
    assert command(job) == "echo safe\\n\\trm \\u202egnihton\\u202c \\x1b[2K"
    assert whole_command(job) == "echo safe\n\\trm \\u202egnihton\\u202c \\x1b[2K"
    assert command({"command": None, "argv": ["a b", "שלום"]}) == "'a b' 'שלום'"


def test_the_timeline_of_a_job_that_will_be_retried_continues(home: Path) -> None:
    with closing(open_store(str(home))) as store:
        life.register(store, home)
        life.enqueue(store, "again", max_retries=5)
        life.run(store, home, life.KILLED)
        job, history = store.get("again"), store.history("again")
        assert job.finished_at is not None
        later = to_ms(job.finished_at) + 5000
        assert timeline(job, history, later).end_ms == later
        store.cancel(["again"])
        job = store.get("again")
        assert job.finished_at is not None
        assert timeline(job, history, to_ms(job.finished_at) + 5000).end_ms == to_ms(job.finished_at)


FIRING = Alert(
    "deaths", Kind.DEAD, 10, 3_600_000, None, 0, None, None, "page", "/", NOW_MS, True, NOW_MS - 60_000, value=12
)


def test_what_a_firing_alert_reports_is_not_another_issue() -> None:
    dead = CALM._replace(tally={"default": {State.DEAD: 23}}, last_dead_at=NOW)
    (issue,) = find_issues(dead._replace(firing=[FIRING]))
    assert issue.more.endswith("23 jobs are dead.")
    unserved = CALM._replace(workers=[], firing=[FIRING._replace(kind=Kind.NO_WORKER)])
    late = CALM._replace(oldest={"default": 10**6}, firing=[FIRING._replace(kind=Kind.OLDEST, queue="default")])
    assert [len(find_issues(one)) for one in (unserved, late)] == [1, 1]


@pytest.mark.parametrize(
    "fields, url",
    [
        ({}, "/dlq"),
        ({"queue": "a b"}, "/jobs?state=dead&queue=a%20b"),
        ({"kind": Kind.OLDEST}, "/jobs?state=pending&sort=run_at"),
        ({"kind": Kind.OLDEST, "queue": "mail"}, "/jobs?state=pending&queue=mail&sort=run_at"),
        ({"kind": Kind.NO_WORKER}, "/workers"),
    ],
)
def test_a_firing_alert_is_the_first_issue_and_links_to_details(fields: dict[str, Any], url: str) -> None:
    first = find_issues(CALM._replace(workers=[], firing=[FIRING._replace(**fields)]))[0]
    assert first.kind == "bad"
    assert first.text.startswith("Alert deaths is firing: ")
    assert first.more.startswith("For 1m")
    assert first.url == url
