"""revive: another chance, due now, in the old place."""

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
from tests.store.hands import BAD, Hands

ANY = frozenset(State)


def test_a_retried_dead_job_starts_over_but_its_history_stays(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", max_retries=1)])
    worker.run(BAD)
    clock.advance(9)
    assert store.retry(["a"], states=frozenset({State.DEAD})) == {"a": State.DEAD}
    job = store.get("a")
    assert (job.state, job.attempts, job.crashes, job.runs) == (State.PENDING, 0, 0, 1)
    assert to_ms(job.run_at) == to_ms(job.updated_at) == clock.now_ms()
    assert [run.outcome for run in store.history("a")] == [Ending.FAILED]
    again = worker.claim_one()
    assert (again.run, again.attempts) == (2, 0)


def test_a_poisoned_job_begins_without_crashes_again(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.claim_one()
    store.claims.rescue("w1", max_crashes=1)
    store.retry(["a"], states=ANY)
    job = store.get("a")
    assert (job.state, job.crashes, job.runs) == (State.PENDING, 0, 1)


def test_a_failed_job_keeps_its_attempts_and_need_not_wait(store: Store, hire: Hire, clock: FakeClock) -> None:
    store.enqueue([new_job("a", backoff_base=1000.0)])
    hire("w1").claim_one()
    store.claims.rescue("w1", max_crashes=3)
    worker = hire("w2")
    worker.run(BAD)
    clock.advance(1)
    assert store.retry(["a"], states=ANY) == {"a": State.FAILED}
    job = store.get("a")
    assert (job.state, job.attempts, job.crashes) == (State.PENDING, 1, 1)
    assert worker.claim_one().attempts == 1


def test_a_job_cancelled_before_its_first_run_is_as_new(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    store.cancel(["a"])
    assert store.retry(["a"], states=ANY) == {"a": State.CANCELLED}
    job = store.get("a")
    assert (job.state, job.finished_at, job.error) == (State.PENDING, None, None)
    assert worker.claim_one().id == "a"


def test_a_job_cancelled_while_it_waited_for_a_retry_shows_its_latest_run_again(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.enqueue([new_job("a")])
    worker.run(BAD)
    failed = store.get("a")
    clock.advance(1)
    store.cancel(["a"])
    store.retry(["a"], states=ANY)
    job = store.get("a")
    assert (job.error, job.finished_at, job.exit_code) == (failed.error, failed.finished_at, failed.exit_code)


def test_a_revived_job_keeps_its_place_in_the_line(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("old", max_retries=1), new_job("new")])
    worker.run(BAD)
    store.retry(["old"], states=ANY)
    assert [claim.id for claim in worker.claim(2)] == ["old", "new"]


@pytest.mark.parametrize("ageing", ["enqueues", "1s", "off"])
def test_a_change_of_ageing_meanwhile_counts_for_the_revived_too(
    store: Store, worker: Hands, clock: FakeClock, ageing: str
) -> None:
    store.enqueue([new_job("a", max_retries=1), new_job("b")])
    worker.run(BAD)
    store.set_config({"ageing": ageing})  # the rank itself is compared after every test
    clock.advance(3)
    store.retry(["a"], states=ANY)
    assert store.get("a").effective_priority == {"enqueues": 1, "1s": 3, "off": 0}[ageing]


def test_a_delayed_job_that_was_cancelled_is_due_at_once(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", delay_ms=3_600_000)])
    store.cancel(["a"])
    store.retry(["a"], states=ANY)
    assert worker.claim_one().id == "a"


def test_a_held_job_stays_held_when_it_is_revived(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job("a")])
    store.cancel(["a"])
    backend.force("a", held=1)
    store.retry(["a"], states=ANY)
    assert store.get("a").held
    assert worker.claim(1) == []


@pytest.mark.parametrize("state", [State.FAILED, State.DEAD, State.CANCELLED])
def test_a_job_in_none_of_the_named_states_stays_as_it_is(
    store: Store, worker: Hands, backend: Backend, state: State
) -> None:
    store.enqueue([new_job("a", max_retries=1 if state is State.DEAD else 2)])
    if state is State.CANCELLED:
        store.cancel(["a"])
    else:
        worker.run(BAD)
    before = backend.rows()
    assert store.retry(["a"], states=ANY - {state}) == {"a": state}
    assert backend.rows() == before


def test_nothing_is_revived_under_an_unknown_id(store: Store) -> None:
    assert store.retry(["a"], states=ANY) == {}


def test_many_are_revived_at_once_and_those_that_cannot_be_are_left(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(name, max_retries=1) for name in ("a", "b", "c")])
    worker.run(BAD)
    worker.run(BAD)
    assert store.retry(["b", "no", "c", "a", "b"], states=ANY) == {
        "a": State.DEAD,
        "b": State.DEAD,
        "c": State.PENDING,
    }
    assert {job.id: job.state for job in store.jobs()} == dict.fromkeys("abc", State.PENDING)
    assert [claim.id for claim in worker.claim(3)] == ["a", "b", "c"]


def test_reviving_nothing_changes_nothing(store: Store, backend: Backend) -> None:
    store.enqueue([new_job("a")])
    before = backend.rows()
    assert store.retry([], states=ANY) == {}
    assert backend.rows() == before
