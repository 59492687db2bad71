"""prune: jobs that have ended, by age, in portions."""

from __future__ import annotations

import pytest

from queuectl import errors
from queuectl.jobs.states import FINAL, State
from queuectl.store.store import Store
from queuectl.store.types import Filter, NewWorker, OutputPiece
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.hands import BAD, OK, Hands

LONG_AGO = 0


def bring_to(state: State, name: str, *, store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job(name, max_retries=1 + (state is State.FAILED), priority=1000)])
    match state:
        case State.BLOCKED:
            backend.force(name, state=state, ready=0)
        case State.PROCESSING:
            worker.claim_one()
        case State.FAILED | State.DEAD:
            worker.run(BAD)
        case State.COMPLETED:
            worker.run()
        case State.CANCELLED:
            store.cancel([name])
        case _:
            assert state is State.PENDING


def names(
    store: Store, state: State, *, before_ms: int, limit: int | None = None, host: str | None = None
) -> list[str]:
    return [job.id for job in store.ended(state, before_ms=before_ms, limit=limit, host=host)]


@pytest.mark.parametrize("state", sorted(FINAL))
def test_what_has_ended_is_found_by_state_and_age_the_first_to_end_first(
    store: Store, worker: Hands, backend: Backend, clock: FakeClock, state: State
) -> None:
    for name in ("a", "b", "c"):
        bring_to(state, name, store=store, worker=worker, backend=backend)
        clock.advance(10)
    for other in sorted(FINAL - {state}):
        bring_to(other, f"is-{other}", store=store, worker=worker, backend=backend)
    second = store.now_ms() - 20_000
    assert names(store, state, before_ms=LONG_AGO) == []
    assert names(store, state, before_ms=second) == ["a", "b"]
    assert names(store, state, before_ms=second, limit=1) == ["a"]
    assert names(store, state, before_ms=second - 1) == ["a"]
    assert [store.count_ended(state, before_ms=moment) for moment in (LONG_AGO, second, store.now_ms())] == [0, 2, 3]


@pytest.mark.parametrize("state", sorted(FINAL))
def test_of_jobs_that_are_named_those_are_found_that_have_ended_so(
    store: Store, worker: Hands, backend: Backend, clock: FakeClock, state: State
) -> None:
    for name in ("b", "a", "c"):
        bring_to(state, name, store=store, worker=worker, backend=backend)
        clock.advance(10)
    bring_to(State.PENDING, "waits", store=store, worker=worker, backend=backend)
    second = store.now_ms() - 20_000
    found = store.ended_of(["c", "a", "b", "waits", "missing"], state, before_ms=second)
    assert found == list(store.ended(state, before_ms=second))
    assert [job.id for job in found] == ["b", "a"]
    assert [job.id for job in store.ended_of(["c", "a"], state, before_ms=store.now_ms())] == ["a", "c"]
    for other in FINAL - {state}:
        assert store.ended_of(["a"], other, before_ms=store.now_ms()) == []


def test_what_has_ended_can_be_read_while_it_is_removed(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(f"j{number:04}") for number in range(1100)])
    worker_slots = worker.claim(1100)
    for claim in worker_slots:
        worker.end(claim)
    seen = []
    for job in store.ended(State.COMPLETED, before_ms=store.now_ms()):
        seen.append(job.id)
        store.prune([job.id], before_ms=store.now_ms())
    assert sorted(seen) == [f"j{number:04}" for number in range(1100)]
    assert store.count() == 0


@pytest.mark.parametrize("state", sorted(FINAL))
def test_an_ended_job_goes_with_history_output_and_tags(
    store: Store, worker: Hands, backend: Backend, state: State
) -> None:
    store.enqueue([new_job("a", max_retries=1, tags=("t",)), new_job("b", tags=("t",), delay_ms=1000)])
    for outcome in (BAD, BAD):
        claim = worker.claim_one()
        store.claims.exchange(worker.name, outputs=[OutputPiece(claim, 0, b"hi", 0)])
        worker.end(claim, outcome)
        store.retry(["a"], states=frozenset(State))
    if state is State.CANCELLED:
        store.cancel(["a"])
    else:
        worker.run(OK if state is State.COMPLETED else BAD)
    assert store.prune(["a", "missing"], before_ms=store.now_ms()) == {"a": claim.log}
    with pytest.raises(errors.JobNotFound):
        store.get("a")
    assert (backend.rows("runs"), backend.rows("output")) == ([], [])
    assert [job.id for job in store.jobs(Filter(tags=frozenset({"t"})))] == ["b"]
    assert store.tally()["default"][state] == 0
    assert store.totals()["default"]["enqueued"] == 2


