"""fence: a worker that was only silent writes nothing more, until it registers again."""

from __future__ import annotations

from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.store.types import LastHeartbeat
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.conftest import Hire
from tests.store.hands import Hands


def test_what_a_fenced_worker_tells_does_not_count(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    claim = worker.claim_one()
    started = store.get("a").started_at
    assert store.claims.fence("w1") == [claim]
    clock.advance(5)
    worker.start(claim)
    exchange = worker.end(claim)
    assert (exchange.settled, [end.claim for end in exchange.lost]) == ([], [claim])
    assert (store.get("a").state, store.get("a").started_at) == (State.PROCESSING, started)
    assert worker.claim(1) == []
    assert not store.claims.heartbeat("w1", slots=1, stopping=False)
    assert not store.claims.orders("w1").known
    assert [(one.id, one.state) for one in store.workers()] == [("w1", "lost")]


def test_a_fenced_worker_is_forgotten_with_what_it_held(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.claim_one()
    tokens = {claim.token for claim in store.claims.fence("w1") or ()}
    assert [lost.claim.id for lost in store.claims.rescue("w1", max_crashes=3, only=tokens)] == ["a"]
    assert store.workers() == []
    assert store.get("a").state is State.PENDING


def test_a_worker_that_registered_again_keeps_its_name_and_its_new_claims(
    store: Store, worker: Hands, hire: Hire, clock: FakeClock
) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    worker.claim_one()
    tokens = {claim.token for claim in store.claims.fence("w1") or ()}
    clock.advance(1)
    again = hire("w1")
    held = again.claim_one()
    assert [lost.claim.id for lost in store.claims.rescue("w1", max_crashes=3, only=tokens)] == ["a"]
    assert [(one.id, one.state, to_ms(one.started_at)) for one in store.workers()] == [
        ("w1", "running", clock.now_ms())
    ]
    assert store.running("w1") == [held]
    assert [written.state for _, written in again.end(held).settled] == [State.COMPLETED]


def test_an_unregistered_worker_can_be_fenced(store: Store) -> None:
    assert store.claims.fence("missing") == []
    assert store.workers() == []


def test_a_worker_that_has_given_a_sign_since_it_was_seen_is_not_fenced(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    claim = worker.claim_one()
    (seen,) = store.workers()
    store.claims.heartbeat("w1", slots=4, stopping=False)
    assert store.claims.fence("w1", last_heartbeat=LastHeartbeat.of(seen)) is None
    assert [written.state for _, written in worker.end(claim).settled] == [State.COMPLETED]
    (seen,) = store.workers()
    assert store.claims.fence("w1", last_heartbeat=LastHeartbeat.of(seen)) == []
    assert (
        store.claims.fence("w1", last_heartbeat=LastHeartbeat.of(seen)) == []
    )  # the first caller may have died meanwhile
    assert worker.claim(1) == []


def test_another_worker_of_the_same_name_is_not_fenced_in_its_place(
    store: Store, worker: Hands, hire: Hire, clock: FakeClock
) -> None:
    (seen,) = store.workers()
    store.claims.heartbeat("w1", slots=4, stopping=False)
    assert (
        store.claims.fence("w1", last_heartbeat=LastHeartbeat.of(seen)._replace(beats=None)) == []
    )  # whatever sign it gave
    store.claims.retire("w1")
    assert store.claims.fence("w1", last_heartbeat=LastHeartbeat.of(seen)) is None
    clock.advance(1)
    store.enqueue([new_job("a")])
    again = hire("w1")
    assert store.claims.fence("w1", last_heartbeat=LastHeartbeat.of(seen)._replace(beats=None)) is None
    assert [claim.id for claim in again.claim(1)] == ["a"]
