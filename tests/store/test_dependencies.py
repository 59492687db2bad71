"""Dependencies: no job runs too early, and none is forgotten."""

from __future__ import annotations

import pytest

from queuectl import errors
from queuectl.errors import ParentEnded, ParentNotFound
from queuectl.jobs.dependencies import Dependency, DependencyState, Need, Otherwise
from queuectl.jobs.model import NewJob
from queuectl.jobs.states import State
from queuectl.store.dependencies import MAX_CHILDREN_PER_STEP, MAX_CHILDREN_WITH_ENDS
from queuectl.store.store import Store
from queuectl.store.types import Filter
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.hands import BAD, OK, Hands

ANY = frozenset(State)
ENDED, FAILED, RUN = Need.ENDED, Need.FAILED, Otherwise.RUN


def after(job_id: str, *parents: str | Dependency, **fields: object) -> NewJob:
    depends_on = tuple(Dependency(parent) if isinstance(parent, str) else parent for parent in parents)
    return new_job(job_id, depends_on=depends_on, **{"max_retries": 1, **fields})


def once(job_id: str) -> NewJob:
    return new_job(job_id, max_retries=1)


def states(store: Store) -> dict[str, str]:
    return {job.id: job.state.value for job in store.jobs(descending=False)}


def tell_all(store: Store) -> None:
    while store.dependencies.decide():
        pass


def edges(store: Store, child: str) -> dict[str, DependencyState]:
    return {link.parent: link.state for link in store.parents([child], limit=100)}


# ── enqueue ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_that_waits_for_another_is_blocked_and_names_it(store: Store) -> None:
    store.enqueue([once("a"), after("b", "a")])
    job = store.get("b")
    assert (job.state, job.reason) == (State.BLOCKED, "waits for a (pending)")
    assert job.to_dict()["depends_on"] == ["a"]


def test_what_is_special_about_a_parent_is_shown_as_it_was_said(store: Store) -> None:
    store.enqueue([once("a"), once("b"), after("c", "a", Dependency("b", ENDED, RUN))])
    assert store.get("c").to_dict()["depends_on"] == ["a", {"id": "b", "when": "ended", "else": "run"}]


def test_a_blocked_job_is_not_claimed(store: Store, worker: Hands) -> None:
    store.enqueue([after("b", "a"), once("a")])
    assert [claim.id for claim in worker.claim(5)] == ["a"]


def test_a_batch_may_name_parents_before_or_behind_their_children(store: Store) -> None:
    assert store.enqueue([after("c", "a", "b"), once("a"), after("b", "a")]) == ["c", "a", "b"]
    assert states(store) == {"c": "blocked", "a": "pending", "b": "blocked"}


def test_jobs_without_an_id_can_wait_too(store: Store) -> None:
    store.enqueue([once("a")])
    (made,) = store.enqueue([new_job(depends_on=(Dependency("a"),))])
    assert store.get(made).state is State.BLOCKED


@pytest.mark.parametrize("need, outcome", [(Need.COMPLETED, OK), (ENDED, OK), (ENDED, BAD), (FAILED, BAD)])
def test_a_parent_that_has_ended_as_required_blocks_no_job(
    store: Store, worker: Hands, need: Need, outcome: object
) -> None:
    store.enqueue([once("a")])
    worker.run(outcome)  # type: ignore[arg-type]
    store.enqueue([after("b", Dependency("a", need))])
    assert store.get("b").state is State.PENDING
    assert edges(store, "b") == {"a": DependencyState.MET}
    assert worker.claim_one().parents == ("a",)


@pytest.mark.parametrize("need, outcome", [(Need.COMPLETED, BAD), (FAILED, OK)])
def test_a_parent_that_can_no_longer_satisfy_is_refused_by_name_and_nothing_is_written(
    store: Store, worker: Hands, backend: Backend, need: Need, outcome: object
) -> None:
    store.enqueue([once("a")])
    worker.run(outcome)  # type: ignore[arg-type]
    before = backend.rows()
    with pytest.raises(ParentEnded, match=r"'a' is (dead|completed): 'b' cannot wait for it"):
        store.enqueue([once("x"), after("b", Dependency("a", need))])
    assert backend.rows() == before
    store.enqueue([after("b", Dependency("a", need, RUN))])
    assert store.get("b").state is State.PENDING