@pytest.mark.parametrize("state", [state for state in State if state not in FINAL])
def test_a_job_that_waits_or_runs_is_never_pruned(store: Store, worker: Hands, backend: Backend, state: State) -> None:
    bring_to(state, "a", store=store, worker=worker, backend=backend)
    before = backend.rows(), backend.rows("runs")
    assert store.prune(["a"], before_ms=store.now_ms() + 1) == {}
    assert store.trim("a", before_ms=store.now_ms() + 1, rows=10) == 0
    assert (backend.rows(), backend.rows("runs")) == before


def test_a_job_that_has_ended_again_meanwhile_stays(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", max_retries=1)])
    worker.run(BAD)
    found_at = store.now_ms()
    clock.advance(60)
    store.retry(["a"], states=frozenset(State))
    assert store.prune(["a"], before_ms=found_at) == {}
    worker.run(BAD)
    assert store.prune(["a"], before_ms=found_at) == {}
    assert store.trim("a", before_ms=found_at, rows=10) == 0
    assert len(store.history("a")) == 2


def test_two_who_prune_the_same_remove_it_once(store: Store, other: Store, worker: Hands) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    worker.run()
    worker.run()
    now = store.now_ms()
    assert sorted([*store.prune(["a", "b"], before_ms=now), *other.prune(["b", "a"], before_ms=now)]) == ["a", "b"]


def test_the_weight_of_a_job_counts_all_that_goes_with_it(store: Store, worker: Hands) -> None:
    store.enqueue(
        [new_job("small"), new_job("tagged", tags=("a", "b")), new_job("long", command="true " + "x" * 20_480)]
    )
    store.enqueue([new_job("often", max_retries=1)])
    for _ in range(3):
        claim = worker.claim_one()
        worker.end(claim)
    for _ in range(5):
        claim = worker.claim_one()
        store.claims.exchange(worker.name, outputs=[OutputPiece(claim, at, b"x", 0) for at in range(4)])
        worker.end(claim, BAD)
        store.retry(["often"], states=frozenset(State))
    worker.run()
    weights = {job.id: job.rows for job in store.ended(State.COMPLETED, before_ms=store.now_ms())}
    assert weights == {"small": 1, "tagged": 3, "long": 11, "often": 6 + 20}


def test_a_long_history_goes_in_portions_the_oldest_first(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job("a", max_retries=1), new_job("b", delay_ms=1000)])
    for _ in range(6):
        claim = worker.claim_one()
        store.claims.exchange(worker.name, outputs=[OutputPiece(claim, at, b"x", 0) for at in range(2)])
        worker.end(claim, BAD)
        store.retry(["a"], states=frozenset(State))
    store.cancel(["a"])
    now = store.now_ms()
    assert store.trim("a", before_ms=now, rows=4) == 8
    assert [run.number for run in store.history("a")] == [5, 6]
    assert sorted({row["run"] for row in backend.rows("output")}) == [3, 4, 5, 6]
    assert [store.trim("a", before_ms=now, rows=4) for _ in range(3)] == [6, 4, 0]
    assert store.prune(["a"], before_ms=now) == {"a": claim.log}


def test_what_workers_of_another_host_can_remove_is_left_to_them(store: Store, worker: Hands, backend: Backend) -> None:
    for name in ("a", "b"):
        bring_to(State.COMPLETED, name, store=store, worker=worker, backend=backend)
    bring_to(State.CANCELLED, "c", store=store, worker=worker, backend=backend)
    backend.force("b", host="there")
    now = store.now_ms()
    assert names(store, State.COMPLETED, before_ms=now, host="here") == ["a", "b"]
    store.claims.register(NewWorker("w9", "there", 4711, str(backend.home), 1, None)).close()
    assert names(store, State.COMPLETED, before_ms=now, host="here") == ["a"]
    assert names(store, State.COMPLETED, before_ms=now, host="there") == ["b"]
    assert names(store, State.COMPLETED, before_ms=now) == ["a", "b"]
    assert names(store, State.CANCELLED, before_ms=now, host="there") == ["c"]
    store.claims.retire("w9")


def test_a_store_can_be_asked_to_shrink_at_any_time(store: Store) -> None:
    assert store.shrink() is False
