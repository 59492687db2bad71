"""register, heartbeat, orders, request_stop, retire and the bell: workers and what others want of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from queuectl import errors
from queuectl.jobs.outcome import Outcome, Released
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.store.types import NewWorker, StopMode
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, PID, Hands
from tests.store.wakeups import drain, wakes

# ── register, heartbeat, retire ─────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_store_has_no_workers(store: Store) -> None:
    assert store.workers() == []


def test_a_registered_worker_is_listed_with_all_it_said(
    store: Store, hire: Hire, backend: Backend, clock: FakeClock
) -> None:
    hire("w1", queues=("mail", "default"), slots=7)
    (worker,) = store.workers()
    assert (worker.id, worker.host, worker.pid, worker.home) == ("w1", "here", PID, str(backend.home))
    assert (worker.state, worker.slots, worker.busy, worker.queues) == ("running", 7, 0, ("mail", "default"))
    assert to_ms(worker.started_at) == to_ms(worker.heartbeat_at) == clock.now_ms()
    assert (worker.beats, worker.jobs_done) == (0, 0)


def test_a_worker_of_all_queues_names_none(store: Store, hire: Hire) -> None:
    hire("w1")
    assert store.workers()[0].queues is None


def test_workers_are_listed_in_the_order_they_came(store: Store, hire: Hire, clock: FakeClock) -> None:
    for name in ("b", "a", "c"):
        hire(name)
        clock.advance(1)
    assert [worker.id for worker in store.workers()] == ["b", "a", "c"]


def test_registering_again_starts_over(store: Store, hire: Hire, clock: FakeClock) -> None:
    hire("w1")
    store.claims.request_stop("w1", StopMode.NOW)
    store.claims.heartbeat("w1", slots=2, stopping=True)
    clock.advance(5)
    hire("w1", slots=9)
    (worker,) = store.workers()
    assert (worker.state, worker.slots, worker.beats) == ("running", 9, 0)
    assert to_ms(worker.started_at) == clock.now_ms()
    assert store.claims.orders("w1").stop is None


def test_a_heartbeat_tells_time_slots_and_mood(store: Store, hire: Hire, clock: FakeClock) -> None:
    hire("w1", slots=1)
    clock.advance(5)
    assert store.claims.heartbeat("w1", slots=3, stopping=True)
    (worker,) = store.workers()
    assert (worker.slots, worker.state, worker.beats) == (3, "stopping", 1)
    assert to_ms(worker.heartbeat_at) == clock.now_ms()
    assert store.claims.heartbeat("w1", slots=3, stopping=False)
    assert (store.workers()[0].state, store.workers()[0].beats) == ("running", 2)


def test_a_clock_that_steps_back_shows_no_heartbeat_before_the_start(
    store: Store, hire: Hire, clock: FakeClock
) -> None:
    hire("w1")
    clock.jump(-60)
    store.claims.heartbeat("w1", slots=1, stopping=False)
    (worker,) = store.workers()
    assert worker.started_at <= worker.heartbeat_at


def test_the_heartbeat_of_an_unknown_worker_is_answered_with_no(store: Store, hire: Hire) -> None:
    hire("w1")
    store.claims.rescue("w1", max_crashes=3)
    assert not store.claims.heartbeat("w1", slots=1, stopping=False)
    assert store.workers() == []


def test_a_worker_is_as_busy_as_the_jobs_it_holds(store: Store, hire: Hire) -> None:
    store.enqueue([new_job() for _ in range(3)])
    worker = hire("w1")
    claims = worker.claim(3)
    worker.end(claims[0])
    assert [(one.busy, one.jobs_done) for one in store.workers()] == [(2, 1)]


def test_a_retired_worker_is_forgotten(store: Store, hire: Hire) -> None:
    hire("w1")
    hire("w2")
    store.claims.retire("w1")
    store.claims.retire("w3")
    assert [worker.id for worker in store.workers()] == ["w2"]


def test_a_worker_that_holds_a_job_cannot_slip_away(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    worker.claim_one()
    store.claims.retire("w1")
    assert [one.id for one in store.workers()] == ["w1"]
    assert [lost.claim.id for lost in store.claims.rescue("w1", max_crashes=3)] == ["a"]


def test_a_waiting_job_tells_whether_anybody_serves_its_queue(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a", queue="mail"), new_job("b", queue="other")])
    assert store.get("a").reason == "no live worker serves its queue"
    hire("w1", queues=("mail",))
    assert store.get("a").reason == "waits for a free slot"
    assert [job.reason for job in store.jobs()] == ["no live worker serves its queue", "waits for a free slot"]
    hire("w2")
    assert store.get("b").reason == "waits for a free slot"


def test_a_place_that_cannot_hold_a_bell_is_refused_in_our_words(store: Store, backend: Backend) -> None:
    nowhere = str(backend.home / "no-such-directory")
    with pytest.raises(errors.Unavailable):
        store.claims.register(NewWorker("w1", "here", PID, nowhere, 1, None))
    assert store.workers() == []


def test_a_worker_that_cannot_be_registered_leaves_nothing_behind(store: Store, backend: Backend) -> None:
    before = sorted(backend.home.rglob("*"))
    with pytest.raises(errors.Unavailable):
        store.claims.register(NewWorker("w1", "here", PID, str(backend.home), 0, None))  # a worker without a slot
    assert store.workers() == []
    assert sorted(backend.home.rglob("*")) == before


# ── orders ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_worker_has_no_orders(store: Store, hire: Hire) -> None:
    hire("w1")
    orders = store.claims.orders("w1")
    assert (orders.known, orders.stop, orders.cancels) == (True, None, [])


def test_an_unknown_worker_is_told_that_it_is_unknown(store: Store) -> None:
    orders = store.claims.orders("w1")
    assert (orders.known, orders.stop, orders.cancels) == (False, None, [])


def test_a_request_to_stop_reaches_that_worker_only(store: Store, hire: Hire) -> None:
    hire("w1")
    hire("w2")
    assert store.claims.request_stop("w1", StopMode.FINISH)
    assert (store.claims.orders("w1").stop, store.claims.orders("w2").stop) == (StopMode.FINISH, None)


@pytest.mark.parametrize(
    "wishes, stop",
    [
        ([StopMode.FINISH, StopMode.NOW], StopMode.NOW),
        ([StopMode.NOW, StopMode.FINISH], StopMode.NOW),
        ([StopMode.FINISH, StopMode.FINISH], StopMode.FINISH),
        ([StopMode.RESTART], StopMode.RESTART),
        ([StopMode.RESTART, StopMode.FINISH], StopMode.FINISH),
        ([StopMode.FINISH, StopMode.RESTART], StopMode.FINISH),
        ([StopMode.NOW, StopMode.RESTART], StopMode.NOW),
    ],
)
def test_stop_now_overrides_and_restart_does_not_override_a_stop(
    store: Store, hire: Hire, wishes: list[StopMode], stop: StopMode
) -> None:
    hire("w1")
    assert all(store.claims.request_stop("w1", wish) for wish in wishes)
    assert store.claims.orders("w1").stop is stop


def test_an_unknown_worker_cannot_be_asked_to_stop(store: Store) -> None:
    assert not store.claims.request_stop("w1", StopMode.NOW)


# ── the bell ────────────────────────────────────────────────────────────────────────────────────────────────────────

RINGERS: dict[str, Callable[[Store], object]] = {
    "enqueue": lambda store: store.enqueue([new_job()]),
    "cancel of what waits": lambda store: store.cancel(["waiting"]),
    "cancel of what runs": lambda store: store.cancel(["running"]),
    "retry": lambda store: store.retry(["failed"], states=frozenset(State)),
    "stop": lambda store: store.claims.request_stop("w1", StopMode.FINISH),
    "change of a setting": lambda store: store.set_config({"lease": "1m"}),
}


@pytest.mark.parametrize("what", RINGERS)
def test_changes_from_anywhere_wake_the_worker(store: Store, other: Store, hire: Hire, what: str) -> None:
    store.enqueue([new_job("running"), new_job("failed"), new_job("waiting", queue="q")])
    worker, idle = hire("w1", queues=("default",)), hire("w2")
    running, failed = worker.claim(2)
    assert (running.id, failed.id) == ("running", "failed")
    worker.end(failed, BAD)
    for hands in (worker, idle):
        assert drain(hands.wakeup)
    RINGERS[what](other)
    assert [wakes(hands.wakeup) for hands in (worker, idle)] == [True, True]


@pytest.mark.parametrize("outcome", [Released(None), BAD])
def test_what_waits_again_wakes_the_others(store: Store, hire: Hire, outcome: Outcome) -> None:
    store.enqueue([new_job()])
    one, two = hire("w1"), hire("w2")
    claim = one.claim_one()
    drain(two.wakeup)
    one.end(claim, outcome)
    assert wakes(two.wakeup)


def test_a_bell_rings_once_however_often_it_was_rung(store: Store, worker: Hands) -> None:
    assert not drain(worker.wakeup)
    for _ in range(3):
        store.enqueue([new_job()])
    assert wakes(worker.wakeup)
    assert drain(worker.wakeup)
    assert not drain(worker.wakeup)


def test_a_batch_that_was_refused_rings_no_bell(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    assert drain(worker.wakeup)
    with pytest.raises(errors.DuplicateId):
        store.enqueue([new_job("b"), new_job("a")])
    assert not drain(worker.wakeup)
