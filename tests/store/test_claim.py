"""exchange, the claiming half: who is eligible, in which order, and what a claim carries."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.jobs.outcome import Ending, Released
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, Hands


def ids(worker: Hands, limit: int = 100) -> list[str]:
    return [claim.id for claim in worker.claim(limit)]


# ── what a claim is ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_claim_carries_all_that_is_needed_to_run_the_job(store: Store, worker: Hands, home: Path) -> None:
    job = new_job(
        "a",
        command=None,
        argv=("x", "y z"),
        queue="mail",
        max_retries=7,
        first_is_free=True,
        backoff_base=1.25,
        timeout_ms=1500,
        cwd="/tmp",
        env={"K": "V"},
    )
    store.enqueue([job])
    claim = worker.claim_one()
    for field in ("id", "command", "argv", "queue", "max_retries", "first_is_free", "backoff_base", "timeout_ms"):
        assert getattr(claim, field) == getattr(job, field)
    assert (claim.cwd, claim.env, claim.run, claim.attempts, claim.crashes) == ("/tmp", {"K": "V"}, 1, 0, 0)
    assert claim.log == str(home / "logs" / "a.log")


def test_a_claimed_job_is_processing_in_the_hands_of_its_worker(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    clock.advance(2)
    worker.claim_one()
    job = store.get("a")
    assert (job.state, job.worker, job.runs, job.attempts) == (State.PROCESSING, "w1", 1, 0)
    assert (job.log, job.wait_ms, job.reason) == (None, 2000, None)
    assert job.started_at is not None
    assert to_ms(job.started_at) == clock.now_ms()


def test_from_claim_to_end_nothing_of_the_last_run_is_shown(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    worker.run(BAD, duration=1)
    clock.advance(60)
    worker.claim_one()
    job = store.get("a")
    assert (job.finished_at, job.duration_ms, job.exit_code, job.signal, job.error) == (None,) * 5


def test_the_run_under_way_stands_in_the_history(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.claim_one()
    (run,) = store.history("a")
    assert (run.number, run.worker, run.host, run.pid, run.outcome) == (1, "w1", "here", None, Ending.RUNNING)
    assert (run.finished_at, run.duration_ms, run.log_to) == (None, None, None)


def test_each_claim_starts_a_new_run_and_carries_a_new_token(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claims = []
    for _ in range(5):
        claims.append(worker.claim_one())
        worker.end(claims[-1], Released(None))
    assert [claim.run for claim in claims] == [1, 2, 3, 4, 5]
    assert len({claim.token for claim in claims}) == 5


SILENT = (None, None)


def test_a_job_has_no_log_before_its_first_output(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    worker.start(claim, pid=99, log_from=None)
    began = store.get("a").started_at
    assert (store.get("a").log, store.history("a")[0].pid) == (None, 99)
    clock.advance(5)
    worker.start(claim, pid=99, age=4, log_from=17)  # told again, with its first output
    (run,) = store.history("a")
    assert (store.get("a").log, run.log_from, run.started_at) == (claim.log, 17, began)


def test_a_job_whose_runs_print_nothing_never_has_a_log(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    worker.start(claim, log_from=None)
    worker.end(claim, log=SILENT)
    (run,) = store.history("a")
    assert (store.get("a").log, run.log_from, run.log_to) == (None, None, None)
    assert store.prune(["a"], before_ms=store.now_ms()) == {"a": None}


def test_a_job_keeps_its_log_while_a_later_run_prints_nothing(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", max_retries=3)])
    first = worker.claim_one()
    worker.end(first, Released(None), log=(10, 20))
    assert store.get("a").log == first.log
    second = worker.claim_one()
    assert (store.get("a").log, second.log) == (first.log, first.log)
    worker.end(second, log=SILENT)
    assert store.get("a").log == first.log
    assert [(run.log_from, run.log_to) for run in store.history("a")] == [(10, 20), SILENT]


def test_a_claim_that_is_read_again_has_the_log_of_its_worker(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    assert store.running("w1") == [claim]


def test_a_start_tells_pid_time_and_place_in_the_log(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    clock.advance(1.5)
    worker.start(claim, pid=99, age=0.5, log_from=17)
    job, (run,) = store.get("a"), store.history("a")
    assert (run.pid, run.log_from) == (99, 17)
    assert job.started_at == run.started_at
    assert run.started_at is not None
    assert to_ms(run.started_at) == clock.now_ms() - 500
    assert job.wait_ms == 1000


def test_another_process_sees_a_claim_as_soon_as_it_is_made(store: Store, other: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.claim_one()
    assert other.get("a").state is State.PROCESSING


# ── who is eligible ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_store_has_nothing_to_claim(worker: Hands) -> None:
    exchange = worker.exchange(limit=10)
    assert (exchange.claims, exchange.next_due_ms, exchange.more) == ([], None, False)


def test_two_callers_never_receive_the_same_job(store: Store, other: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job() for _ in range(20)])
    rival = Hands(other, backend.home, name="w2")
    taken = [claim.id for _ in range(5) for hands in (worker, rival) for claim in hands.claim(2)]
    rival.wakeup.close()
    assert sorted(taken) == sorted(job.id for job in store.jobs())


def test_no_more_is_claimed_than_asked_for(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(queue=queue) for queue in "abcabc"])
    assert [len(worker.claim(limit)) for limit in (0, 1, 4, 9, 9)] == [0, 1, 4, 1, 0]


def test_settling_alone_claims_nothing(store: Store, worker: Hands) -> None:
    store.enqueue([new_job()])
    assert worker.exchange().claims == []


def test_a_full_hand_may_leave_more_to_claim_and_says_so(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(), new_job(), new_job()])
    assert [worker.exchange(limit=2).more for _ in range(2)] == [True, False]


def test_a_job_that_is_not_due_is_not_claimed(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("later", delay_ms=1000), new_job("now")])
    assert ids(worker) == ["now"]
    clock.advance(0.999)
    assert ids(worker) == []
    clock.advance(0.001)
    assert ids(worker) == ["later"]


def test_a_failed_job_is_claimed_when_its_retry_is_due(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", backoff_base=2.0)])
    worker.run(BAD)
    clock.advance(1.999)
    assert ids(worker) == []
    clock.advance(0.001)
    claim = worker.claim_one()
    assert (claim.id, claim.run, claim.attempts) == ("a", 2, 1)


def test_a_held_job_is_neither_claimed_nor_awaited(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job("a"), new_job("b", delay_ms=1000)])
    backend.force("a", held=1, ready=0)
    backend.force("b", held=1)
    exchange = worker.exchange(limit=5)
    assert (exchange.claims, exchange.next_due_ms) == ([], None)
    assert store.get("a").reason == "held"


def test_a_worker_that_the_store_does_not_know_is_given_nothing(store: Store, worker: Hands) -> None:
    """It was declared lost while it slept. A job that it claimed now would never be rescued."""
    store.enqueue([new_job("a")])
    store.claims.rescue(worker.name, max_crashes=3)
    assert worker.claim(1) == []
    assert store.get("a").state is State.PENDING


# ── in which order ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_equal_priorities_go_first_in_first_out(store: Store, worker: Hands) -> None:
    given = [f"j{number}" for number in (3, 1, 2, 5, 4)]
    store.enqueue([new_job(job_id) for job_id in given[:3]])
    store.enqueue([new_job(job_id) for job_id in given[3:]])
    assert ids(worker) == given


def test_a_higher_priority_goes_first(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(f"p{priority}", priority=priority) for priority in (0, -5, 1_000_000, 3, -1_000_000)])
    assert ids(worker) == ["p1000000", "p3", "p0", "p-5", "p-1000000"]


def test_a_delayed_job_keeps_its_place_by_enqueue(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("early", delay_ms=1000), new_job("late")])
    clock.advance(1)
    assert ids(worker) == ["early", "late"]


def test_a_retried_job_keeps_its_place_by_enqueue(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("old"), new_job("new")])
    worker.run(BAD)
    clock.advance(60)
    assert ids(worker) == ["old", "new"]


def test_all_queues_form_one_line_when_none_is_named(store: Store, worker: Hands) -> None:
    store.enqueue(
        [
            new_job("b1", queue="b"),
            new_job("a1", queue="a"),
            new_job("c1", queue="c", priority=1),
            new_job("b2", queue="b"),
        ]
    )
    assert ids(worker, limit=3) == ["c1", "b1", "a1"]
    assert ids(worker) == ["b2"]


def test_of_named_queues_the_first_is_served_first(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("b1", queue="b", priority=9), new_job("a1", queue="a"), new_job("c1", queue="c")])
    store.enqueue([new_job("a2", queue="a", priority=1)])
    assert ids(hire(queues=("a", "b"))) == ["a2", "a1", "b1"]
    assert store.get("c1").state is State.PENDING


def test_a_queue_named_twice_gives_each_job_once(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a", queue="q"), new_job("b", queue="q")])
    assert ids(hire(queues=("q", "q"))) == ["a", "b"]


def test_a_worker_of_no_queue_claims_nothing(store: Store, hire: Hire) -> None:
    store.enqueue([new_job()])
    assert ids(hire(queues=())) == []


# ── ageing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_ageing_the_low_wait_for_ever(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("low")])
    clock.advance(10**8)
    store.enqueue([new_job("high", priority=1)])
    assert store.get("low").effective_priority == 0
    assert ids(worker) == ["high", "low"]


def test_with_ageing_by_time_each_step_is_worth_one_point(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.set_config({"ageing": "10s"})
    store.enqueue([new_job("low")])
    clock.advance(25)
    assert store.get("low").effective_priority == 2
    store.enqueue([new_job("three", priority=3), new_job("two", priority=2)])
    assert ids(worker) == ["three", "low", "two"]


def test_ageing_by_time_begins_when_the_job_could_first_have_run(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.set_config({"ageing": "10s"})
    store.enqueue([new_job("delayed", delay_ms=20_000), new_job("prompt")])
    clock.advance(29)
    assert [store.get(job_id).effective_priority for job_id in ("delayed", "prompt")] == [0, 2]
    assert ids(worker) == ["prompt", "delayed"]


def test_with_ageing_by_enqueues_every_later_one_is_worth_a_point(store: Store, worker: Hands) -> None:
    store.set_config({"ageing": "enqueues"})
    store.enqueue([new_job("low")])
    store.enqueue([new_job("x"), new_job("y")])  # a batch of n counts n
    assert store.get("low").effective_priority == 2
    store.enqueue([new_job("four", priority=4), new_job("three", priority=3)])
    assert store.get("low").effective_priority == 4
    assert ids(worker) == ["four", "low", "x", "three", "y"]


def test_time_spent_running_earns_no_points_by_enqueues(store: Store, worker: Hands, backend: Backend) -> None:
    store.set_config({"ageing": "enqueues"})
    store.enqueue([new_job("a")])
    store.enqueue([new_job("x", queue="q")])
    claim = worker.claim_one()
    store.enqueue([new_job(queue="q") for _ in range(5)])
    worker.end(claim, Released(None))
    store.enqueue([new_job(queue="q")])
    assert store.get("a").effective_priority == 2
    assert next(row["missed"] for row in backend.rows() if row["id"] == "a") == 5


@pytest.mark.parametrize("last_run", ["dead", "cancelled"])
def test_time_spent_in_a_last_run_earns_no_points_either(store: Store, worker: Hands, last_run: str) -> None:
    store.set_config({"ageing": "enqueues"})
    store.enqueue([new_job("a", max_retries=1)])
    claim = worker.claim_one()
    store.enqueue([new_job(queue="q") for _ in range(5)])
    if last_run == "cancelled":
        store.cancel(["a"])
    worker.end(claim, BAD)
    assert store.get("a").state == last_run
    store.retry(["a"], states=frozenset(State))
    assert store.get("a").effective_priority == 0


def test_a_run_under_another_ageing_is_missed_too(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    store.enqueue([new_job(queue="q") for _ in range(5)])
    store.set_config({"ageing": "enqueues"})
    store.enqueue([new_job(queue="q") for _ in range(5)])
    worker.end(claim, Released(None))
    assert store.get("a").effective_priority == 0


def test_the_effective_priority_stays_as_it_was_at_the_claim(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.set_config({"ageing": "1s"})
    store.enqueue([new_job("a", priority=5)])
    clock.advance(3)
    claim = worker.claim_one()
    clock.advance(100)
    assert store.get("a").effective_priority == 8
    worker.end(claim)
    clock.advance(100)
    assert store.get("a").effective_priority == 8


def test_a_job_that_waits_again_grows_on(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.set_config({"ageing": "1s"})
    store.enqueue([new_job("a")])
    worker.run(BAD)
    clock.advance(7)
    assert store.get("a").effective_priority == 7
