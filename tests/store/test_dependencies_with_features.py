"""Jobs that wait for others, where they meet keys, batches, queues and changes of mind."""

from __future__ import annotations

import pytest

from queuectl import errors
from queuectl.errors import ParentEnded
from queuectl.jobs.dependencies import Dependency, DependencyState, Need
from queuectl.jobs.edit import HOLD, RELEASE, RUN_NOW, JobEdit
from queuectl.jobs.model import NewJob
from queuectl.jobs.states import WAITING, State
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import BAD, OK, Hands
from tests.store.test_dependencies import after, edges, once, states, tell_all

ANY = frozenset(State)


def keyed(job_id: str | None, *parents: str, if_exists: str | None = None, **fields: object) -> NewJob:
    depends_on = tuple(map(Dependency, parents))
    return new_job(job_id, depends_on=depends_on, unique_key="k", if_exists=if_exists, max_retries=1, **fields)


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_blocked_job_has_its_key_as_one_that_waits(store: Store) -> None:
    store.enqueue([once("a"), keyed("b", "a")])
    added = store.enqueue([keyed("c")])
    assert (added, added.duplicates) == (["b"], {0})


def test_replacing_a_blocked_job_cancels_its_children(store: Store) -> None:
    store.enqueue([once("a"), keyed("b", "a"), after("c", "b")])
    store.enqueue([keyed("d", "a", if_exists="replace")])
    assert states(store) == {"a": "pending", "b": "cancelled", "c": "cancelled", "d": "blocked"}
    assert store.get("b").error == "cancelled: replaced by d"
    assert store.get("c").error == "cancelled: b, for which it waited, is cancelled"
    assert (edges(store, "b"), edges(store, "d")) == ({"a": DependencyState.VOID}, {"a": DependencyState.WAITING})


def test_a_job_that_replaces_another_cannot_wait_for_it_to_complete(store: Store) -> None:
    store.enqueue([keyed("a")])
    with pytest.raises(ParentEnded, match="'a' is cancelled: 'b' cannot wait for it to be completed"):
        store.enqueue([keyed("b", "a", if_exists="replace")])
    assert states(store) == {"a": "pending"}


def test_a_job_that_replaces_another_may_wait_for_its_end(store: Store, worker: Hands) -> None:
    store.enqueue([keyed("a")])
    waits = (Dependency("a", Need.ENDED),)
    store.enqueue([keyed("b", if_exists="replace")._replace(depends_on=waits)])
    assert states(store) == {"a": "cancelled", "b": "pending"}


def test_who_waits_for_one_that_is_there_already_waits_for_that(store: Store, worker: Hands) -> None:
    store.enqueue([keyed("there")])
    assert store.enqueue([after("b", "a"), keyed("a")]) == ["b", "there"]
    assert [parent.id for parent in store.get("b").depends_on] == ["there"]
    worker.end(worker.claim_one(), OK)
    tell_all(store)
    assert states(store) == {"there": "completed", "b": "pending"}


def test_two_names_of_one_job_are_one_parent(store: Store) -> None:
    store.enqueue([keyed("there")])
    store.enqueue([after("b", "a", "there"), keyed("a")])
    assert edges(store, "b") == {"there": DependencyState.WAITING}


def test_two_names_of_one_job_are_not_waited_for_in_two_ways(store: Store) -> None:
    store.enqueue([keyed("there")])
    with pytest.raises(errors.InvalidInput, match="waits for 'there' in two ways"):
        store.enqueue([after("b", "a", Dependency("there", Need.ENDED)), keyed("a")])
    assert states(store) == {"there": "pending"}


def test_a_circle_through_a_job_that_is_there_already_is_refused(store: Store) -> None:
    """It waits for a job whose place it has itself."""
    with pytest.raises(errors.InvalidInput, match="a job cannot wait for itself: a → a"):
        store.enqueue([keyed("a", "b"), keyed("b")])
    assert states(store) == {}


def test_a_job_that_a_later_one_of_its_call_replaces_waits_for_no_job(store: Store, worker: Hands) -> None:
    store.enqueue([once("p"), keyed("a", "p"), keyed("b", "p", if_exists="replace")])
    assert states(store) == {"p": "pending", "a": "cancelled", "b": "blocked"}
    assert edges(store, "a") == {"p": DependencyState.VOID}
    worker.end(worker.claim_one(), OK)
    tell_all(store)
    assert states(store) == {"p": "completed", "a": "cancelled", "b": "pending"}


def test_no_job_waits_for_one_that_its_own_call_replaces(store: Store) -> None:
    with pytest.raises(ParentEnded, match="'a' is cancelled"):
        store.enqueue([keyed("a"), after("c", "a"), keyed("b", if_exists="replace")])
    assert states(store) == {}


def test_a_cancelled_child_whose_key_was_taken_stays_cancelled_when_its_parent_is_retried(
    store: Store, worker: Hands
) -> None:
    store.enqueue([once("a"), keyed("b", "a"), after("c", "b")])
    worker.end(worker.claim_one(), BAD)
    tell_all(store)
    store.enqueue([keyed("instead")])
    store.retry(["a"], states=ANY)
    assert states(store) == {"a": "pending", "b": "cancelled", "c": "cancelled", "instead": "pending"}
    assert edges(store, "b") == {"a": DependencyState.VOID}
    assert store.dependencies.decide() is False


