from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.clock import stamp
from queuectl.errors import JobNotFound
from queuectl.jobs.model import BulkResult, Job, Refusal, Run, Worker
from queuectl.jobs.outcome import Ending
from queuectl.jobs.resources import Usage
from queuectl.jobs.states import State
from queuectl.units import from_ms, iso, to_ms

AT = datetime(2026, 1, 2, 3, 4, 5, 678_900, tzinfo=UTC)

JOB = Job(
    seq=1,
    id="job",
    command="echo hi",
    argv=None,
    state=State.PENDING,
    queue="default",
    priority=0,
    effective_priority=2,
    attempts=0,
    runs=0,
    crashes=0,
    max_retries=3,
    first_is_free=False,
    backoff_base=2.0,
    timeout_ms=None,
    run_at=AT,
    created_at=AT,
    updated_at=AT,
    started_at=None,
    finished_at=None,
    duration_ms=None,
    wait_ms=None,
    exit_code=None,
    signal=None,
    error=None,
    worker=None,
    cwd="/here",
    env={"TOKEN": "secret"},
    tags=("a", "b"),
    unique_key=None,
    held=False,
    reason="waits for a free slot",
    log=None,
    cron=None,
)


def test_a_job_shows_every_field_of_the_contract_in_its_order() -> None:
    contract = (
        "id command argv state queue priority effective_priority attempts runs crashes max_retries backoff_base timeout "
        "run_at created_at updated_at started_at finished_at duration_ms wait_ms exit_code signal error last_output worker "
        "cwd env tags depends_on unique_key cron batch key array_index held reason log limits"
    )
    added = ["secrets"]
    shown = JOB.to_dict()
    assert list(shown) == contract.split() + added
    assert shown["state"] == "pending"
    assert shown["run_at"] == "2026-01-02T03:04:05.678Z"
    assert (shown["tags"], shown["depends_on"], shown["started_at"], shown["argv"]) == (["a", "b"], [], None, None)
    assert replace(JOB, command=None, argv=("echo", "hi")).to_dict()["argv"] == ["echo", "hi"]


def test_a_job_of_an_array_shows_its_index() -> None:
    assert replace(JOB, env={"QUEUECTL_ARRAY_INDEX": "7"}).to_dict()["array_index"] == 7
    assert JOB.to_dict()["array_index"] is None


def test_the_environment_of_a_job_is_hidden_by_default() -> None:
    assert JOB.to_dict()["env"] == {"TOKEN": "***"}
    assert JOB.to_dict(show_env=True)["env"] == {"TOKEN": "secret"}


@pytest.mark.parametrize("ms, seconds", [(None, None), (2_000, 2), (1_500, 1.5)])
def test_a_timeout_is_shown_in_seconds(ms: int | None, seconds: float | None) -> None:
    shown = replace(JOB, timeout_ms=ms).to_dict()["timeout"]
    assert shown == seconds
    assert type(shown) is type(seconds)


def test_a_run_shows_every_field_of_the_contract() -> None:
    run = Run(
        number=1,
        worker="w",
        host="h",
        pid=7,
        started_at=AT,
        finished_at=None,
        duration_ms=None,
        exit_code=None,
        signal=None,
        error=None,
        outcome=Ending.RUNNING,
        log_from=0,
        log_to=None,
    )
    shown = run.to_dict()
    contract = "number worker host pid started_at finished_at duration_ms exit_code signal error outcome last_output"
    used = "cpu_user_ms cpu_system_ms max_rss_bytes read_bytes written_bytes peak_memory_bytes"
    assert list(shown) == [*contract.split(), *used.split()]
    assert {shown[name] for name in used.split()} == {None}
    assert list(replace(run, usage=Usage(1, 2, 3, 4, 5, 6)).to_dict().values())[-6:] == [1, 2, 3, 4, 5, 6]
    assert (shown["outcome"], shown["finished_at"]) == ("running", None)


def test_a_worker_shows_every_field_of_the_contract() -> None:
    worker = Worker(
        id="w",
        host="h",
        pid=7,
        home="/home",
        state="running",
        slots=4,
        busy=1,
        queues=None,
        started_at=AT,
        heartbeat_at=AT,
        beats=1,
        jobs_done=9,
    )
    shown = worker.to_dict()
    assert list(shown) == [
        "id",
        "host",
        "pid",
        "state",
        "slots",
        "busy",
        "queues",
        "started_at",
        "heartbeat_at",
        "jobs_done",
    ]
    assert shown["queues"] is None
    assert replace(worker, queues=("a", "b")).to_dict()["queues"] == ["a", "b"]


def test_a_time_is_written_in_utc_with_milliseconds() -> None:
    assert iso(AT.astimezone(timezone(timedelta(hours=-5)))) == "2026-01-02T03:04:05.678Z"
    assert iso(None) is None


@given(st.integers(0, 253_402_300_799_999))
def test_a_time_is_exact_to_the_millisecond_up_to_the_year_9999(ms: int) -> None:
    assert to_ms(from_ms(ms)) == ms
    written = iso(from_ms(ms))
    assert written is not None
    assert written.endswith(f".{ms % 1000:03d}Z")


@given(st.integers(min_value=0, max_value=253_402_300_799_999))
def test_a_time_is_formatted_the_same_with_and_without_datetime(ms: int) -> None:
    assert stamp(ms) == iso(from_ms(ms))


def test_a_bulk_result_has_the_code_and_message_of_each_refusal() -> None:
    result = BulkResult(["a"], [Refusal("b", JobNotFound("b"))])
    assert result.to_dict() == {
        "done": ["a"],
        "refused": [{"id": "b", "code": "job-not-found", "message": "no job 'b'"}],
    }


def test_each_name_is_tried_once_and_one_that_is_unknown_is_refused() -> None:
    tried: list[str] = []

    def act(name: str) -> None:
        tried.append(name)
        if name == "b":
            raise JobNotFound(name)

    result = BulkResult.of_each(["a", "b", "a", "c"], act)
    assert tried == ["a", "b", "c"]
    assert (result.done, [refused.id for refused in result.refused]) == (["a", "c"], ["b"])
