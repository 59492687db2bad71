"""purge: a dead job and its history, gone."""

from __future__ import annotations

import pytest

from queuectl import errors
from queuectl.jobs.states import State
from queuectl.store.store import Store
from queuectl.store.types import Filter
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.hands import BAD, Hands


def test_a_dead_job_goes_with_its_history_and_tags(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job("a", max_retries=1, tags=("t",)), new_job("b", tags=("t",))])
    claim = worker.run(BAD)
    assert store.purge(["a"]) == {"a": (State.DEAD, claim.log)}
    with pytest.raises(errors.JobNotFound):
        store.get("a")
    with pytest.raises(errors.JobNotFound):
        store.history("a")
    assert [job.id for job in store.jobs(Filter(tags=frozenset({"t"})))] == ["b"]
    assert backend.rows("runs") == []


def test_the_log_of_a_job_that_never_ran_is_none(store: Store) -> None:
    store.enqueue([new_job("a")])
    assert store.purge(["a"]) == {"a": (State.PENDING, None)}


@pytest.mark.parametrize("state", [state for state in State if state is not State.DEAD])
def test_a_job_that_is_not_dead_stays(store: Store, worker: Hands, backend: Backend, state: State) -> None:
    store.enqueue([new_job("a")])
    match state:
        case State.BLOCKED:
            backend.force("a", state=state, ready=0)
        case State.PROCESSING:
            worker.claim_one()
        case State.FAILED:
            worker.run(BAD)
        case State.COMPLETED:
            worker.run()
        case State.CANCELLED:
            store.cancel(["a"])
        case _:
            assert state is State.PENDING
    before = backend.rows(), backend.rows("runs")
    assert store.purge(["a"])["a"][0] is state
    assert (backend.rows(), backend.rows("runs")) == before


def test_the_id_of_a_purged_job_is_free_again(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", max_retries=1)])
    worker.run(BAD)
    store.purge(["a"])
    store.enqueue([new_job("a")])
    assert (store.get("a").runs, store.history("a")) == (0, [])


def test_nothing_is_purged_under_an_unknown_id(store: Store) -> None:
    assert store.purge(["a"]) == {}


def test_many_are_purged_at_once_and_those_that_are_not_dead_are_left(store: Store, worker: Hands) -> None:
    store.enqueue([new_job(name, max_retries=1) for name in ("a", "b", "c")])
    worker.run(BAD)
    worker.run(BAD)
    assert {name: state for name, (state, _) in store.purge(["c", "no", "b", "a"]).items()} == {
        "a": State.DEAD,
        "b": State.DEAD,
        "c": State.PENDING,
    }
    assert [job.id for job in store.jobs()] == ["c"]
    assert store.tally()["default"][State.DEAD] == 0