def test_an_unknown_parent_is_refused_by_name_and_nothing_is_written(store: Store, backend: Backend) -> None:
    with pytest.raises(ParentNotFound, match="no job 'nope': 'b' cannot wait for it"):
        store.enqueue([once("a"), after("b", "a", "nope")])
    assert (backend.rows(), backend.rows("edges")) == ([], [])


def test_a_batch_that_is_refused_counts_as_no_enqueues(store: Store) -> None:
    with pytest.raises(ParentNotFound):
        store.enqueue([after("b", "nope")])
    store.enqueue([once("a")])
    assert store.get("a").seq == 1


@pytest.mark.parametrize(
    "jobs, circle",
    [
        ([after("a", "a")], "a job cannot wait for itself: a → a"),
        ([after("a", "b"), after("b", "a")], "these jobs wait for each other: b → a → b"),
    ],
)
def test_a_circle_is_refused_by_name_and_nothing_is_written(store: Store, jobs: list[NewJob], circle: str) -> None:
    with pytest.raises(errors.InvalidInput, match=circle):
        store.enqueue(jobs)
    assert states(store) == {}


# ── a parent ends ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_child_runs_when_its_last_parent_has_completed(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), once("b"), after("c", "a", "b")])
    worker.run()
    assert store.get("c").reason == "waits for b (pending)"
    worker.run()
    assert store.get("c").state is State.PENDING
    assert worker.claim_one().parents == ("a", "b")