def test_of_two_cancelled_children_with_one_key_the_first_is_blocked_again(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), once("z"), keyed("b", "a")])
    worker.end(worker.claim_one(), BAD)
    tell_all(store)
    store.enqueue([keyed("c", "z")])
    worker.end(worker.claim_one(), BAD)
    tell_all(store)
    store.retry(["a", "z"], states=ANY)
    assert states(store) == {"a": "pending", "z": "pending", "b": "blocked", "c": "cancelled"}


# ── many at once ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_graph_that_is_cancelled_as_a_whole_is_cancel_requested_by_that(store: Store) -> None:
    store.enqueue([once("a"), after("b", "a"), after("c", "b")])
    store.cancel(["a", "b", "c"])
    assert {job.error for job in store.jobs()} == {"cancelled"}
    assert edges(store, "c") == {"b": DependencyState.VOID}


def test_a_graph_that_is_given_another_chance_as_a_whole_runs_in_its_order(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a"), after("c", "b")])
    worker.end(worker.claim_one(), BAD)
    tell_all(store)
    before = store.retry(["c", "b", "a"], states=ANY)
    assert {**before} == {"a": State.DEAD, "b": State.CANCELLED, "c": State.CANCELLED}
    assert states(store) == {"a": "pending", "b": "blocked", "c": "blocked"}


def test_a_batch_is_complete_when_its_orphans_are_cancelled(store: Store, worker: Hands) -> None:
    last = new_job(batch="n")
    store.enqueue([new_job("a", batch="n", max_retries=1), after("b", "a", batch="n")], on_complete=last)
    assert store.batches.complete_ended() == []
    worker.end(worker.claim_one(), BAD)
    tell_all(store)
    (completed,) = store.batches.complete_ended()
    job = store.get(completed.job_id)
    counts = {name.removeprefix("QUEUECTL_BATCH_"): value for name, value in job.env.items()}
    assert counts == {"QUEUECTL_BATCH": "n", "JOBS": "2", "COMPLETED": "0", "DEAD": "1", "CANCELLED": "1"}
    assert job.depends_on == ()


# ── queues and changes ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_blocked_job_is_moved_and_waits_in_the_other_queue(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a")])
    assert store.move("default", "low", ids=["b"]) == {"b": State.BLOCKED}
    worker.end(worker.claim_one(), OK)
    tell_all(store)
    assert (store.get("b").queue, store.get("b").state) == ("low", State.PENDING)
    assert {state for state, jobs in store.tally()["low"].items() if jobs} == {State.PENDING}


def test_a_parent_in_a_paused_queue_holds_its_child_and_no_drain(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", queue="slow"), after("b", "a")])
    store.queues.set_rules("slow", {"paused": True})
    assert worker.claim(5) == []
    assert store.is_drained(None)
    assert store.get("b").state is State.BLOCKED


def test_a_blocked_job_that_is_held_stays_held_until_it_is_let_go(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a")])
    store.edit(["b"], HOLD)
    worker.end(worker.claim_one(), OK)
    tell_all(store)
    assert (store.get("b").state, store.get("b").reason) == (State.PENDING, "held")
    assert worker.claim(1) == []
    store.edit(["b"], RELEASE)
    assert worker.claim_one().id == "b"


def test_a_blocked_job_that_is_changed_stays_blocked(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a")])
    store.edit(["b"], JobEdit(command="false", priority=7))
    assert (store.get("b").state, store.get("b").command, worker.claim(1)[0].id) == (State.BLOCKED, "false", "a")


def test_a_blocked_job_with_another_time_waits_for_that_and_its_parent(
    store: Store, worker: Hands, clock: FakeClock
) -> None:
    store.enqueue([once("a"), after("b", "a")])
    store.edit(["b"], JobEdit(delay_ms=60_000))
    worker.end(worker.claim_one(), OK)
    tell_all(store)
    assert worker.claim(1) == []
    clock.advance(60)
    assert worker.claim_one().id == "b"


def test_a_blocked_job_is_not_run_now(store: Store) -> None:
    store.enqueue([once("a"), after("b", "a")])
    answer = store.edit(["b"], RUN_NOW, states=WAITING - {State.BLOCKED})
    assert answer["b"].before is State.BLOCKED
    assert store.get("b").state is State.BLOCKED


def test_a_blocked_job_takes_no_place_of_its_key(store: Store, worker: Hands) -> None:
    """Of one key one runs at a time: the first that could, and not the first that came."""
    store.queues.set_rules("default", {"per_key": 1})
    store.enqueue([once("a"), after("b", "a", key="k"), new_job("c", key="k"), new_job("d", key="k")])
    first = worker.claim(5)
    assert [claim.id for claim in first] == ["a", "c"]
    for claim in first:
        worker.end(claim, OK)
    tell_all(store)
    ran = []
    while claims := worker.claim(5):
        assert len(claims) == 1
        ran.append(claims[0].id)
        worker.end(claims[0], OK)
    assert sorted(ran) == ["b", "d"]
