from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from queuectl.clock import SystemClock
from queuectl.jobs.queue_limits import QueueLoad, QueueSettings, Rate
from queuectl.jobs.spec import NO_URLS
from queuectl.jobs.states import State
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.crowd import work_at_once
from tests.store.hands import BAD, Hands
from tests.store.wakeups import drain, wakes

Hire = Callable[..., Hands]

TWO_IN_TEN_SECONDS = Rate(2, 10_000)


def ids(claims: list[Any]) -> list[str]:
    return [claim.id for claim in claims]


def fill(store: Store, *queues: str, each: int = 3, **fields: Any) -> None:
    store.enqueue([new_job(f"{queue}{n}", queue=queue, **fields) for n in range(each) for queue in queues])


# ── what is said ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_queue_has_no_rules_until_some_are_said(store: Store) -> None:
    fill(store, "a")
    assert (store.queues.rules(), store.queues.loads(), store.queues.rates()) == ({}, {}, {})


def test_rules_that_are_not_said_stay_as_they_were(store: Store, other: Store) -> None:
    store.queues.set_rules("a", {"concurrency": 2, "priority": -5})
    told = other.queues.set_rules("a", {"rate": TWO_IN_TEN_SECONDS, "timeout_ms": 0})
    assert told == QueueSettings(concurrency=2, rate=TWO_IN_TEN_SECONDS, priority=-5, timeout_ms=0)
    assert store.queues.rules() == {"a": told}
    assert store.queue_defaults() == {"a": (-5, None, 0, NO_URLS, None)}


def test_a_queue_about_which_nothing_is_said_any_more_is_forgotten(store: Store, backend: Backend) -> None:
    store.queues.set_rules("a", {"paused": True, "rate": TWO_IN_TEN_SECONDS})
    store.queues.set_rules("a", {"paused": False, "rate": None})
    assert store.queues.rules() == {}
    assert backend.rows("queues") == backend.rows("starts") == []


# ── paused ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("queues", [None, ("a", "b"), ("b", "a")])
def test_nothing_of_a_paused_queue_is_claimed(store: Store, hire: Hire, queues: tuple[str, ...] | None) -> None:
    fill(store, "a", "b", each=2)
    store.queues.set_rules("a", {"paused": True})
    hands = hire(queues=queues)
    assert ids(hands.claim(9)) == ["b0", "b1"]
    assert hands.claim(9) == []
    store.queues.set_rules("a", {"paused": False})
    assert ids(hands.claim(9)) == ["a0", "a1"]


def test_what_runs_in_a_queue_that_is_paused_goes_on_and_may_fail_and_wait(store: Store, worker: Hands) -> None:
    fill(store, "a", each=2)
    first, second = worker.claim(2)
    store.queues.set_rules("a", {"paused": True})
    assert worker.end(first).settled
    worker.end(second, BAD)
    assert [store.get(job).state for job in ("a0", "a1")] == [State.COMPLETED, State.FAILED]


def test_a_paused_queue_does_not_hold_a_drain(store: Store, worker: Hands) -> None:
    fill(store, "a", "b", each=1)
    store.queues.set_rules("a", {"paused": True})
    assert not store.is_drained(None)
    assert store.is_drained(("a",))
    worker.run()
    assert store.is_drained(None)
    store.queues.set_rules("a", {"paused": False})
    assert not store.is_drained(None)


# ── so many at a time ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("queues", [None, ("a", "b")])
def test_no_more_of_a_queue_run_than_its_limit_over_all_workers(
    store: Store, hire: Hire, queues: tuple[str, ...] | None
) -> None:
    fill(store, "a", "b", each=3)
    store.queues.set_rules("a", {"concurrency": 2})
    one, two = hire("w1", queues=queues), hire("w2", queues=queues)
    (held,) = one.claim(1)
    assert held.id == "a0"
    assert sorted(ids(two.claim(9))) == ["a1", "b0", "b1", "b2"]
    assert one.claim(9) == []
    one.end(held)
    assert ids(two.claim(9)) == ["a2"]


def test_a_place_is_free_as_soon_as_its_job_has_ended_in_the_same_exchange(store: Store, worker: Hands) -> None:
    from queuectl.store.types import End
    from tests.factories import settlement

    fill(store, "a", each=2)
    store.queues.set_rules("a", {"concurrency": 1})
    claim = worker.claim_one()
    end = End(claim, settlement(claim), 1, 0, 0, 0, 0)
    assert ids(store.claims.exchange("w1", ends=[end], claim=worker.request(4)).claims) == ["a1"]


def test_a_limit_held_by_a_worker_that_is_gone_frees_itself_with_the_rescue(store: Store, hire: Hire) -> None:
    fill(store, "a", each=2)
    store.queues.set_rules("a", {"concurrency": 1})
    lost, successor = hire("w1"), hire("w2")
    lost.claim_one()
    assert successor.claim(1) == []
    store.claims.rescue("w1", max_crashes=3)
    assert ids(successor.claim(2)) == ["a0"]