def test_a_child_that_is_freed_can_be_claimed_in_a_moment(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a")])
    exchange = worker.end(worker.claim_one())
    assert not exchange.undecided
    assert worker.claim_one().id == "b"


def test_a_parent_that_failed_and_will_be_retried_has_not_ended(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", max_retries=2), after("b", Dependency("a", ENDED))])
    worker.run(BAD)
    assert states(store) == {"a": "failed", "b": "blocked"}


@pytest.mark.parametrize(
    "need, otherwise, state",
    [
        (Need.COMPLETED, Otherwise.CANCEL, "cancelled"),
        (Need.COMPLETED, RUN, "pending"),
        (ENDED, Otherwise.CANCEL, "pending"),
        (FAILED, Otherwise.CANCEL, "pending"),
    ],
)
def test_a_parent_that_dies_calls_its_child_off_or_frees_it(
    store: Store, worker: Hands, need: Need, otherwise: Otherwise, state: str
) -> None:
    store.enqueue([once("a"), after("b", Dependency("a", need, otherwise))])
    worker.run(BAD)
    assert states(store) == {"a": "dead", "b": state}


def test_who_is_cancelled_says_why_and_so_do_those_behind_it(store: Store, worker: Hands) -> None:
    store.enqueue([after("c", "b"), after("b", "a"), once("a"), after("d", Dependency("c", ENDED))])
    worker.run(BAD)
    tell_all(store)
    assert states(store) == {"c": "cancelled", "b": "cancelled", "a": "dead", "d": "pending"}
    assert store.get("b").error == "cancelled: a, for which it waited, is dead"
    assert store.get("c").error == "cancelled: b, for which it waited, is cancelled"


def test_a_cancel_settles_the_children_without_a_worker(store: Store) -> None:
    store.enqueue([once("a"), after("b", "a"), after("c", "b"), after("d", Dependency("a", ENDED))])
    store.cancel(["a"])
    assert states(store) == {"a": "cancelled", "b": "cancelled", "c": "cancelled", "d": "pending"}


def test_a_rescue_that_ends_a_job_for_good_settles_its_children(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", Dependency("a", FAILED))])
    worker.claim_one()
    store.claims.rescue("w1", max_crashes=1)
    assert states(store) == {"a": "dead", "b": "pending"}


def test_a_blocked_job_that_is_cancelled_waits_for_no_job(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a")])
    store.cancel(["b"])
    assert edges(store, "b") == {"a": DependencyState.VOID}
    worker.run()
    assert states(store) == {"a": "completed", "b": "cancelled"}


def test_one_broken_edge_is_enough_and_the_others_are_waited_for_no_more(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), once("b"), after("c", "a", "b")])
    worker.run(BAD)
    assert edges(store, "c") == {"a": DependencyState.BROKE, "b": DependencyState.VOID}
    worker.run()
    assert store.get("c").state is State.CANCELLED


def test_a_job_with_a_time_of_its_own_waits_for_that_too(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([once("a"), after("b", "a", delay_ms=60_000)])
    worker.run()
    assert store.get("b").state is State.PENDING
    assert worker.claim(1) == []
    clock.advance(60)
    assert worker.claim_one().id == "b"


def test_a_job_is_due_and_ages_from_when_it_could_first_have_run(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.set_config({"ageing": "1s"})
    store.enqueue([once("a"), after("b", "a")])
    claim = worker.claim_one()
    clock.advance(100)
    assert store.get("b").effective_priority == 0
    worker.end(claim)
    job = store.get("b")
    assert (to_ms(job.run_at), job.effective_priority) == (clock.now_ms(), 0)
    clock.advance(7)
    assert store.get("b").effective_priority == 7


def test_a_held_child_is_freed_and_stays_held(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([once("a"), after("b", "a")])
    backend.force("b", held=1)
    worker.run()
    assert store.get("b").reason == "held"
    assert worker.claim(1) == []


# ── many ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_parent_of_many_ends_at_once_and_its_children_are_told_bit_by_bit(store: Store, worker: Hands) -> None:
    many = 2 * MAX_CHILDREN_PER_STEP + 1
    store.enqueue([once("a"), *(after(f"k{n}", "a") for n in range(many))])
    exchange = worker.end(worker.claim_one())
    assert exchange.undecided
    assert store.count(Filter(states=frozenset({State.PENDING}))) == MAX_CHILDREN_WITH_ENDS
    assert not store.is_drained(None)
    assert worker.exchange().undecided
    assert store.count(Filter(states=frozenset({State.PENDING}))) == MAX_CHILDREN_WITH_ENDS + MAX_CHILDREN_PER_STEP
    while exchange.undecided:
        exchange = worker.exchange()
    assert store.count(Filter(states=frozenset({State.PENDING}))) == many


def test_what_a_worker_left_undecided_is_done_by_any_other(store: Store, other: Store, worker: Hands) -> None:
    store.enqueue([once("a"), *(after(f"k{n}", "a") for n in range(MAX_CHILDREN_PER_STEP + 1))])
    assert worker.end(worker.claim_one()).undecided
    tell_all(other)
    assert store.count(Filter(states=frozenset({State.BLOCKED}))) == 0


def test_a_store_without_edges_has_nothing_to_decide(store: Store, worker: Hands) -> None:
    store.enqueue([once("a")])
    assert not worker.end(worker.claim_one()).undecided
    assert not store.dependencies.decide()


# ── another chance ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_parent_that_is_revived_revives_what_it_had_cancelled(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a"), after("c", "b"), after("d", "c")])
    worker.run(BAD)
    tell_all(store)
    assert states(store) == {"a": "dead", "b": "cancelled", "c": "cancelled", "d": "cancelled"}
    store.retry(["a"], states=ANY)
    assert states(store) == {"a": "pending", "b": "blocked", "c": "blocked", "d": "blocked"}
    assert (store.get("b").error, store.get("b").finished_at) == (None, None)
    assert [worker.run().id for _ in range(4)] == ["a", "b", "c", "d"]


def test_who_is_revived_waits_for_its_other_parents_too(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), once("b"), once("c"), after("d", "a", "b", "c")])
    worker.run(BAD)  # a
    worker.run()  # b, while no job waits for it
    store.retry(["a"], states=ANY)
    assert edges(store, "d") == {"a": DependencyState.WAITING, "b": DependencyState.MET, "c": DependencyState.WAITING}
    worker.run()
    assert store.get("d").reason == "waits for c (pending)"


def test_who_is_revived_is_cancelled_again_by_another_parent_that_died_meanwhile(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), once("b"), after("c", "a", "b")])
    worker.run(BAD)
    worker.run(BAD)
    store.retry(["a"], states=ANY)
    assert store.get("c").error == "cancelled: b, for which it waited, is dead"
    store.retry(["b"], states=ANY)
    assert store.get("c").state is State.BLOCKED


def test_what_a_person_cancelled_is_not_revived_with_its_parent(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a")])
    store.cancel(["b"])
    worker.run(BAD)
    store.retry(["a"], states=ANY)
    assert states(store) == {"a": "pending", "b": "cancelled"}


def test_a_child_that_is_retried_itself_runs_without_its_parents(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a")])
    worker.run(BAD)
    store.retry(["b"], states=ANY)
    assert states(store) == {"a": "dead", "b": "pending"}
    store.retry(["a"], states=ANY)
    assert states(store) == {"a": "pending", "b": "pending"}


def test_what_has_run_by_the_death_of_its_parent_stays_as_it_is(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", Dependency("a", FAILED))])
    worker.run(BAD)
    worker.run()
    store.retry(["a"], states=ANY)
    assert states(store) == {"a": "pending", "b": "completed"}


def test_many_cancelled_children_are_blocked_again_in_steps(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), *(after(f"k{n}", "a") for n in range(MAX_CHILDREN_PER_STEP + 1))])
    store.cancel(["a"])
    store.retry(["a"], states=ANY)
    assert store.count(Filter(states=frozenset({State.BLOCKED}))) == MAX_CHILDREN_PER_STEP + 1


def test_a_parent_that_completes_before_all_were_revived_frees_them_all(
    store: Store, worker: Hands, backend: Backend
) -> None:
    store.enqueue([once("a"), after("b", "a")])
    store.cancel(["a"])
    backend.force("a", state="pending", finished_at=None, ready=1, error=None, effective_priority=None)
    claim = worker.claim_one()
    worker.end(claim)
    tell_all(store)
    assert states(store) == {"a": "completed", "b": "pending"}


# ── removal ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_parent_is_purged_with_its_edges_when_its_children_are_told(
    store: Store, worker: Hands, backend: Backend
) -> None:
    store.enqueue([once("a"), *(after(f"k{n}", Dependency("a", ENDED)) for n in range(MAX_CHILDREN_PER_STEP + 1))])
    assert worker.end(worker.claim_one(), BAD).undecided
    assert store.purge(["a"])["a"][0] is State.DEAD
    assert set(states(store).values()) == {"pending"}
    assert (backend.rows("edges"), backend.rows("undecided")) == ([], [])
    assert store.get("k0").to_dict()["depends_on"] == [{"id": "a", "when": "ended", "else": "cancel"}]


def test_a_parent_is_pruned_when_its_children_are_told(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([once("a"), *(after(f"k{n}", "a") for n in range(MAX_CHILDREN_PER_STEP + 1))])
    assert worker.end(worker.claim_one()).undecided
    assert list(store.prune(["a"], before_ms=clock.now_ms())) == ["a"]
    assert set(states(store).values()) == {"pending"}


def test_a_reset_leaves_no_edges(store: Store, backend: Backend) -> None:
    store.enqueue([once("a"), after("b", "a")])
    store.reset()
    assert (backend.rows("edges"), backend.rows("undecided")) == ([], [])


# ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_parents_and_children_are_told_with_what_they_do(store: Store, worker: Hands) -> None:
    store.enqueue([once("a"), after("b", "a"), after("c", Dependency("a", FAILED, RUN))])
    worker.claim_one()
    found = [(link.child, link.child_state, link.when, link.otherwise) for link in store.children(["a"], limit=10)]
    assert found == [
        ("b", State.BLOCKED, Need.COMPLETED, Otherwise.CANCEL),
        ("c", State.BLOCKED, FAILED, RUN),
    ]
    (link,) = store.parents(["b"], limit=10)
    assert (link.parent, link.parent_state, link.state) == ("a", State.PROCESSING, DependencyState.WAITING)
    assert len(store.children(["a"], limit=1)) == 1
