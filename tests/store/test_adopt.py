"""adopt: runs pass from a worker that is gone to one that looks after them."""

from __future__ import annotations

from queuectl.jobs.states import State
from queuectl.store.store import Store
from tests.factories import new_job
from tests.store.conftest import Hire


def test_an_adopted_run_is_settled_by_its_new_worker_with_its_token(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    dead, successor = hire("w1"), hire("w2")
    first, second = dead.claim(2)
    store.claims.fence("w1")
    assert store.claims.adopt("w1", [first.token], by="w2") == [first.token]
    assert (store.running("w1"), store.running("w2")) == ([second], [first])
    assert [end.claim for end, _ in successor.end(first).settled] == [first]
    job = store.get("a")
    assert (job.state, job.runs, job.crashes, job.worker) == (State.COMPLETED, 1, 0, "w2")
    assert [(run.number, run.worker) for run in store.history("a")] == [(1, "w2")]


def test_the_dead_one_changes_nothing_that_was_adopted(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a")])
    dead, _ = hire("w1"), hire("w2")
    claim = dead.claim_one()
    store.claims.fence("w1")
    store.claims.adopt("w1", [claim.token], by="w2")
    assert [end.claim for end in dead.end(claim).lost] == [claim]
    assert store.claims.rescue("w1", max_crashes=3) == []
    assert store.get("a").state is State.PROCESSING
    assert [worker.id for worker in store.workers()] == ["w2"]


def test_a_cancel_reaches_the_worker_that_adopted_the_run(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a")])
    dead, _ = hire("w1"), hire("w2")
    claim = dead.claim_one()
    store.claims.fence("w1")
    store.claims.adopt("w1", [claim.token], by="w2")
    assert store.cancel(["a"])["a"].worker == "w2"
    assert set(store.claims.orders("w2").cancels) == {claim.token}


def test_an_unregistered_worker_adopts_nothing(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a")])
    claim = hire("w1").claim_one()
    hire("lost")
    for name in ("w1", "lost"):
        store.claims.fence(name)
    assert store.claims.adopt("w1", [claim.token], by="lost") == []
    assert store.claims.adopt("w1", [claim.token], by="missing") == []
    assert store.running("w1") == [claim]


def test_what_the_dead_one_does_not_hold_is_not_adopted(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    dead, other = hire("w1"), hire("w2")
    ended, held = dead.claim_one(), other.claim_one()
    dead.end(ended)
    store.claims.fence("w1")
    assert store.claims.adopt("w1", [ended.token, held.token, "none"], by="w2") == []
    assert store.running("w2") == [held]
