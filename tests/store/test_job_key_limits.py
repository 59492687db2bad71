"""A job that says itself how many of its key run at a time: those of an array. Its queue need say nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from queuectl.clock import SystemClock
from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.edit import HOLD
from queuectl.jobs.states import State
from queuectl.store.admission import MAX_KEY_BLOCKED
from queuectl.store.store import Store
from queuectl.store.types import End
from tests.clock import FakeClock
from tests.factories import new_job, settlement
from tests.store.backends import Backend
from tests.store.crowd import most_of_a_key, work_at_once
from tests.store.hands import BAD, Hands

Hire = Callable[..., Hands]


def ids(claims: list[Any]) -> list[str]:
    return [claim.id for claim in claims]


def array(store: Store, name: str = "a", *, jobs: int = 4, places: int = 2, **fields: Any) -> None:
    store.enqueue([new_job(f"{name}{n}", key=f"array:{name}", places=places, **fields) for n in range(jobs)])


@pytest.mark.parametrize("queues", [None, ("default", "b")])
def test_no_more_of_an_array_run_than_it_says_over_all_workers(
    store: Store, hire: Hire, queues: tuple[str, ...] | None
) -> None:
    array(store)
    array(store, "b", places=1)
    store.enqueue([new_job("plain")])
    one, two = hire("w1", queues=queues), hire("w2", queues=queues)
    (held,) = one.claim(1)
    assert sorted(ids(two.claim(9))) == ["a1", "b0", "plain"]
    assert one.claim(9) == []
    one.end(held)
    assert ids(two.claim(9)) == ["a2"]


def test_jobs_that_come_one_by_one_are_limited_as_well(store: Store, worker: Hands) -> None:
    for n in range(4):
        store.enqueue([new_job(f"a{n}", key="k", places=2)])
    assert ids(worker.claim(9)) == ["a0", "a1"]
    assert worker.claim(9) == []


@pytest.mark.parametrize("per_key, begun", [(1, 3), (9, 3)])
def test_what_a_job_says_itself_goes_before_what_its_queue_says(
    store: Store, worker: Hands, backend: Backend, per_key: int, begun: int
) -> None:
    array(store, places=3)
    store.queues.set_rules("default", {"per_key": per_key})
    assert len(worker.claim(9)) == begun
    store.queues.set_rules("default", {"per_key": None})
    assert worker.claim(9) == []
    assert [row["id"] for row in backend.rows() if row["key_blocked"]] == ["a3"]


def test_other_limits_hold_beside_it(store: Store, worker: Hands) -> None:
    array(store)
    store.queues.set_rules("default", {"concurrency": 1})
    assert ids(worker.claim(9)) == ["a0"]


def test_a_place_is_free_in_the_exchange_in_which_its_job_ends(store: Store, worker: Hands) -> None:
    array(store, places=1)
    claim = worker.claim_one()
    assert worker.claim(1) == []
    end = End(claim, settlement(claim), 1, 0, 0, 0, 0)
    assert ids(store.claims.exchange("w1", ends=[end], claim=worker.request(4)).claims) == ["a1"]


def test_a_retry_has_the_limit_still(store: Store, worker: Hands, clock: FakeClock) -> None:
    array(store, jobs=3, places=1, max_retries=3)
    worker.run(BAD)
    clock.advance(10)
    assert len(worker.claim(9)) == 1
    assert store.get("a0").places == 1


def test_a_place_of_a_worker_that_is_gone_frees_itself_with_the_rescue(store: Store, hire: Hire) -> None:
    array(store, jobs=2, places=1)
    lost, successor = hire("w1"), hire("w2")
    lost.claim_one()
    assert successor.claim(1) == []
    store.claims.rescue("w1", max_crashes=3)
    assert len(successor.claim(9)) == 1


def test_who_leaves_the_line_makes_room(store: Store, worker: Hands) -> None:
    array(store, jobs=5, places=1)
    store.cancel(["a0"])
    store.edit(["a1"], HOLD)
    assert ids(worker.claim(9)) == ["a2"]


def test_an_array_goes_on_in_another_queue(store: Store, worker: Hands) -> None:
    array(store, jobs=3, places=1, queue="a")
    store.move("a", "b")
    assert ids(worker.claim(9)) == ["a0"]
    assert worker.claim(9) == []
    assert store.get("a1").reason == "the array has its 1 of 1 running: a0"


def test_an_array_that_comes_after_another_job_is_limited_when_it_is_free(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("first")])
    array(store, depends_on=(Dependency("first"),))
    claim = worker.claim_one()
    end = End(claim, settlement(claim), 1, 0, 0, 0, 0)
    begun = ids(store.claims.exchange("w1", ends=[end], claim=worker.request(9)).claims)
    while store.dependencies.decide():
        pass
    assert sorted(begun + ids(worker.claim(9))) == ["a0", "a1"]


def test_when_all_have_ended_nothing_is_limited_any_more(store: Store, worker: Hands) -> None:
    array(store, jobs=3, places=1)
    for _ in range(3):
        worker.end(worker.claim_one())
    assert {store.get(f"a{n}").state for n in range(3)} == {State.COMPLETED}
    store.enqueue([new_job(f"b{n}", key="k") for n in range(3)])
    assert len(worker.claim(9)) == 3


def test_more_than_one_claim_looks_through_do_not_keep_others_back(store: Store, worker: Hands) -> None:
    for portion in range(2):
        array(store, f"{portion}x", jobs=MAX_KEY_BLOCKED, places=1, priority=9)
    store.enqueue([new_job("other")])
    assert sorted(ids(worker.claim(9))) == ["0x0", "1x0", "other"]


def test_concurrent_workers_never_exceed_it_and_no_job_is_forgotten(store: Store, backend: Backend) -> None:
    array(store, jobs=60)
    assert max(work_at_once(backend, SystemClock(), most_of_a_key)) == 2
    assert store.is_drained(None), "a job was forgotten"
