"""cancel: at once for what waits, a recorded wish for what runs."""

from __future__ import annotations

import pytest

from queuectl.jobs.outcome import Ending
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, OK, Hands


def test_a_waiting_job_is_cancelled_at_once(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    clock.advance(1)
    answer = store.cancel(["a"])["a"]
    assert (answer.before, answer.worker, answer.token) == (State.PENDING, None, None)
    job = store.get("a")
    assert (job.state, job.error, job.runs, job.reason) == (State.CANCELLED, "cancelled", 0, None)
    assert job.finished_at is not None
    assert to_ms(job.finished_at) == to_ms(job.updated_at) == clock.now_ms()
    assert worker.claim(1) == []


def test_a_delayed_job_is_cancelled_for_good(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", delay_ms=1000)])
    store.cancel(["a"])
    clock.advance(2)
    assert worker.claim(1) == []


def test_a_failed_job_is_cancelled_and_its_last_run_stays_known(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.run(BAD, duration=1.5)
    assert store.cancel(["a"])["a"].before is State.FAILED
    job, (run,) = store.get("a"), store.history("a")
    assert (job.state, job.attempts, job.exit_code, job.duration_ms) == (State.CANCELLED, 1, 3, 1500)
    assert (run.outcome, run.error) == (Ending.FAILED, "exit code 3")


def test_a_clock_that_steps_back_shows_no_end_before_the_start_of_the_last_run(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.enqueue([new_job("a")])
    clock.advance(60)
    worker.run(BAD)
    clock.jump(-30)
    store.cancel(["a"])
    job = store.get("a")
    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.started_at <= job.finished_at


def test_a_blocked_job_is_cancelled_at_once(store: Store, backend: Backend) -> None:
    store.enqueue([new_job("a")])
    backend.force("a", state=State.BLOCKED, ready=0)
    assert store.cancel(["a"])["a"].before is State.BLOCKED
    assert store.get("a").state is State.CANCELLED


def test_for_a_running_job_the_wish_is_recorded_and_told_to_its_worker(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    holder, idle = hire("w1"), hire("w2")
    claim, _ = holder.claim(2)
    answer = store.cancel(["a"])["a"]
    assert (answer.before, answer.worker, answer.token) == (State.PROCESSING, "w1", claim.token)
    assert store.get("a").state is State.PROCESSING
    assert store.claims.orders("w1").cancels == [claim.token]
    assert store.claims.orders("w2").cancels == []
    assert idle.claim(1) == []


def test_a_wish_is_no_wish_any_more_once_the_run_has_ended(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    store.cancel(["a"])
    worker.end(claim)
    assert store.claims.orders("w1").cancels == []


def test_cancelling_a_running_job_twice_is_cancelling_it_once(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    assert store.cancel(["a"]) == store.cancel(["a"])
    assert store.claims.orders("w1").cancels == [claim.token]


@pytest.mark.parametrize("state", [State.COMPLETED, State.DEAD, State.CANCELLED])
def test_what_has_ended_stays_as_it_is(store: Store, worker: Hands, backend: Backend, state: State) -> None:
    store.enqueue([new_job("a", max_retries=1)])
    if state is State.CANCELLED:
        store.cancel(["a"])
    else:
        worker.run(BAD if state is State.DEAD else OK)
    before = backend.rows()
    assert store.cancel(["a"])["a"].before is state
    assert backend.rows() == before


def test_the_effective_priority_stays_as_it_was_at_the_cancel(store: Store, clock: FakeClock) -> None:
    store.set_config({"ageing": "1s"})
    store.enqueue([new_job("a", priority=1)])
    clock.advance(4)
    store.cancel(["a"])
    clock.advance(100)
    assert store.get("a").effective_priority == 5


def test_nothing_is_cancelled_under_an_unknown_id(store: Store) -> None:
    store.enqueue([new_job("ab")])
    assert store.cancel(["a"]) == {}
    assert store.get("ab").state is State.PENDING


def test_many_jobs_are_cancelled_at_once_each_according_to_its_state(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(name) for name in ("failed", "running", "waiting", "over", "left")])
    worker.run(BAD)
    running = worker.claim_one()
    store.cancel(["over"])
    answers = store.cancel(["waiting", "missing", "running", "failed", "over", "waiting"])
    assert {job_id: answer.before for job_id, answer in answers.items()} == {
        "waiting": State.PENDING,
        "running": State.PROCESSING,
        "failed": State.FAILED,
        "over": State.CANCELLED,
    }
    assert store.claims.orders("w1").cancels == [running.token]
    assert {job.id: job.state for job in store.jobs()} == {
        "left": State.PENDING,
        "over": State.CANCELLED,
        "waiting": State.CANCELLED,
        "running": State.PROCESSING,
        "failed": State.CANCELLED,
    }
    assert [run.outcome for run in store.history("failed")] == [Ending.FAILED]


def test_cancelling_nothing_changes_nothing(store: Store, backend: Backend) -> None:
    store.enqueue([new_job("a")])
    before = backend.rows()
    assert store.cancel([]) == {}
    assert backend.rows() == before
