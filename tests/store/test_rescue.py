"""rescue and running: taking the jobs of a worker that is gone."""

from __future__ import annotations

import pytest

from queuectl.jobs.outcome import Ending
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.store.types import Span
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.conftest import Hire
from tests.store.hands import BAD, Hands
from tests.store.wakeups import drain, wakes


def test_a_worker_holds_exactly_what_it_claimed_and_has_not_ended(store: Store, hire: Hire) -> None:
    store.enqueue([new_job(env={"K": "V"}, argv=("x",), command=None) for _ in range(5)])
    one, two = hire("w1"), hire("w2")
    first, second = one.claim(2)
    (third,) = two.claim(1)
    assert store.running("w1") == [first, second]
    one.end(first)
    assert (store.running("w1"), store.running("w2"), store.running("w3")) == ([second], [third], [])


def test_a_lost_job_is_requeued_and_does_not_count_as_an_attempt(store: Store, worker: Hands, hire: Hire) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    (lost,) = store.claims.rescue("w1", max_crashes=3)
    assert (lost.claim, lost.settlement.state) == (claim, State.PENDING)
    job = store.get("a")
    assert (job.state, job.attempts, job.crashes, job.runs) == (State.PENDING, 0, 1, 1)
    assert job.error == "its worker died"
    again = hire("w2").claim_one()
    assert (again.id, again.run, again.crashes) == ("a", 2, 1)


def test_who_was_not_begun_is_not_charged_with_a_crash(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(name) for name in "abc"])
    begun, unbegun, cancelled = worker.claim(3)
    store.cancel(["c"])
    store.claims.rescue("w1", max_crashes=1, unbegun={unbegun.token, cancelled.token})
    assert {job.id: (job.state, job.crashes) for job in store.jobs()} == {
        "a": (State.DEAD, 1),
        "b": (State.PENDING, 0),
        "c": (State.CANCELLED, 0),
    }
    assert (store.get("b").runs, list(store.history("b"))) == (0, [])
    assert begun.id == "a"


def test_a_lost_run_stays_in_the_history_with_all_that_is_known(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    worker.start(claim, pid=99, log_from=7)
    clock.advance(10)
    store.claims.rescue("w1", max_crashes=3, spans={claim.token: Span(7, 70, "the end")})
    (run,) = store.history("a")
    assert (run.outcome, run.worker, run.host, run.pid) == (Ending.LOST, "w1", "here", 99)
    assert (run.last_output, store.get("a").last_output) == ("the end", "the end")
    assert (run.log_from, run.log_to, run.exit_code, run.signal, run.duration_ms) == (7, 70, None, None, None)
    assert run.started_at is not None
    assert run.finished_at is not None
    assert (to_ms(run.started_at), to_ms(run.finished_at)) == (clock.now_ms() - 10_000, clock.now_ms())


def test_a_lost_run_without_a_span_keeps_where_its_output_began(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.start(worker.claim_one(), log_from=7)
    store.claims.rescue("w1", max_crashes=3)
    (run,) = store.history("a")
    assert (run.log_from, run.log_to) == (7, None)


@pytest.mark.parametrize("max_crashes", [1, 2, 3])
def test_a_job_that_costs_too_many_workers_is_dead(store: Store, hire: Hire, max_crashes: int) -> None:
    store.enqueue([new_job("a")])
    for crash in range(1, max_crashes + 1):
        assert store.get("a").state is State.PENDING
        hire(f"w{crash}").claim_one()
        store.claims.rescue(f"w{crash}", max_crashes=max_crashes)
    job = store.get("a")
    assert (job.state, job.crashes, job.attempts) == (State.DEAD, max_crashes, 0)
    assert job.error


def test_failures_and_crashes_are_counted_apart(store: Store, hire: Hire, clock: FakeClock) -> None:
    store.enqueue([new_job("a", max_retries=3)])
    hire("w1").run(BAD)
    clock.advance(60)
    hire("w2").claim_one()
    store.claims.rescue("w2", max_crashes=3)
    job = store.get("a")
    assert (job.attempts, job.crashes, job.runs) == (1, 1, 2)


def test_a_lost_job_with_a_recorded_cancel_is_cancelled(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.claim_one()
    store.cancel(["a"])
    (lost,) = store.claims.rescue("w1", max_crashes=1)
    assert lost.settlement.state is State.CANCELLED
    job, (run,) = store.get("a"), store.history("a")
    assert (job.state, job.crashes, run.outcome) == (State.CANCELLED, 0, Ending.CANCELLED)


def test_rescue_takes_every_job_and_only_those_of_that_worker(store: Store, hire: Hire) -> None:
    store.enqueue([new_job() for _ in range(7)])
    gone, here = hire("w1"), hire("w2")
    lost, kept = gone.claim(3), here.claim(2)
    gone.end(lost[0])
    assert [one.claim for one in store.claims.rescue("w1", max_crashes=3)] == lost[1:]
    assert store.running("w2") == kept


def test_a_rescued_worker_is_forgotten(store: Store, hire: Hire) -> None:
    hire("w1")
    hire("w2")
    store.claims.rescue("w1", max_crashes=3)
    assert [worker.id for worker in store.workers()] == ["w2"]


def test_a_second_rescue_finds_nothing(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.claim_one()
    store.claims.rescue("w1", max_crashes=3)
    assert store.claims.rescue("w1", max_crashes=3) == []
    assert store.get("a").crashes == 1


def test_a_rescue_wakes_those_who_may_take_the_job(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a")])
    gone, here = hire("w1"), hire("w2")
    gone.claim_one()
    drain(here.wakeup)
    store.claims.rescue("w1", max_crashes=3)
    assert wakes(here.wakeup)


def test_a_lost_job_keeps_its_place_in_the_line(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("old"), new_job("new")])
    hire("w1").claim_one()
    store.claims.rescue("w1", max_crashes=3)
    assert [claim.id for claim in hire("w2").claim(2)] == ["old", "new"]
