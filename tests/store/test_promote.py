"""exchange, the promoting part: letting in what came due, and knowing when the next one does."""

from __future__ import annotations

from queuectl.jobs.states import State
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import BAD, Hands


def test_the_next_due_time_is_told_to_the_millisecond(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job(delay_ms=5000), new_job(delay_ms=1234), new_job(delay_ms=9000)])
    assert worker.exchange().next_due_ms == 1234
    clock.advance(1)
    assert worker.exchange().next_due_ms == 234
    clock.advance(0.234)
    assert worker.exchange().next_due_ms == 3766


def test_a_waiting_retry_counts_as_due_next(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", backoff_base=7.0)])
    worker.run(BAD)
    assert worker.exchange().next_due_ms == 7000


def test_jobs_that_wait_for_a_slot_only_are_not_due_next(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(), new_job()])
    assert worker.exchange(limit=1).next_due_ms is None


def test_the_next_due_time_looks_at_every_queue(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(queue="b", delay_ms=2000), new_job(queue="a", delay_ms=3000)])
    assert worker.exchange().next_due_ms == 2000


def test_a_cancelled_job_is_not_waited_for(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", delay_ms=1000)])
    store.cancel(["a"])
    assert worker.exchange().next_due_ms is None


def test_what_came_due_is_claimed_in_the_same_exchange(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", delay_ms=1000)])
    clock.advance(1)
    exchange = worker.exchange(limit=1)
    assert [claim.id for claim in exchange.claims] == ["a"]
    assert exchange.next_due_ms is None


def test_the_wait_of_a_delayed_job_counts_from_its_due_time(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", delay_ms=60_000)])
    clock.advance(60.25)
    worker.claim_one()
    assert store.get("a").wait_ms == 250


def test_letting_a_job_in_does_not_change_what_is_shown_of_it(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", delay_ms=1000)])
    before = store.get("a")
    clock.advance(1)
    worker.exchange()
    after = store.get("a")
    assert (after.state, after.run_at, after.updated_at) == (before.state, before.run_at, before.updated_at)
    assert before.reason is not None
    assert before.reason.startswith("not due until")
    assert after.reason == "waits for a free slot"


def test_a_flood_of_due_jobs_is_let_in_step_by_step_and_none_is_forgotten(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.enqueue([new_job(delay_ms=1000) for _ in range(2500)])
    clock.advance(1)
    claimed = 0
    for _ in range(10):
        exchange = worker.exchange(limit=1000)
        claimed += len(exchange.claims)
        if not exchange.more:
            break
        assert exchange.next_due_ms in (0, None)
    assert claimed == 2500
    assert store.tally()["default"][State.PROCESSING] == 2500


def test_the_first_of_many_that_come_due_at_once_is_claimed_first(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.enqueue([new_job(delay_ms=1000 + index) for index in range(2500)])
    store.enqueue([new_job("urgent", delay_ms=9000, priority=1)])
    clock.advance(10)
    for _ in range(10):  # promoting many may take several calls; none is claimed before all are promoted
        exchange = worker.exchange(limit=1)
        assert exchange.more
        if exchange.claims:
            break
    assert [claim.id for claim in exchange.claims] == ["urgent"]
