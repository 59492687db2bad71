"""Limits of concurrency keys: see `admit` and `set_aside` of each store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from queuectl.clock import SystemClock
from queuectl.jobs.edit import HOLD, JobEdit
from queuectl.jobs.queue_limits import QueueSettings, Rate
from queuectl.jobs.states import State
from queuectl.store.admission import MAX_KEY_BLOCKED
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.crowd import most_of_a_key, work_at_once
from tests.store.hands import BAD, Hands
from tests.store.wakeups import drain, wakes

Hire = Callable[..., Hands]


def ids(claims: list[Any]) -> list[str]:
    return [claim.id for claim in claims]


def fill(store: Store, *keys: str | None, each: int = 3, **fields: Any) -> None:
    """One after the other, as users do."""
    for n in range(each):
        for key in keys:
            store.enqueue([new_job(f"{key}{n}", key=key, **fields)])


def key_blocked(backend: Backend) -> list[str]:
    return sorted(row["id"] for row in backend.rows() if row["key_blocked"])


# ── never more ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("queues", [None, ("default", "b")])
def test_no_more_of_a_key_run_than_its_limit_over_all_workers(
    store: Store, hire: Hire, queues: tuple[str, ...] | None
) -> None:
    fill(store, "a", "b", None)
    store.queues.set_rules("default", {"per_key": 2})
    one, two = hire("w1", queues=queues), hire("w2", queues=queues)
    (held,) = one.claim(1)
    assert sorted(ids(two.claim(9))) == ["None0", "None1", "None2", "a1", "b0", "b1"]
    assert one.claim(9) == []
    one.end(held)
    assert ids(two.claim(9)) == ["a2"]


def test_a_key_is_of_its_queue(store: Store, worker: Hands) -> None:
    store.queues.set_rules("a", {"per_key": 1})
    store.enqueue([new_job(f"{queue}{n}", queue=queue, key="k") for n in range(2) for queue in ("a", "b")])
    assert sorted(ids(worker.claim(9))) == ["a0", "b0", "b1"]


def test_without_a_limit_a_key_means_nothing(store: Store, worker: Hands) -> None:
    fill(store, "a")
    assert len(worker.claim(9)) == 3


def test_a_limit_by_key_holds_beside_the_others(store: Store, worker: Hands) -> None:
    fill(store, "a", "b", "c")
    store.queues.set_rules("default", {"per_key": 1, "concurrency": 2, "rate": Rate(3, 10_000)})
    first, second = worker.claim(9)
    assert [first.id, second.id] == ["a0", "b0"]
    worker.start(first)
    worker.start(second)
    worker.end(first)
    assert ids(worker.claim(9)) == ["c0"], "the rate lets one more start, and it is the next in the line with room"


def test_shares_do_not_go_beyond_a_limit_by_key(store: Store, hire: Hire) -> None:
    store.queues.set_rules("a", {"per_key": 1})
    store.enqueue([new_job(f"{queue}{n}", queue=queue, key="k") for n in range(3) for queue in ("a", "b")])
    worker = hire(queues=("a", "b"))
    request = worker.request(4)._replace(shares=(3, 1))
    assert sorted(ids(store.claims.exchange("w1", claim=request).claims)) == ["a0", "b0", "b1", "b2"]


# ── a place is freed ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_place_is_free_as_soon_as_its_job_has_ended_in_the_same_exchange(store: Store, worker: Hands) -> None:
    from queuectl.store.types import End
    from tests.factories import settlement

    fill(store, "a", each=2)
    store.queues.set_rules("default", {"per_key": 1})
    claim = worker.claim_one()
    assert worker.claim(1) == []
    end = End(claim, settlement(claim), 1, 0, 0, 0, 0)
    assert ids(store.claims.exchange("w1", ends=[end], claim=worker.request(4)).claims) == ["a1"]


def test_a_limit_held_by_a_worker_that_is_gone_frees_itself_with_the_rescue(
    store: Store, hire: Hire, backend: Backend
) -> None:
    fill(store, "a", each=2)
    store.queues.set_rules("default", {"per_key": 1})
    lost, successor = hire("w1"), hire("w2")
    lost.claim_one()
    assert successor.claim(1) == []
    store.claims.rescue("w1", max_crashes=1)
    assert store.get("a0").state is State.DEAD
    assert (ids(successor.claim(2)), key_blocked(backend)) == (["a1"], [])


def test_a_job_that_waits_for_its_retry_holds_no_place(store: Store, worker: Hands, clock: FakeClock) -> None:
    fill(store, "a", each=3)
    store.queues.set_rules("default", {"per_key": 1})
    worker.run(BAD)
    held = worker.claim_one()
    assert held.id == "a1"
    clock.advance(10)
    assert worker.claim(9) == [], "its time has come, and there is no place"
    worker.end(held)
    assert ids(worker.claim(9)) == ["a0"], "it keeps its place in the line"


def test_who_else_has_a_slot_is_woken_when_a_place_becomes_free(store: Store, hire: Hire) -> None:
    fill(store, "a", each=2)
    store.queues.set_rules("default", {"per_key": 1})
    one, two = hire("w1"), hire("w2")
    held = one.claim_one()
    two.claim(1)
    drain(two.wakeup)
    one.end(held)
    assert wakes(two.wakeup)


# ── in order, and no job is forgotten ───────────────────────────────────────────────────────────────────────────────


def test_who_goes_first_of_a_key_is_who_goes_first_in_the_line(store: Store, worker: Hands) -> None:
    store.queues.set_rules("default", {"per_key": 1})
    fill(store, "a", each=3)
    held = worker.claim_one()
    worker.claim(9)
    store.enqueue([new_job("late", key="a", priority=9)])
    worker.end(held)
    assert [worker.run().id for _ in range(3)] == ["late", "a1", "a2"]


def test_those_that_come_at_once_stand_aside_from_the_beginning(store: Store, worker: Hands, backend: Backend) -> None:
    store.queues.set_rules("default", {"per_key": 2})
    store.enqueue([new_job(f"a{n}", key="a", priority=n) for n in range(9)] + [new_job("b", key="b")])
    assert key_blocked(backend) == ["a2", "a3", "a4", "a5", "a6"], "the first two stay until a claim has met them"
    assert ids(worker.claim(9)) == ["a8", "a7", "b"]
    assert key_blocked(backend) == [f"a{n}" for n in range(7)]


def test_those_that_come_at_once_and_later_are_let_in_and_stay_in_order(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.queues.set_rules("default", {"per_key": 1})
    store.enqueue([new_job(f"a{n}", key="a", delay_ms=1000) for n in range(3)])
    assert worker.claim(9) == []
    clock.advance(1)
    assert [worker.run().id for _ in range(3)] == ["a0", "a1", "a2"]


@pytest.mark.parametrize(
    "leave",
    [
        lambda store: store.cancel(["a1"]),
        lambda store: store.edit(["a1"], HOLD),
        lambda store: store.edit(["a1"], JobEdit(queue="elsewhere")),
        lambda store: store.edit(["a1"], JobEdit(delay_ms=3_600_000)),
        lambda store: store.move("default", "elsewhere", ids=["a1"]),
    ],
    ids=["cancelled", "held", "edited to another queue", "put off", "moved"],
)
def test_who_leaves_the_line_makes_room_for_the_next_of_its_key(
    store: Store, worker: Hands, backend: Backend, leave: Callable[[Store], object]
) -> None:
    store.queues.set_rules("default", {"per_key": 1})
    fill(store, "a", each=4)
    held = worker.claim_one()
    worker.claim(9)
    assert key_blocked(backend) == ["a1", "a2", "a3"]
    worker.end(held)
    assert key_blocked(backend) == ["a2", "a3"], "one has been let back"
    leave(store)
    assert key_blocked(backend) == ["a3"]
    assert "a2" in ids(worker.claim(9))


def test_a_job_that_is_replaced_makes_room_for_the_next_of_its_key(store: Store, worker: Hands) -> None:
    store.queues.set_rules("default", {"per_key": 1})
    store.enqueue([new_job("first", key="a", unique_key="u"), new_job("second", key="a"), new_job("third", key="a")])
    store.enqueue([new_job("new", unique_key="u", if_exists="replace")])
    assert sorted(ids(worker.claim(9))) == ["new", "second"]


def test_a_job_that_was_set_aside_can_be_cancelled_and_retried(store: Store, worker: Hands, backend: Backend) -> None:
    store.queues.set_rules("default", {"per_key": 1})
    fill(store, "a", each=2)
    held = worker.claim_one()
    worker.claim(9)
    store.cancel(["a1"])
    assert key_blocked(backend) == []
    store.retry(["a1"], states=frozenset({State.CANCELLED}))
    assert worker.claim(9) == []
    worker.end(held)
    assert ids(worker.claim(9)) == ["a1"]


def test_a_store_with_jobs_aside_is_not_drained_and_they_count_as_waiting(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.queues.set_rules("default", {"per_key": 1})
    fill(store, "a", each=2)
    worker.claim(9)
    worker.claim(9)
    clock.advance(5)
    assert store.oldest_waiting_ms() == {"default": 5000}
    assert not store.is_drained(None)
    assert not store.is_drained(("default",))


def test_a_new_order_of_the_line_holds_for_those_aside_too(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.queues.set_rules("default", {"per_key": 1})
    store.enqueue([new_job("old", key="a")])
    clock.advance(3600)
    store.enqueue([new_job("high", key="a", priority=5), new_job("other", key="a")])
    store.set_config({"ageing": "1m"})
    assert [worker.run().id for _ in range(3)] == ["old", "high", "other"]


def test_more_than_one_claim_sets_aside_are_passed_in_some_claims(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.queues.set_rules("default", {"per_key": 1})
    for part in ([new_job("a0", key="a")], [new_job(key="a") for _ in range(MAX_KEY_BLOCKED + 50)]):
        store.enqueue([job._replace(delay_ms=1000) for job in part])
    clock.advance(2)
    worker.exchange()  # lets the first thousand in, and comes again for the rest
    worker.exchange()
    fill(store, "b", each=1)
    assert worker.claim_one().id == "a0"
    first = worker.exchange(limit=2)
    assert (first.claims, first.next_due_ms) == ([], 0), "there is more, and it knows"
    assert ids(worker.claim(2)) == ["b0"]


# ── changing the limit ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_limit_is_set_raised_lowered_and_taken_away_while_jobs_wait_and_run(
    store: Store, worker: Hands, backend: Backend
) -> None:
    fill(store, "a", each=8)
    held = worker.claim(3)
    store.queues.set_rules("default", {"per_key": 2})
    assert key_blocked(backend) == ["a3", "a4", "a5", "a6", "a7"]
    worker.end(held[0])
    assert worker.claim(9) == [], "what runs goes on, and there are two"
    store.queues.set_rules("default", {"per_key": 3})
    assert ids(worker.claim(9)) == ["a3"]
    store.queues.set_rules("default", {"per_key": 1})
    for claim in held[1:]:
        worker.end(claim)
        assert worker.claim(9) == []
    assert store.queues.set_rules("default", {"per_key": None}) == QueueSettings()
    assert key_blocked(backend) == []
    assert ids(worker.claim(9)) == ["a4", "a5", "a6", "a7"]


def test_a_limit_by_key_is_a_rule_like_the_others(store: Store, other: Store) -> None:
    assert store.queues.set_rules("default", {"per_key": 2}) == QueueSettings(per_key=2)
    assert other.queues.rules() == {"default": QueueSettings(per_key=2)}
    assert other.queues.loads()["default"].per_key == 2
    assert store.queue_defaults() == {}


# ── what is shown ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_says_who_has_the_places_of_its_key(store: Store, worker: Hands) -> None:
    fill(store, "a", "b", each=3)
    store.queues.set_rules("default", {"per_key": 2})
    worker.claim(3)
    assert store.get("a2").reason == "the key a has its 2 of 2 running: a0, a1"
    assert store.get("b2").reason == "waits for a free slot"
    assert store.get("a2").key == "a"
    assert {key: sorted(running) for key, running in store.queues.running_keys().items()} == {
        ("default", "a"): ["a0", "a1"],
        ("default", "b"): ["b0"],
    }


# ── at once ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_concurrent_workers_never_exceed_a_key_and_forget_no_job(backend: Backend, store: Store) -> None:
    store.queues.set_rules("default", {"per_key": 2})
    store.enqueue([new_job(key=f"k{n % 3}") for n in range(60)])

    def feed(mine: Store, turn: int) -> None:
        if turn % 5 == 0 and turn < 50:
            mine.enqueue([new_job(key=f"k{turn % 3}"), new_job(key=f"k{turn % 3}")])

    seen = work_at_once(backend, SystemClock(), most_of_a_key, meanwhile=feed)  # they wait for each other
    assert max(seen) == 2
    assert store.is_drained(None), "a job was forgotten"
