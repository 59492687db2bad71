"""Batches: what has become of jobs under one name, and what runs when all of them have ended."""

from __future__ import annotations

from typing import Any

import pytest

from queuectl.errors import BatchComplete, BatchDiffers, BatchNotFound
from queuectl.jobs.model import NewJob
from queuectl.jobs.outcome import Exited
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.store.types import Batch, Filter
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, Hands

B = frozenset({"b"})


def grouped(job_id: str, **fields: Any) -> NewJob:
    return new_job(job_id, batch="b", **fields)


def last(command: str = "echo done", **fields: Any) -> NewJob:
    return new_job(command=command, batch="b", **fields)


def completed(store: Store) -> list[str]:
    return [done.job_id for done in store.batches.complete_ended()]


def test_a_batch_counts_its_jobs_by_state(store: Store, worker: Hands) -> None:
    store.enqueue([grouped("a"), grouped("b"), grouped("c", max_retries=1), new_job("other")])
    store.enqueue([grouped("d", delay_ms=60_000)])
    worker.run()
    worker.claim_one()
    worker.run(BAD)
    batch = store.batches.get("b")
    counted = {state: jobs for state, jobs in batch.states.items() if jobs}
    assert counted == {State.COMPLETED: 1, State.PROCESSING: 1, State.DEAD: 1, State.PENDING: 1}
    assert (batch.added, batch.open, batch.recent, batch.ended_at) == (4, 2, 2, None)
    assert set(batch.states) == set(State)


def test_a_batch_that_there_is_not_is_said_so(store: Store) -> None:
    with pytest.raises(BatchNotFound):
        store.batches.get("b")
    assert store.batches.all() == []


def test_the_newest_batch_comes_first(store: Store, clock: FakeClock) -> None:
    for name in ("old", "new"):
        store.enqueue([new_job(batch=name)])
        clock.advance(1)
    assert [(batch.name, batch.open) for batch in store.batches.all()] == [("new", 1), ("old", 1)]


