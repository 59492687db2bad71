"""ahead, is_cancel_requested and examine: what a store says about the line and about itself."""

from __future__ import annotations

import pytest

from queuectl import errors
from queuectl.jobs.outcome import Exited, NotStarted
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.store.types import Filter, Sort
from queuectl.text import WEBHOOK_QUEUE
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


def test_dead_jobs_are_grouped_by_kind_of_failure_the_most_frequent_first(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    assert store.failures(limit=5) == []
    for name, queue, outcome, last_output in (
        ("a", "q", Exited(1), "order 17 not found"),
        ("b", "q", Exited(1), "order 4711 not found"),
        ("c", "r", Exited(7), None),
        ("d", "q", Exited(7), None),
        ("e", "q", Exited(7), None),
        ("f", "q", Exited(0), "fine"),
        ("g", "q", NotStarted("no directory /a"), None),
        ("h", "q", Exited(1), "no connection"),
    ):
        store.enqueue([new_job(name, queue=queue, max_retries=1)])
        clock.advance(1)
        worker.run(outcome, last_output=last_output)
    end = clock.now_ms()
    found = store.failures(limit=5)
    assert [failure[1:] for failure in found] == [
        ("exit code 7", None, None, 3, "e", end - 3000),
        ("exit code 1", "order 4711 not found", "q", 2, "b", end - 6000),
        ("exit code 1", "no connection", "q", 1, "h", end),
        ("could not start: no directory /a", None, "q", 1, "g", end - 1000),
    ]
    assert store.failures(limit=1) == found[:1]
    # The fingerprint of a group selects exactly its jobs.
    for failure, jobs in zip(found, (["e", "d", "c"], ["b", "a"], ["h"], ["g"]), strict=True):
        where = Filter(frozenset({State.DEAD}), fingerprints=frozenset({failure.fingerprint}))
        for sort in (Sort.CREATED, Sort.FINISHED):
            assert [job.id for job in store.jobs(where, sort=sort)] == jobs
        assert (store.count(where), [job.id for job in store.choose(where)]) == (len(jobs), jobs[::-1])
    store.retry(["c", "d", "e"], states=frozenset(State))
    assert [failure.jobs for failure in store.failures(limit=5)] == [2, 1, 1]


def test_groups_of_dead_jobs_ignore_webhook_deliveries(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", queue=WEBHOOK_QUEUE, max_retries=1)])
    (claim,) = worker.calls(1)
    worker.end(claim, BAD)
    assert (store.get("a").state, store.failures(limit=5)) == (State.DEAD, [])