def test_a_limit_that_is_lowered_lets_what_runs_go_on(store: Store, worker: Hands) -> None:
    fill(store, "a", each=4)
    held = worker.claim(3)
    store.queues.set_rules("a", {"concurrency": 1})
    for claim in held:
        assert worker.claim(1) == []
        worker.end(claim)
    assert ids(worker.claim(2)) == ["a3"]


def test_the_best_of_a_limited_queue_goes_first_and_in_one_order_with_the_others(store: Store, worker: Hands) -> None:
    store.enqueue(
        [
            new_job("a-low", queue="a"),
            new_job("b-mid", queue="b", priority=5),
            new_job("a-high", queue="a", priority=9),
            new_job("a-mid", queue="a", priority=6),
        ]
    )
    store.queues.set_rules("a", {"concurrency": 1})
    assert ids(worker.claim(4)) == ["a-high", "b-mid"]


def test_who_else_has_a_slot_is_woken_when_a_place_becomes_free(store: Store, hire: Hire) -> None:
    fill(store, "a", each=2)
    store.queues.set_rules("a", {"concurrency": 1})
    one, two = hire("w1"), hire("w2")
    held = one.claim_one()
    two.claim(1)
    drain(two.wakeup)
    one.end(held)
    assert wakes(two.wakeup)


@pytest.mark.parametrize("rules", [{"concurrency": 1}, {"rate": TWO_IN_TEN_SECONDS}, {"per_key": 1}])
def test_who_serves_a_limited_queue_without_jobs_is_not_told_to_look_again(
    store: Store, hire: Hire, rules: dict[str, Any]
) -> None:
    store.queues.set_rules("a", rules)
    assert hire(queues=("a",)).exchange(limit=1).next_due_ms is None


# ── so many in a time ───────────────────────────────────────────────────────────────────────────────────────────────


def test_no_window_holds_more_starts_than_the_rate(store: Store, worker: Hands, clock: FakeClock) -> None:
    fill(store, "a", each=9)
    store.queues.set_rules("a", {"rate": TWO_IN_TEN_SECONDS})
    starts: list[float] = []
    for _ in range(60):
        for claim in worker.claim(4):
            worker.start(claim)
            worker.end(claim)
            starts.append(clock.now_ms())
        clock.advance(1)
    assert len(starts) == 9
    assert all(later - first >= 10_000 for first, later in zip(starts, starts[2:], strict=False))
    assert starts[-1] - starts[0] == 40_000, "nor is anybody kept longer than the rate asks for"


def test_a_worker_is_told_when_the_rate_lets_the_next_one_start(store: Store, worker: Hands, clock: FakeClock) -> None:
    fill(store, "a", each=3)
    store.queues.set_rules("a", {"rate": TWO_IN_TEN_SECONDS})
    first = worker.claim_one()
    worker.start(first)
    clock.advance(4)
    second = worker.exchange(limit=3)
    assert (ids(second.claims), second.next_due_ms) == (["a1"], 6_000)
    clock.advance(6)
    assert ids(worker.claim(3)) == ["a2"]
    assert worker.exchange(limit=3).next_due_ms is None, "nothing waits for it"


def test_a_start_counts_from_when_its_process_was_there(store: Store, worker: Hands, clock: FakeClock) -> None:
    fill(store, "a", each=2)
    store.queues.set_rules("a", {"rate": Rate(1, 10_000)})
    claim = worker.claim_one()
    clock.advance(10)
    held_up = worker.exchange(limit=1)
    assert (held_up.claims, held_up.next_due_ms) == ([], 50), "it may start at any moment"
    worker.start(claim)
    assert worker.exchange(limit=1).next_due_ms == 10_000
    worker.end(claim, age=0)
    clock.advance(10)
    assert ids(worker.claim(1)) == ["a1"]


def test_retries_and_lost_runs_count_as_starts(store: Store, hire: Hire, clock: FakeClock) -> None:
    fill(store, "a", each=1)
    store.queues.set_rules("a", {"rate": Rate(2, 3_600_000)})
    worker = hire("w1")
    worker.run(BAD)
    clock.advance(10)
    worker.claim_one()
    store.claims.rescue("w1", max_crashes=9)
    assert hire("w2").claim(1) == []
    clock.advance(3600)
    assert ids(hire("w3").claim(1)) == ["a0"]


def test_a_clock_that_steps_back_does_not_close_a_queue(store: Store, worker: Hands, clock: FakeClock) -> None:
    fill(store, "a", each=2)
    store.queues.set_rules("a", {"rate": Rate(1, 10_000)})
    worker.run()
    clock.jump(-86_400)
    assert worker.exchange(limit=1).next_due_ms == 10_000
    clock.advance(10)
    assert ids(worker.claim(1)) == ["a1"]


