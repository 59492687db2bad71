from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput, UnknownName, UsageError
from queuectl.jobs.import_record import (
    ImportRecord,
    find_difference,
    hidden_variable,
    pack_record,
    parse_record,
    unpack_record,
)
from queuectl.jobs.priority import Strict
from queuectl.jobs.spec import Defaults
from queuectl.store.rows import JOB_COLUMNS, Present, job
from queuectl.store.transfer import import_row
from queuectl.units import from_ms, iso

DEFAULTS = Defaults(priority=4, max_retries=7, first_is_free=True, backoff_base=3.0, timeout_ms=None, cwd="/here")
NOON = "2026-01-02T12:00:00.000Z"
ONE = "2026-01-02T13:00:00.000Z"
RUN: dict[str, Any] = {
    "number": 1,
    "worker": "w",
    "host": "h",
    "started_at": NOON,
    "finished_at": ONE,
    "outcome": "failed",
}


def read(**fields: Any) -> ImportRecord:
    return parse_record({"id": "a", "command": "true", "state": "pending", "created_at": NOON, **fields}, DEFAULTS)


def refusal(**fields: Any) -> str:
    with pytest.raises(UsageError) as caught:
        read(**fields)
    assert caught.value.hint
    return caught.value.message


def test_places_belong_to_a_key() -> None:
    assert "there is no key" in refusal(places=2)
    assert read(places=2, key="k").places == 2


@pytest.mark.parametrize(
    "field, value, told",
    [
        ("id", "a b", "id: not an id: 'a b'"),
        ("id", None, "id: missing"),
        ("created_at", None, "created_at: missing"),
        ("created_at", "yesterday", "created_at: expected a time, got 'yesterday'"),
        ("state", "done", "state: not a state: 'done'"),
        ("state", 3, "state: not a state: 3"),
        ("command", None, "command: missing, and so is argv"),
        ("argv", ["true"], "argv: not together with command"),
        ("attempts", -1, "attempts: expected an integer from 0 to 2147483647, got -1"),
        ("attempts", True, "attempts: expected an integer from 0 to 2147483647, got true"),
        ("runs", "2", "runs: expected an integer from 0 to 2147483647, got '2'"),
        ("held", 1, "held: expected true or false, got 1"),
        ("error", "a\0b", "error: holds a NUL character"),
        ("depends_on", ["b c"], "depends_on: not an id: 'b c'"),
        ("cron", "a b", "cron: not the name of a schedule: 'a b'"),
        ("history", {}, "history: expected a list of runs, got an object"),
        ("history", [3], "history[0]: expected an object, got 3"),
        ("history", [{**RUN, "outcome": "odd"}], "history[0].outcome: not an outcome: 'odd'"),
        ("history", [{**RUN, "number": None}], "history[0].number: missing"),
        ("history", [{**RUN, "finished_at": None}], "history[0].finished_at: missing"),
        ("history", [RUN, {**RUN, "number": 3}], "history[1].number: 3 after 1"),
        ("history", [{**RUN, "pid": "x"}], "history[0].pid: expected an integer from 0 to 9007199254740992, got 'x'"),
        ("history", [{**RUN, "outcome": "running"}], "history: a run is still running, and the job is not"),
    ],
)
def test_an_error_names_its_field(field: str, value: object, told: str) -> None:
    assert refusal(**{field: value}) == told


def test_an_unknown_field_is_rejected_with_the_closest_match() -> None:
    with pytest.raises(UnknownName, match="'attempt'") as caught:
        read(attempt=1)
    assert "attempts" in caught.value.hint
    with pytest.raises(UnknownName, match="'hosts'"):
        read(history=[{**RUN, "hosts": "h"}])


def test_runs_attempts_and_history_have_to_agree() -> None:
    assert refusal(attempts=3, runs=2) == "runs: 2 is less than the attempts: 3"
    assert refusal(runs=2, history=[RUN]) == "history: its last run is 1, and runs is 2"
    assert refusal(max_retries=3, max_attempts=4) == "max_attempts: 4 contradicts another spelling of it"


