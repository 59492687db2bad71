from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from queuectl.errors import InvalidInput, UnknownName
from queuectl.jobs.edit import JobEdit, parse_edit

NOW = 1_900_000_000_000


@pytest.mark.parametrize(
    "fields, change",
    [
        ({}, JobEdit()),
        ({"priority": None, "command": None}, JobEdit()),
        ({"command": "make all"}, JobEdit(command="make all")),
        ({"argv": ["make", "all"]}, JobEdit(argv=("make", "all"))),
        ({"queue": "mail", "priority": -5}, JobEdit(queue="mail", priority=-5)),
        (
            {"on_dead": "https://a.example/", "on_success": "none"},
            JobEdit(hooks={"dead": ["https://a.example/", "job"], "success": None}),
        ),
        ({"delay": "1m30s"}, JobEdit(delay_ms=90_000)),
        ({"run_at": "2026-11-15T20:30:00Z"}, JobEdit(run_at_ms=1_794_774_600_000)),
        ({"run_at": datetime(2026, 11, 15, 20, 30, tzinfo=UTC)}, JobEdit(run_at_ms=1_794_774_600_000)),
        ({"max_retries": 5}, JobEdit(max_retries=5)),
        ({"max_attempts": 5}, JobEdit(max_retries=5, first_is_free=False)),
        ({"timeout": timedelta(minutes=2)}, JobEdit(timeout_ms=120_000)),
        ({"timeout": 0}, JobEdit(timeout_ms=0)),
    ],
)
def test_an_edit_is_parsed_as_enqueue_parses_a_job(fields: dict[str, object], change: JobEdit) -> None:
    assert parse_edit(fields) == change


@pytest.mark.parametrize(
    "fields, said",
    [
        ({"command": " "}, "--command: blank"),
        ({"priority": 1_000_001}, "--priority: expected an integer"),
        ({"queue": "no good"}, "--queue: not the name of a queue"),
        ({"queue": "queuectl.webhooks"}, "--queue: queuectl.webhooks is reserved"),
        ({"on_dead": "mailto:me"}, "--on-dead: not an http or https URL"),
        ({"run_at": "soon"}, "--run-at: expected a time"),
        ({"delay": "-1s"}, "--delay: a duration cannot be negative"),
        ({"max_retries": 1.5}, "--max-retries: expected an integer"),
        ({"max_attempts": -1}, "--max-attempts: expected an integer"),
        ({"timeout": "x"}, "--timeout: expected a duration"),
        ({"delay": "1s", "run_at": "2026-11-15"}, "--delay: not together with --run-at"),
        ({"max_retries": 1, "max_attempts": 1}, "--max-attempts: not together with --max-retries"),
    ],
)
def test_an_invalid_value_is_rejected_with_the_name_of_the_option(fields: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_edit(fields, dashes="--")
    assert caught.value.message.startswith(said)


def test_a_job_runs_a_command_or_an_argv() -> None:
    with pytest.raises(InvalidInput, match="argv: not together with command"):
        parse_edit({"command": "true", "argv": ["true"]})


@pytest.mark.parametrize("name", ["id", "state", "prioritty", "env"])
def test_a_field_that_cannot_be_edited_is_rejected_by_name(name: str) -> None:
    with pytest.raises(UnknownName, match=name):
        parse_edit({name: "x"})


@pytest.mark.parametrize(
    "change, run_at",
    [
        (JobEdit(), None),
        (JobEdit(delay_ms=0), NOW),
        (JobEdit(delay_ms=500), NOW + 500),
        (JobEdit(run_at_ms=NOW + 9), NOW + 9),
        (JobEdit(run_at_ms=5), NOW),
    ],
)
def test_a_time_in_the_past_means_now(change: JobEdit, run_at: int | None) -> None:
    assert change.run_at(NOW) == run_at
