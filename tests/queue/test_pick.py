from __future__ import annotations

import pytest

from queuectl.errors import AmbiguousId, JobNotFound, StoreFull, WrongState
from queuectl.queue.pick import AT_ONCE, find, for_each, pick
from queuectl.store.protocol import Store
from tests.factories import new_job
from tests.queue.life import enqueue


def test_each_job_is_acted_on_once_however_it_is_spelled(store: Store) -> None:
    enqueue(store, "alpha")
    enqueue(store, "beta")
    acted: list[str] = []
    answer = for_each(store, ["beta", "last", "be", "alpha", "beta"], acted.append)
    assert acted == ["beta", "alpha"] == answer.done
    assert answer.refused == []


def test_what_can_be_done_is_done_and_the_rest_refused_in_order(store: Store) -> None:
    for job_id in ("a1", "a2", "b"):
        enqueue(store, job_id)
    answer = pick(store, ["nope", "b", "a", "nope"])
    assert answer.done == ["b"]
    assert [(ref, type(error)) for ref, error in answer.refused] == [("nope", JobNotFound), ("a", AmbiguousId)]
    assert answer.to_dict() == {
        "done": ["b"],
        "refused": [
            {"id": "nope", "code": "job-not-found", "message": "no job 'nope'"},
            {"id": "a", "code": "ambiguous-id", "message": "'a' is the beginning of several ids"},
        ],
    }


def test_a_job_that_was_refused_once_is_not_tried_again_under_another_name(store: Store) -> None:
    enqueue(store, "alpha")

    def refuse(job_id: str) -> None:
        raise WrongState(job_id, "pending", verb="do", hint="no")

    assert len(for_each(store, ["alpha", "last"], refuse).refused) == 1


def test_a_store_that_fails_ends_the_whole_command(store: Store) -> None:
    enqueue(store, "alpha")

    def fail(job_id: str) -> None:
        raise StoreFull("queue.db")

    with pytest.raises(StoreFull):
        for_each(store, ["alpha"], fail)


def test_jobs_are_found_in_the_order_of_their_ids_however_many(store: Store) -> None:
    ids = store.enqueue([new_job(f"j{number}") for number in range(2 * AT_ONCE + 1)])
    wanted = [*reversed(ids), "gone"]
    assert list(find(store, wanted)) == wanted[:-1]