def test_a_record_of_another_tool_gets_defaults() -> None:
    record = read(max_retries=2, attempts=2, state="dead", updated_at=ONE)
    assert (record.queue, record.priority, record.backoff_base, record.cwd) == ("default", 4, 3.0, "/here")
    assert (record.max_retries, record.first_is_free, record.timeout_ms) == (2, False, None)
    assert (record.runs, record.attempts, record.error, record.ending) == (2, 2, "failed", None)
    assert record.finished_at == record.updated_at
    assert read().max_retries == 7
    assert read().first_is_free


def test_a_completed_job_has_run_once_more_than_it_has_failed() -> None:
    record = read(state="COMPLETED", attempts=1)
    assert (record.runs, record.exit_code, record.error) == (2, 0, None)


def test_a_time_without_a_zone_is_utc() -> None:
    assert read(created_at="2026-01-02 12:00:00").created_at == read().created_at


def test_times_are_put_in_order() -> None:
    record = read(state="completed", created_at=ONE, updated_at=NOON, started_at=NOON, finished_at=NOON)
    assert record.created_at == record.updated_at == record.started_at == record.finished_at


def test_the_latest_run_is_stored_in_the_job_and_the_others_separately() -> None:
    again = {**RUN, "number": 2, "outcome": "timeout", "error": "timeout after 1s", "pid": 4}
    record = read(state="failed", attempts=2, runs=2, history=[RUN, again])
    assert (record.ending, record.host, record.pid, record.error) == ("timeout", "h", 4, "timeout after 1s")
    assert [run.number for run in record.earlier] == [1]


def test_all_runs_of_a_job_that_was_cancelled_while_waiting_are_earlier_runs() -> None:
    record = read(state="cancelled", attempts=1, runs=1, error="cancelled", finished_at=ONE, history=[RUN])
    assert (record.ending, record.error, record.host) == (None, "cancelled", "h")
    assert [run.ending for run in record.earlier] == ["failed"]


def test_a_running_job_becomes_pending() -> None:
    record = read(state="processing", updated_at=ONE, started_at=NOON, runs=1)
    assert (record.state, record.was_running, record.error) == ("pending", True, "it ran when it was exported")
    assert record.finished_at == record.updated_at


def test_a_packed_record_is_unpacked_unchanged() -> None:
    record = read(env={"A": "ü"}, tags=["b", "a"], runs=2, history=[RUN, {**RUN, "number": 2}])
    assert unpack_record(pack_record(record)) == record
    argv = parse_record({"id": "a", "argv": ["x", "y"], "state": "dead", "created_at": NOON}, DEFAULTS)
    assert unpack_record(pack_record(argv)) == argv


# ── the same job ────────────────────────────────────────────────────────────────────────────────────────────────────

PRESENT = Present(now_ms=0, last_seq=1, ageing=Strict(), served=None)
NAMES = [
    "seq",
    "id",
    "command",
    "argv",
    "state",
    "queue",
    "ready",
    "priority",
    "rank",
    "eligible_at",
    "effective_priority",
    "run_at",
    "held",
    "max_retries",
    "first_is_free",
    "backoff_base",
    "timeout_ms",
    "cwd",
    "env",
    "tags",
    "unique_key",
    "cron",
    "attempts",
    "runs",
    "crashes",
    "worker",
    "host",
    "pid",
    "started_at",
    "finished_at",
    "duration_ms",
    "wait_ms",
    "exit_code",
    "signal",
    "error",
    "ending",
    "created_at",
    "updated_at",
    "batch",
    "key",
    "depends_on",
    "places",
    "hooks",
    "limits",
    "usage",
    "secrets",
    "last_output",
    "fingerprint",
]


def stored(record: ImportRecord) -> Any:
    """The job that a store creates from the record."""
    row = dict(zip(NAMES, import_row(record, seq=1, now_ms=0, ageing=Strict()), strict=True))
    wanted = [name.strip() for name in JOB_COLUMNS.split(",")]
    return job((*({**row, "missed": 0, "log": None}[name] for name in wanted), None), PRESENT)


def test_a_job_that_has_run_since_is_the_same() -> None:
    done = stored(read(state="completed", attempts=1, started_at=NOON, finished_at=ONE, updated_at=ONE))
    assert find_difference(read(), done) is None


def test_fields_that_were_not_given_are_not_compared() -> None:
    there = stored(parse_record({**said(), "cwd": "/there", "max_retries": 1}, DEFAULTS))
    assert find_difference(read(), there) is None


