"""enqueue: all or none, durable, in order."""

from __future__ import annotations

import re

import pytest

from queuectl import errors
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.conftest import Hire


def test_a_new_job_is_pending_and_due_at_once(store: Store, clock: FakeClock) -> None:
    (job_id,) = store.enqueue([new_job()])
    job = store.get(job_id)
    assert job.state is State.PENDING
    assert to_ms(job.run_at) == to_ms(job.created_at) == to_ms(job.updated_at) == clock.now_ms()


def test_every_field_given_comes_back(store: Store) -> None:
    given = new_job(
        "report-1",
        command="echo 'ü' \"$X\"\n",
        queue="mail",
        priority=-7,
        max_retries=5,
        first_is_free=True,
        backoff_base=1.5,
        timeout_ms=90_500,
        cwd="/tmp/ü b",
        env={"X": "1", "Ü": "a b"},
        tags=("a", "b"),
        unique_key="once",
    )
    store.enqueue([given])
    job = store.get("report-1")
    for field in ("id", "command", "argv", "queue", "priority", "max_retries", "first_is_free", "backoff_base"):
        assert getattr(job, field) == getattr(given, field)
    for field in ("timeout_ms", "cwd", "env", "tags", "unique_key"):
        assert getattr(job, field) == getattr(given, field)


def test_an_argv_comes_back_word_by_word(store: Store) -> None:
    store.enqueue([new_job("a", command=None, argv=("printf", "%s", "a b", "", "ü\n"))])
    job = store.get("a")
    assert (job.command, job.argv) == (None, ("printf", "%s", "a b", "", "ü\n"))


def test_a_new_job_has_no_run_and_no_history(store: Store) -> None:
    store.enqueue([new_job("a")])
    job = store.get("a")
    assert (job.attempts, job.runs, job.crashes) == (0, 0, 0)
    latest = (job.started_at, job.finished_at, job.duration_ms, job.wait_ms, job.exit_code, job.signal, job.error)
    assert latest == (None,) * 7
    assert (job.worker, job.log, job.held, job.env, job.tags) == (None, None, False, {}, ())
    assert store.history("a") == []


def test_ids_come_back_in_the_order_given(store: Store) -> None:
    ids = store.enqueue([new_job("c"), new_job(), new_job("a"), new_job(), new_job("b")])
    assert (ids[0], ids[2], ids[4]) == ("c", "a", "b")
    assert [job.id for job in store.jobs(descending=False)] == ids


def test_an_id_that_is_made_has_the_documented_form(store: Store) -> None:
    ids = store.enqueue([new_job() for _ in range(50)])
    assert len(set(ids)) == 50
    assert all(re.fullmatch("[a-z][a-z0-9]{9}", job_id) for job_id in ids)


def test_another_process_sees_a_job_as_soon_as_enqueue_returns(store: Store, other: Store) -> None:
    (job_id,) = store.enqueue([new_job()])
    assert other.get(job_id).id == job_id


def test_no_job_at_all_is_no_error(store: Store) -> None:
    assert store.enqueue([]) == []
    assert store.tally() == {}


@pytest.mark.parametrize("taken_by", ["the database", "the batch"])
def test_one_duplicate_id_refuses_the_whole_batch(store: Store, taken_by: str) -> None:
    store.enqueue([new_job("old", tags=("t",))])
    twice = "old" if taken_by == "the database" else "new"
    with pytest.raises(errors.DuplicateId) as raised:
        store.enqueue([new_job("new", tags=("t",)), new_job("between"), new_job(twice)])
    assert raised.value.job_id == twice
    assert [job.id for job in store.jobs()] == ["old"]
    assert store.totals()["default"]["enqueued"] == 1


def test_a_refused_batch_leaves_no_gap_that_would_count_as_enqueues(store: Store) -> None:
    store.set_config({"ageing": "enqueues"})
    store.enqueue([new_job("a")])
    with pytest.raises(errors.DuplicateId):
        store.enqueue([new_job(), new_job("a")])
    store.enqueue([new_job()])
    assert store.get("a").effective_priority == 1


def test_an_id_differs_by_case(store: Store) -> None:
    store.enqueue([new_job("job"), new_job("Job")])
    assert store.count() == 2


def test_what_the_schema_refuses_is_an_error_of_ours_and_no_duplicate(store: Store) -> None:
    with pytest.raises(errors.Unavailable):
        store.enqueue([new_job("a"), new_job("b", priority=1_000_001)])
    assert store.count() == 0


# ── when ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_delay_counts_from_the_clock_of_the_store(store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job("a", delay_ms=1500)])
    job = store.get("a")
    assert to_ms(job.run_at) == clock.now_ms() + 1500
    assert job.state is State.PENDING


def test_a_time_that_has_passed_means_now(store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job("a", run_at_ms=clock.now_ms() - 1)])
    assert to_ms(store.get("a").run_at) == clock.now_ms()


def test_a_time_to_come_is_kept_to_the_millisecond(store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job("a", run_at_ms=clock.now_ms() + 12_345)])
    assert to_ms(store.get("a").run_at) == clock.now_ms() + 12_345


def test_a_delay_of_nothing_is_due_at_once(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a", delay_ms=0)])
    assert hire().claim_one().id == "a"


def test_the_sequence_goes_on_after_everything_was_removed(store: Store, backend: Backend) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    store.reset()
    store.enqueue([new_job("c")])
    assert [row["seq"] for row in backend.rows()] == [3]


def test_many_jobs_keep_each_what_is_its_own(store: Store) -> None:
    jobs = [new_job(f"j{number}", command=f"echo {number}", priority=number // 40) for number in range(130)]
    jobs[77] = new_job("j77", command="echo 77", priority=5, queue="mail", delay_ms=5_000)
    store.enqueue(jobs)
    found = {job.id: job for job in store.jobs()}
    assert [(found[job.id].command, found[job.id].priority, found[job.id].queue) for job in jobs if job.id] == [
        (job.command, job.priority, job.queue) for job in jobs
    ]
    assert [job.id for job in store.jobs(descending=False)] == [job.id for job in jobs]
    assert found["j77"].run_at > found["j76"].run_at
    store.set_config({"ageing": "enqueues"})
    store.enqueue([new_job(f"k{number}") for number in range(60)])
    assert store.tally()["default"][State.PENDING] == 189