def test_a_rate_that_is_changed_still_knows_the_latest_starts(store: Store, worker: Hands, clock: FakeClock) -> None:
    fill(store, "a", each=9)
    store.queues.set_rules("a", {"rate": Rate(3, 10_000)})
    assert len(worker.claim(9)) == 3
    store.queues.set_rules("a", {"rate": Rate(4, 10_000)})
    assert len(worker.claim(9)) == 1
    store.queues.set_rules("a", {"rate": Rate(1, 5_000)})
    assert worker.claim(9) == []
    clock.advance(5)
    store.queues.set_rules("a", {"rate": None})
    assert len(worker.claim(9)) == 5


def test_no_more_starts_are_kept_than_the_rate_counts(store: Store, worker: Hands, backend: Backend) -> None:
    fill(store, "a", each=9)
    store.queues.set_rules("a", {"rate": Rate(1000, 1)})
    worker.claim(5)
    store.queues.set_rules("a", {"rate": Rate(2, 1)})
    store.queues.set_rules("a", {"rate": Rate(6, 1)})
    worker.claim(1)
    store.queues.set_rules("a", {"rate": Rate(7, 1)})
    worker.claim(1)
    assert len(backend.rows("starts")) == 7


# ── what is shown ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_brake_says_what_its_limits_mean_now(store: Store, worker: Hands, clock: FakeClock) -> None:
    fill(store, "a", "b", "c", each=3)
    store.queues.set_rules("a", {"concurrency": 2, "priority": 1})
    store.queues.set_rules("b", {"rate": Rate(1, 10_000)})
    store.queues.set_rules("c", {"paused": True})
    for claim in worker.claim(9):
        worker.start(claim)
    assert store.queues.loads() == {
        "a": QueueLoad(False, 2, 2, None, None),
        "b": QueueLoad(False, None, 0, Rate(1, 10_000), clock.now_ms() + 10_000),
        "c": QueueLoad(True, None, 0, None, None),
    }
    assert store.queues.rates() == {"b": 1}
    clock.advance(10)
    assert store.queues.loads()["b"].opens_at is None
    assert store.queues.rates() == {"b": 0}


def test_a_job_says_which_limit_it_waits_for(store: Store, worker: Hands) -> None:
    fill(store, "a", "b", "c", each=2)
    store.queues.set_rules("a", {"concurrency": 1})
    store.queues.set_rules("b", {"rate": Rate(1, 10_000)})
    store.queues.set_rules("c", {"paused": True})
    for claim in worker.claim(9):
        worker.start(claim)
    assert store.get("a1").reason == "limit of the queue reached: 1 of 1 run"
    assert (store.get("b1").reason or "").startswith("rate of the queue reached: next at 20")
    assert store.get("c1").reason == "queue paused"


# ── weights ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_shares_go_first_and_what_they_leave_over_is_filled(store: Store, hire: Hire) -> None:
    fill(store, "a", "b", each=4)
    worker = hire(queues=("a", "b"))
    request = worker.request(3)._replace(shares=(2, 1))
    assert sorted(ids(store.claims.exchange("w1", claim=request).claims)) == ["a0", "a1", "b0"]
    request = worker.request(5)._replace(shares=(5, 0))
    assert sorted(ids(store.claims.exchange("w1", claim=request).claims)) == ["a2", "a3", "b1", "b2", "b3"]


# ── moving ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_waits_moves_and_keeps_its_place_and_what_runs_stays(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    fill(store, "a", each=4)
    store.enqueue([new_job("b-old", queue="b"), new_job("a-late", queue="a", delay_ms=5000)])
    worker.claim(1)
    worker.run(BAD)
    assert store.move("a", "b") == {
        "a1": State.FAILED,
        "a2": State.PENDING,
        "a3": State.PENDING,
        "a-late": State.PENDING,
    }
    assert store.get("a0").queue == "a"
    assert ids(worker.claim(9)) == ["a2", "a3", "b-old"]
    clock.advance(9)
    assert ids(worker.claim(9)) == ["a1", "a-late"]


def test_only_those_move_that_are_named_and_wait_there(store: Store, worker: Hands) -> None:
    fill(store, "a", "b", each=2)
    worker.claim(1)
    assert store.move("a", "c", ids=["a0", "a1", "b0", "missing"]) == {"a1": State.PENDING}


# ── at once ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_workers_never_both_use_the_last_place(backend: Backend, store: Store) -> None:
    fill(store, "a", "b", each=60)
    store.queues.set_rules("a", {"concurrency": 3})
    assert max(work_at_once(backend, SystemClock(), lambda mine: mine.queues.loads()["a"].running, turns=12)) <= 3
    assert store.tally()["a"][State.COMPLETED] > 0
