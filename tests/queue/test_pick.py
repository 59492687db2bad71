from __future__ import annotations

from collections.abc import Sequence

import pytest

from queuectl.errors import AmbiguousId, JobNotFound, QueuectlError, StoreFull, WrongState
from queuectl.job.change import HOLD
from queuectl.queue import control
from queuectl.queue.pick import AT_ONCE, find, for_each, pick
from queuectl.store.protocol import Store
from tests.factories import new_job
from tests.queue.life import enqueue


def test_each_job_is_acted_on_once_however_it_is_spelled(store: Store) -> None:
    enqueue(store, "alpha")
    enqueue(store, "beta")
    acted: list[str] = []

    def act(ids: Sequence[str]) -> dict[str, QueuectlError]:
        acted.extend(ids)
        return {}

    answer = for_each(store, ["beta", "last", "be", "alpha", "beta"], act)
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


def refuse_all(ids: Sequence[str]) -> dict[str, QueuectlError]:
    return {job_id: WrongState(job_id, "pending", verb="do", hint="no") for job_id in ids}


def test_a_job_that_was_refused_once_is_not_tried_again_under_another_name(store: Store) -> None:
    enqueue(store, "alpha")
    assert [ref for ref, _ in for_each(store, ["al", "alpha", "last"], refuse_all).refused] == ["al"]


def test_refusals_come_in_the_order_given_whoever_refused(store: Store) -> None:
    enqueue(store, "alpha")
    enqueue(store, "beta")
    answer = for_each(store, ["beta", "nope", "alpha"], refuse_all)
    assert [ref for ref, _ in answer.refused] == ["beta", "nope", "alpha"]


def test_a_store_that_fails_ends_the_whole_command(store: Store) -> None:
    enqueue(store, "alpha")

    def fail(ids: Sequence[str]) -> dict[str, QueuectlError]:
        raise StoreFull("queue.db")

    with pytest.raises(StoreFull):
        for_each(store, ["alpha"], fail)


def test_many_are_acted_on_in_portions(store: Store) -> None:
    sizes: list[int] = []

    def act(ids: Sequence[str]) -> dict[str, QueuectlError]:
        sizes.append(len(ids))
        return {}

    answer = for_each(store, (f"j{number}" for number in range(2 * AT_ONCE + 1)), act, exact=True)
    assert sizes == [AT_ONCE, AT_ONCE, 1]
    assert len(answer.done) == 2 * AT_ONCE + 1


def test_the_id_of_a_job_that_is_gone_is_not_taken_for_the_beginning_of_another(store: Store) -> None:
    enqueue(store, "alphabet")
    answer = control.retry(store, ["alpha"], exact=True)
    assert [(ref, type(error)) for ref, error in answer.refused] == [("alpha", JobNotFound)]


def test_jobs_are_found_in_the_order_of_their_ids_however_many(store: Store) -> None:
    ids = store.enqueue([new_job(f"j{number}") for number in range(2 * AT_ONCE + 1)])
    wanted = [*reversed(ids), "gone"]
    assert list(find(store, wanted)) == wanted[:-1]


def test_between_two_times_of_many_others_get_in(store: Store, other: Store) -> None:
    ids = store.enqueue([new_job() for _ in range(2 * AT_ONCE + 1)])
    came: list[str] = []

    def hold(some: Sequence[str]) -> dict[str, QueuectlError]:
        store.amend(some, HOLD)
        return {}

    answer = for_each(store, ids, hold, exact=True, rest=lambda _: came.extend(other.enqueue([new_job()])))
    assert answer.done == list(ids)
    assert len(came) == 2, "once after each but the last"
    assert len({*came, *ids}) == store.count()
