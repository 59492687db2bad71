"""ahead, is_cancel_requested and examine: what a store says about the line and about itself."""

from __future__ import annotations

import pytest

from queuectl import errors
from queuectl.jobs.outcome import Exited, NotStarted
from queuectl.jobs.states import State
from queuectl.store.reads import ERROR_SHOWN
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, Hands

# ── ahead ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_is_ahead_goes_by_priority_and_then_by_the_order_of_enqueue(store: Store) -> None:
    store.enqueue([new_job("a"), new_job("b"), new_job("c", priority=5), new_job("d", priority=-5)])
    assert [store.ahead(job_id, queues=None, most=10) for job_id in "abcd"] == [1, 2, 0, 3]


def test_a_worker_of_all_queues_has_one_line(store: Store) -> None:
    store.enqueue([new_job("a", queue="x", priority=1), new_job("b", queue="y"), new_job("c", queue="z", priority=9)])
    assert store.ahead("b", queues=None, most=10) == 2


def test_a_worker_of_named_queues_takes_all_of_those_before_and_none_of_those_behind(store: Store) -> None:
    first = [new_job(queue="first", priority=-9), new_job(queue="first", priority=-9)]
    store.enqueue([*first, new_job("a", queue="own"), new_job("b", queue="own"), new_job(queue="last", priority=9)])
    assert store.ahead("b", queues=("first", "own", "last"), most=10) == 3
    assert store.ahead("b", queues=("own", "first", "last"), most=10) == 1


def test_who_is_ahead_is_counted_up_to_a_limit(store: Store) -> None:
    store.enqueue([new_job(f"j{number}") for number in range(9)])
    for queues in (None, ("default",), ("other", "default")):
        assert store.ahead("j8", queues=queues, most=5) == 5
        assert store.ahead("j4", queues=queues, most=5) == 4


def test_only_what_could_be_claimed_now_is_ahead(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job(name, priority=9) for name in ("runs", "fails", "held", "off")])
    worker.claim(1)
    worker.run(BAD)
    backend.force("held", held=1, ready=0)
    store.cancel(["off"])
    store.enqueue([new_job("later", priority=9, delay_ms=1000), new_job("me")])
    assert store.ahead("me", queues=None, most=10) == 0


@pytest.mark.parametrize("queues", [None, ("q",)])
def test_one_that_has_come_due_is_ahead_before_anybody_lets_it_in(
    store: Store, clock: FakeClock, queues: tuple[str, ...] | None
) -> None:
    store.enqueue([new_job("late", queue="q", priority=1, delay_ms=1000), new_job("low", queue="q", priority=-1)])
    store.enqueue([new_job("me", queue="q"), new_job("behind", queue="q", priority=-1, delay_ms=1000)])
    assert store.ahead("me", queues=queues, most=10) == 0
    clock.advance(2)
    assert store.ahead("me", queues=queues, most=10) == 1
    assert store.ahead("late", queues=queues, most=10) == 0


def test_the_position_of_a_missing_job_is_an_error(store: Store) -> None:
    with pytest.raises(errors.JobNotFound):
        store.ahead("missing", queues=None, most=10)
    with pytest.raises(errors.JobNotFound):
        store.is_cancel_requested("missing")


# ── is_cancel_requested ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_running_job_is_cancelled_from_its_cancel_on(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.claim_one()
    assert not store.is_cancel_requested("a")
    store.cancel(["a"])
    assert store.is_cancel_requested("a")


# ── served ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_that_is_stopping_serves_no_queue(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a")])
    hire("w1")
    assert store.get("a").reason == "waits for a free slot"
    store.claims.heartbeat("w1", slots=4, stopping=True)
    assert store.get("a").reason == "no live worker serves its queue"


# ── examine ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_sound_store_has_no_problems_and_says_what_it_is(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(tags=("t",)), new_job()])
    worker.run(BAD)
    health = store.examine()
    assert health.problems == ()
    assert health.schema == health.known
    assert health.engine.split()[0] in ("SQLite", "PostgreSQL")


# ── what jobs are dead of ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_dead_are_told_apart_by_their_error_the_most_frequent_first(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    assert store.dead_by_error(limit=5) == []
    for name, queue, outcome in (
        ("a", "q", Exited(1)),
        ("b", "q", Exited(1)),
        ("c", "r", Exited(7)),
        ("d", "q", Exited(7)),
        ("e", "q", Exited(7)),
        ("f", "q", Exited(0)),
        ("g", "q", NotStarted("x" * 500)),
    ):
        store.enqueue([new_job(name, queue=queue, max_retries=1)])
        clock.advance(1)
        worker.run(outcome)
    end = clock.now_ms()
    found = store.dead_by_error(limit=5)
    errors_seen = [store.get(name).error for name in ("e", "b")]
    assert [deaths[1:] for deaths in found] == [
        (None, 3, "e", end - 2000),
        ("q", 2, "b", end - 5000),
        ("q", 1, "g", end),
    ]
    assert [deaths.error for deaths in found[:2]] == errors_seen
    assert len(found[2].error) == ERROR_SHOWN
    assert store.dead_by_error(limit=1) == found[:1]
    # Of many, those that died last: g, e and d.
    assert [deaths[1:4] for deaths in store.dead_by_error(limit=5, most=3)] == [("q", 2, "e"), ("q", 1, "g")]
    store.retry(["c", "d", "e"], states=frozenset(State))
    assert [deaths.jobs for deaths in store.dead_by_error(limit=5)] == [2, 1]
