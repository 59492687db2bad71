from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.change import Change, read_change

NOW = 1_900_000_000_000


@pytest.mark.parametrize(
    "fields, change",
    [
        ({}, Change()),
        ({"priority": None, "command": None}, Change()),
        ({"command": "make all"}, Change(command="make all")),
        ({"argv": ["make", "all"]}, Change(argv=("make", "all"))),
        ({"queue": "mail", "priority": -5}, Change(queue="mail", priority=-5)),
        (
            {"on_dead": "https://a.example/", "on_success": "none"},
            Change(hooks={"dead": ["https://a.example/", "job"], "success": None}),
        ),
        ({"delay": "1m30s"}, Change(delay_ms=90_000)),
        ({"run_at": "2026-11-15T20:30:00Z"}, Change(run_at_ms=1_794_774_600_000)),
        ({"run_at": datetime(2026, 11, 15, 20, 30, tzinfo=UTC)}, Change(run_at_ms=1_794_774_600_000)),
        ({"max_retries": 5}, Change(max_retries=5)),
        ({"max_attempts": 5}, Change(max_retries=5, first_is_free=False)),
        ({"timeout": timedelta(minutes=2)}, Change(timeout_ms=120_000)),
        ({"timeout": 0}, Change(timeout_ms=0)),
    ],
)
def test_a_change_is_read_as_enqueue_reads_a_job(fields: dict[str, object], change: Change) -> None:
    assert read_change(fields) == change


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"command": " "}, "--command: blank"),
        ({"priority": 1_000_001}, "--priority: expected an integer"),
        ({"queue": "no good"}, "--queue: not the name of a queue"),
        ({"queue": "queuectl.webhooks"}, "--queue: queuectl.webhooks is for calls"),
        ({"on_dead": "mailto:me"}, "--on-dead: not an http or https URL"),
        ({"run_at": "soon"}, "--run-at: not a time"),
        ({"delay": "-1s"}, "--delay: a duration cannot be negative"),
        ({"max_retries": 1.5}, "--max-retries: expected an integer"),
        ({"max_attempts": -1}, "--max-attempts: expected an integer"),
        ({"timeout": "x"}, "--timeout: not a duration"),
        ({"delay": "1s", "run_at": "2026-11-15"}, "--delay: not together with --run-at"),
        ({"max_retries": 1, "max_attempts": 1}, "--max-attempts: not together with --max-retries"),
    ],
)
def test_what_enqueue_would_refuse_is_refused_in_the_words_of_the_option(fields: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_change(fields, dashes="--")
    assert caught.value.message.startswith(said)


def test_a_job_runs_a_command_or_an_argv() -> None:
    with pytest.raises(InvalidInput, match="argv: not together with command"):
        read_change({"command": "true", "argv": ["true"]})


@pytest.mark.parametrize("name", ["id", "state", "prioritty", "env"])
def test_what_cannot_be_changed_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnknownName, match=name):
        read_change({name: "x"})


@pytest.mark.parametrize(
    "change, run_at",
    [
        (Change(), None),
        (Change(delay_ms=0), NOW),
        (Change(delay_ms=500), NOW + 500),
        (Change(run_at_ms=NOW + 9), NOW + 9),
        (Change(run_at_ms=5), NOW),
    ],
)
def test_a_time_that_has_passed_means_now(change: Change, run_at: int | None) -> None:
    assert change.run_at(NOW) == run_at
