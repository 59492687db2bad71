from __future__ import annotations

from collections.abc import Sequence

import pytest

from queuectl.errors import AmbiguousId, JobNotFound, QueuectlError, StoreFull, WrongState
from queuectl.jobs.edit import HOLD
from queuectl.operations import control
from queuectl.operations.bulk import BULK_BATCH_SIZE, apply_to_each, find_jobs, resolve_ids
from queuectl.store.store import Store
from tests.factories import new_job
from tests.operations.life import enqueue


def test_an_action_is_applied_once_to_a_job_with_several_refs(store: Store) -> None:
    enqueue(store, "alpha")
    enqueue(store, "beta")
    acted: list[str] = []

    def act(ids: Sequence[str]) -> dict[str, QueuectlError]:
        acted.extend(ids)
        return {}

    answer = apply_to_each(store, ["beta", "last", "be", "alpha", "beta"], act)
    assert acted == ["beta", "alpha"] == answer.done
    assert answer.refused == []


def test_an_action_is_applied_where_possible_and_the_rest_is_refused_in_order(store: Store) -> None:
    for job_id in ("a1", "a2", "b"):
        enqueue(store, job_id)
    answer = resolve_ids(store, ["nope", "b", "a", "nope"])
    assert answer.done == ["b"]
    assert [(ref, type(error)) for ref, error in answer.refused] == [("nope", JobNotFound), ("a", AmbiguousId)]
    assert answer.to_dict() == {
        "done": ["b"],
        "refused": [
            {"id": "nope", "code": "job-not-found", "message": "no job 'nope'"},
            {"id": "a", "code": "ambiguous-id", "message": "'a' is ambiguous"},
        ],
    }


def refuse_all(ids: Sequence[str]) -> dict[str, QueuectlError]:
    return {job_id: WrongState(job_id, "pending", verb="do", hint="no") for job_id in ids}


def test_a_refused_job_is_not_tried_again_under_another_ref(store: Store) -> None:
    enqueue(store, "alpha")
    assert [ref for ref, _ in apply_to_each(store, ["al", "alpha", "last"], refuse_all).refused] == ["al"]


def test_refusals_are_in_the_order_of_the_refs(store: Store) -> None:
    enqueue(store, "alpha")
    enqueue(store, "beta")
    answer = apply_to_each(store, ["beta", "nope", "alpha"], refuse_all)
    assert [ref for ref, _ in answer.refused] == ["beta", "nope", "alpha"]


def test_a_store_that_fails_ends_the_whole_command(store: Store) -> None:
    enqueue(store, "alpha")

    def fail(ids: Sequence[str]) -> dict[str, QueuectlError]:
        raise StoreFull("queue.db")

    with pytest.raises(StoreFull):
        apply_to_each(store, ["alpha"], fail)


def test_many_ids_are_processed_in_batches(store: Store) -> None:
    sizes: list[int] = []

    def act(ids: Sequence[str]) -> dict[str, QueuectlError]:
        sizes.append(len(ids))
        return {}

    answer = apply_to_each(store, (f"j{number}" for number in range(2 * BULK_BATCH_SIZE + 1)), act, exact=True)
    assert sizes == [BULK_BATCH_SIZE, BULK_BATCH_SIZE, 1]
    assert len(answer.done) == 2 * BULK_BATCH_SIZE + 1


def test_an_exact_id_of_a_removed_job_is_not_a_prefix(store: Store) -> None:
    enqueue(store, "alphabet")
    answer = control.retry(store, ["alpha"], exact=True)
    assert [(ref, type(error)) for ref, error in answer.refused] == [("alpha", JobNotFound)]


def test_any_number_of_jobs_is_found_in_the_order_of_their_ids(store: Store) -> None:
    ids = store.enqueue([new_job(f"j{number}") for number in range(2 * BULK_BATCH_SIZE + 1)])
    wanted = [*reversed(ids), "gone"]
    assert list(find_jobs(store, wanted)) == wanted[:-1]


def test_other_writers_get_the_lock_between_two_batches(store: Store, other: Store) -> None:
    ids = store.enqueue([new_job() for _ in range(2 * BULK_BATCH_SIZE + 1)])
    came: list[str] = []

    def hold(some: Sequence[str]) -> dict[str, QueuectlError]:
        store.edit(some, HOLD)
        return {}

    answer = apply_to_each(store, ids, hold, exact=True, rest=lambda _: came.extend(other.enqueue([new_job()])))
    assert answer.done == list(ids)
    assert len(came) == 2, "once after each but the last"
    assert len({*came, *ids}) == store.count()