def said() -> dict[str, Any]:
    return {"id": "a", "command": "true", "state": "pending", "created_at": NOON}


@pytest.mark.parametrize(
    "field, value",
    [
        ("created_at", ONE),
        ("command", "false"),
        ("queue", "mail"),
        ("priority", 1),
        ("max_retries", 1),
        ("backoff_base", 9),
        ("timeout", 3),
        ("cwd", "/there"),
        ("env", {"A": "2"}),
        ("env", {"B": "***"}),
        ("tags", ["x"]),
        ("first_attempt_is_free", True),
    ],
)
def test_another_job_is_detected_by_a_field_that_is_fixed_at_enqueue(field: str, value: object) -> None:
    there = stored(read(queue="q", priority=0, max_retries=3, cwd="/", env={"A": "1"}))
    assert find_difference(read(**{field: value}), there) == field


def test_of_hidden_values_the_names_are_compared() -> None:
    hidden = read(env={"A": "***", "B": "2"})
    assert hidden_variable(hidden) == "A"
    assert hidden_variable(read(env={"A": "1"})) is None
    assert find_difference(hidden, stored(read(env={"A": "1", "B": "2"}))) is None
    assert find_difference(hidden, stored(read(env={"A": "1", "B": "3"}))) == "env"


@given(st.integers(1, 100 * 365 * 86_400_000), st.integers(0, 4_000_000_000_000))
def test_every_time_and_timeout_is_exported_and_imported_unchanged(timeout_ms: int, moment_ms: int) -> None:
    before = stored(read(created_at=iso(from_ms(moment_ms)), timeout_ms=timeout_ms))
    again = parse_record(
        {key: before.to_dict()[key] for key in ("id", "command", "state", "created_at", "timeout")}, DEFAULTS
    )
    assert (again.timeout_ms, again.created_at) == (timeout_ms, moment_ms)


@given(
    st.dictionaries(
        st.sampled_from(["id", "state", "history", "run_at", "env", "timeout", "signal", "x"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        ),
    )
)
def test_any_values_are_a_record_or_rejected(fields: dict[str, Any]) -> None:
    with suppress(InvalidInput, UnknownName):
        read(**fields)


def test_derived_fields_are_ignored() -> None:
    assert read(reason="no worker", log="/elsewhere/a.log", output="x", stdout_log="y") == read()


def test_a_run_in_progress_ends_at_the_time_of_the_export() -> None:
    under_way = {**RUN, "outcome": "running", "finished_at": None}
    found = read(state="processing", runs=1, attempts=0, started_at=NOON, updated_at=ONE, history=[under_way])
    assert (found.state, found.was_running) == ("pending", True)
    assert (found.ending, found.finished_at) == ("released", read(created_at=ONE).created_at)
    assert found.earlier == ()


def test_the_only_run_is_kept_and_determines_the_waiting_time() -> None:
    facts = {"started_at": ONE, "finished_at": ONE, "exit_code": 0, "duration_ms": 5, "wait_ms": 60_000}
    found = read(state="completed", runs=1, **facts)
    assert found.eligible_at == read(created_at=ONE).created_at - 60_000


def test_a_job_of_a_schedule_keeps_it_and_is_not_held() -> None:
    record = read(cron="nightly", held=True)
    assert (record.cron, record.held) == ("nightly", False)
    assert find_difference(read(cron="hourly"), stored(record)) == "cron"


@pytest.mark.parametrize("queue, origin", [("mail", "queue"), ("other", "config"), ("default", "config")])
def test_the_origin_of_a_webhook_depends_on_the_importing_host(queue: str, origin: str) -> None:
    urls = (None, None, "http://a/")
    defaults = DEFAULTS._replace(by_queue={"mail": (None, None, None, urls)}, urls=urls)  # type: ignore[dict-item]
    fields = {"id": "a", "command": "true", "state": "pending", "created_at": NOON, "queue": queue}
    record = parse_record({**fields, "hooks": {"dead": ["http://a/", "job"]}}, defaults)
    assert record.hooks == {"dead": ["http://a/", origin]}


def test_a_last_output_that_is_too_long_is_cut() -> None:
    assert read(last_output="x" * 300).last_output == "x" * 200
