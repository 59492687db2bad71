"""Requests with a key: repeated within a day, they add nothing and get the same answer."""

from __future__ import annotations

import pytest

from queuectl.errors import DuplicateId, KeyReused
from queuectl.store.enqueue import IDEMPOTENCY_KEPT_MS
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.crowd import at_once
from tests.store.hands import Hands

ASKED = ("key", "digest")


def test_a_request_that_is_repeated_gets_the_same_answer_and_adds_nothing(
    store: Store, other: Store, clock: FakeClock
) -> None:
    ids = store.enqueue([new_job(), new_job("named")], idempotency=ASKED)
    clock.advance(IDEMPOTENCY_KEPT_MS / 1000 - 1)
    assert other.enqueue([new_job(), new_job("named")], idempotency=ASKED) == ids
    assert store.count() == 2
    assert store.totals()["default"]["enqueued"] == 2


def test_the_answer_is_the_same_when_the_jobs_have_gone(store: Store, worker: Hands, clock: FakeClock) -> None:
    ids = store.enqueue([new_job()], idempotency=ASKED)
    worker.run()
    store.prune(ids, before_ms=clock.now_ms())
    assert store.enqueue([new_job()], idempotency=ASKED) == ids
    assert store.count() == 0


def test_the_answer_still_says_what_was_there_already(store: Store) -> None:
    store.enqueue([new_job("first", unique_key="k")])
    jobs = [new_job(unique_key="k"), new_job()]
    answer = store.enqueue(jobs, idempotency=ASKED)
    again = store.enqueue(jobs, idempotency=ASKED)
    assert (again, again.duplicates) == (answer, frozenset({0}))


def test_a_key_that_is_given_to_another_request_is_refused(store: Store) -> None:
    store.enqueue([new_job()], idempotency=ASKED)
    with pytest.raises(KeyReused, match="'key' was given to another request"):
        store.enqueue([new_job(), new_job()], idempotency=("key", "other"))
    assert store.count() == 1
    store.enqueue([new_job()], idempotency=("another key", "other"))
    assert store.count() == 2


def test_after_a_day_a_key_is_free_again(store: Store, clock: FakeClock) -> None:
    first = store.enqueue([new_job()], idempotency=ASKED)
    clock.advance(IDEMPOTENCY_KEPT_MS / 1000)
    second = store.enqueue([new_job()], idempotency=("key", "other"))
    assert first != second
    assert store.enqueue([new_job()], idempotency=("key", "other")) == second
    assert store.count() == 2


def test_a_request_that_was_refused_leaves_its_key_free(store: Store) -> None:
    store.enqueue([new_job("taken")])
    with pytest.raises(DuplicateId):
        store.enqueue([new_job(), new_job("taken")], idempotency=ASKED)
    assert len(store.enqueue([new_job()], idempotency=("key", "other"))) == 1


def test_old_requests_are_forgotten(store: Store, clock: FakeClock, backend: Backend) -> None:
    store.enqueue([new_job()], idempotency=("old", "d"))
    clock.advance(60)
    store.enqueue([new_job()], idempotency=("new", "d"))
    assert store.forget_requests(before_ms=clock.now_ms() - 1) == 1
    assert [row["key"] for row in backend.rows("requests")] == ["new"]


def test_of_many_old_requests_some_are_forgotten_at_a_time(store: Store, clock: FakeClock, backend: Backend) -> None:
    for n in range(5):
        store.enqueue([new_job()], idempotency=(f"k{n}", "d"))
        clock.advance(1)
    assert [store.forget_requests(before_ms=clock.now_ms() - 2000, limit=3) for _ in range(2)] == [3, 1]
    assert [row["key"] for row in backend.rows("requests")] == ["k4"]


@pytest.mark.parametrize("turn", range(3))
def test_of_requests_that_come_at_the_same_moment_one_adds_its_jobs(
    backend: Backend, store: Store, clock: FakeClock, turn: int
) -> None:
    answers: list[list[str]] = []

    def ask() -> None:
        mine = backend.open(clock)
        try:
            answers.append(mine.enqueue([new_job(), new_job()], idempotency=ASKED))
        finally:
            mine.close()

    at_once(ask, ask, ask, ask)
    assert len({tuple(answer) for answer in answers}) == 1
    assert store.count() == 2


def test_of_different_requests_of_one_key_at_the_same_moment_one_comes_in(
    backend: Backend, store: Store, clock: FakeClock
) -> None:
    refused: list[str] = []

    def ask(digest: str) -> None:
        mine = backend.open(clock)
        try:
            mine.enqueue([new_job()], idempotency=("key", digest))
        except KeyReused:
            refused.append(digest)
        finally:
            mine.close()

    at_once(lambda: ask("a"), lambda: ask("b"), lambda: ask("c"))
    assert len(refused) == 2
    assert store.count() == 1