def test_a_page_of_batches_continues_after_the_last_one_and_has_their_recent_jobs(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    for names in (("oldest",), ("one-1", "one_2", "two"), ("b",)):  # three of one moment
        store.enqueue([new_job(batch=name) for name in names])
        clock.advance(1)
    for _ in range(5):
        worker.run()
    found: list[Batch] = []
    last = None
    while some := store.batches.page(limit=2, after=last):
        last = (some[-1].created_at, some[-1].name)
        found += some
    assert [batch.name for batch in found] == ["b", "two", "one_2", "one-1", "oldest"]
    assert {(batch.recent, batch.open) for batch in found} == {(1, 0)}
    assert {batch.ended_at for batch in found} == {clock.now_ms()}
    assert [batch.name for batch in store.batches.page(limit=9, match="ONE_")] == ["one_2"]


def test_the_jobs_of_a_batch_are_listed_and_counted(store: Store) -> None:
    store.enqueue([grouped("a"), new_job("x"), grouped("b", queue="q")])
    assert [job.id for job in store.jobs(Filter(batches=B))] == ["b", "a"]
    assert store.count(Filter(batches=B)) == 2
    assert store.count(Filter(batches=B, queues=frozenset({"q"}))) == 1
    assert store.get("a").batch == "b"


def test_what_is_removed_was_still_added(store: Store, worker: Hands) -> None:
    store.enqueue([grouped("a", max_retries=1), grouped("b")])
    worker.run(BAD)
    store.purge(["a"])
    batch = store.batches.get("b")
    assert (batch.added, sum(batch.states.values())) == (2, 1)


def test_a_refused_enqueue_makes_no_batch(store: Store) -> None:
    store.enqueue([new_job("x")])
    with pytest.raises(Exception, match="already"):
        store.enqueue([grouped("a"), grouped("x")])
    assert store.batches.all() == []


def test_a_job_that_was_there_already_is_no_part_of_the_batch(store: Store) -> None:
    store.enqueue([new_job("x", unique_key="k")])
    store.enqueue([grouped("a"), grouped("b", unique_key="k")])
    assert store.batches.get("b").added == 1


# ── when all have ended ─────────────────────────────────────────────────────────────────────────────────────────────


def test_what_runs_then_is_queued_when_the_last_has_ended_however(store: Store, worker: Hands) -> None:
    store.enqueue(
        [grouped("a"), grouped("b", max_retries=1), grouped("c")], on_complete=last(queue="q", env={"A": "b"})
    )
    worker.run()
    worker.run(BAD)
    assert completed(store) == []
    store.cancel(["c"])
    (job_id,) = completed(store)
    job = store.get(job_id)
    assert (job.command, job.queue, job.batch, job.state) == ("echo done", "q", None, State.PENDING)
    assert job.env == {
        "A": "b",
        "QUEUECTL_BATCH": "b",
        "QUEUECTL_BATCH_JOBS": "3",
        "QUEUECTL_BATCH_COMPLETED": "1",
        "QUEUECTL_BATCH_DEAD": "1",
        "QUEUECTL_BATCH_CANCELLED": "1",
    }
    batch = store.batches.get("b")
    assert (batch.on_complete, batch.on_complete_job) == ("echo done", job_id)
    assert batch.completed_at is not None


def test_it_is_queued_once(store: Store, other: Store, worker: Hands) -> None:
    store.enqueue([grouped("a")], on_complete=last())
    worker.run()
    assert len(completed(store) + completed(other) + completed(store)) == 1
    assert store.retry(["a"], states=frozenset(State)) == {"a": State.COMPLETED}


def test_a_job_that_is_given_another_chance_later_does_not_complete_the_batch_again(
    store: Store, worker: Hands
) -> None:
    store.enqueue([grouped("a", max_retries=1)], on_complete=last())
    worker.run(BAD)
    assert len(completed(store)) == 1
    store.retry(["a"], states=frozenset({State.DEAD}))
    worker.run(Exited(0))
    assert completed(store) == []


@pytest.mark.parametrize("waits", ["pending", "failed", "processing", "blocked", "held", "delayed"])
def test_one_that_has_not_ended_keeps_the_batch_open(store: Store, backend: Backend, hire: Hire, waits: str) -> None:
    store.enqueue([grouped("a", delay_ms=60_000 if waits == "delayed" else None)], on_complete=last())
    match waits:
        case "failed":
            hire().run(BAD)
        case "processing":
            hire().claim_one()
        case "blocked":
            backend.force("a", state="blocked", ready=0)
        case "held":
            backend.force("a", held=1, ready=0)
    assert completed(store) == []


def test_more_may_come_until_it_is_complete(store: Store, worker: Hands) -> None:
    store.enqueue([grouped("a")], on_complete=last())
    worker.run()
    store.enqueue([grouped("b")])
    assert completed(store) == []
    worker.run()
    assert len(completed(store)) == 1
    with pytest.raises(BatchComplete):
        store.enqueue([new_job("x"), grouped("c")])
    assert store.count(Filter(ids=("x", "c"))) == 0
    assert store.batches.get("b").added == 2


def test_a_batch_for_which_nothing_runs_takes_more_at_any_time(store: Store, worker: Hands) -> None:
    store.enqueue([grouped("a")])
    worker.run()
    assert completed(store) == []
    store.enqueue([grouped("b")])
    assert store.batches.get("b").added == 2


def test_what_runs_then_may_be_said_again_but_not_otherwise(store: Store) -> None:
    store.enqueue([grouped("a")])
    store.enqueue([grouped("b")], on_complete=last())
    store.enqueue([grouped("c")], on_complete=last())
    with pytest.raises(BatchDiffers):
        store.enqueue([grouped("d")], on_complete=last("echo other"))
    assert store.batches.get("b").added == 3


def test_a_store_whose_batch_is_about_to_be_complete_is_not_drained(store: Store, worker: Hands) -> None:
    store.enqueue([grouped("a")], on_complete=last())
    worker.run()
    assert not store.is_drained(None)
    completed(store)
    worker.run()
    assert store.is_drained(None)


# ── forgetting ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_without_jobs_is_forgotten_after_some_time(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([grouped("a", max_retries=1)], on_complete=last())
    store.enqueue([new_job("kept", batch="kept")])
    worker.run(BAD)
    store.purge(["a"])
    clock.advance(10)
    assert store.batches.forget(before_ms=clock.now_ms()) == 0  # something is to run yet
    completed(store)
    assert store.batches.forget(before_ms=clock.now_ms() - 11_000) == 0
    assert store.batches.forget(before_ms=clock.now_ms()) == 1
    assert [batch.name for batch in store.batches.all()] == ["kept"]


def test_a_reset_removes_batches(store: Store) -> None:
    store.enqueue([grouped("a")])
    store.reset()
    assert store.batches.all() == []
