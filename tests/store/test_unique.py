"""Unique keys: at most one job with a key waits or runs, also with concurrent enqueues."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from multiprocessing.queues import Queue as Answers

import pytest

from queuectl import errors
from queuectl.clock import SystemClock
from queuectl.errors import KeyTaken
from queuectl.jobs.import_record import parse_record
from queuectl.jobs.model import NewJob
from queuectl.jobs.spec import Defaults
from queuectl.jobs.states import FINAL, State
from queuectl.store.open import open_store
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend, PostgresBackend
from tests.store.conftest import Hire
from tests.store.hands import BAD, Hands

ANY = frozenset(State)


def keyed(job_id: str, key: str = "k", **fields: object) -> NewJob:
    return new_job(job_id, unique_key=key, **fields)


def states(store: Store) -> dict[str, State]:
    return {job.id: job.state for job in store.jobs(descending=False)}


# ── skip ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_job_with_the_key_is_the_first_one(store: Store) -> None:
    first = store.enqueue([keyed("a")])
    second = store.enqueue([keyed("b")])
    assert (first, first.duplicates) == (["a"], frozenset())
    assert (second, second.duplicates) == (["a"], {0})
    assert states(store) == {"a": State.PENDING}
    assert store.totals()["default"]["enqueued"] == 1


def test_keys_differ_by_every_character(store: Store) -> None:
    names = ["k", "K", "k ", "ü", "u\u0308", "'; --", "\\N"]
    store.enqueue([keyed(f"j{number}", name) for number, name in enumerate(names)])
    assert [job.unique_key for job in store.jobs(descending=False)] == names


def test_the_key_is_taken_until_the_job_has_ended(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([keyed("a", max_retries=2)])
    claim = worker.claim_one()
    assert store.enqueue([keyed("b")]) == ["a"]  # it runs
    worker.end(claim, BAD)
    assert store.enqueue([keyed("c")]) == ["a"]  # it waits for another try
    clock.advance(60)
    worker.run(BAD)
    assert store.enqueue([keyed("d")]) == ["d"]  # it is dead
    worker.run()
    assert store.enqueue([keyed("e")]) == ["e"]
    store.cancel(["e"])
    assert store.enqueue([keyed("f")]) == ["f"]
    assert [job.id for job in store.jobs(descending=False)] == ["a", "d", "e", "f"]


@pytest.mark.parametrize("state", ["blocked", "held"])
def test_a_job_that_may_not_run_yet_has_its_key(store: Store, backend: Backend, state: str) -> None:
    store.enqueue([keyed("a")])
    backend.force("a", ready=0, **({"held": 1} if state == "held" else {"state": "blocked"}))
    assert store.enqueue([keyed("b")]) == ["a"]


def test_a_job_that_is_not_taken_in_counts_as_no_enqueue(store: Store) -> None:
    store.set_config({"ageing": "enqueues"})
    store.enqueue([new_job("old"), keyed("a")])
    store.enqueue([keyed("b"), keyed("c"), new_job("d")])
    assert store.get("old").effective_priority == 2


def test_the_id_of_a_job_that_is_not_taken_in_may_be_taken(store: Store) -> None:
    """So that the same command may be given again and again."""
    for _ in range(2):
        assert store.enqueue([keyed("a")]) == ["a"]


def test_a_batch_is_one_job_after_the_other(store: Store) -> None:
    store.enqueue([keyed("old", "x")])
    added = store.enqueue([keyed("a"), new_job("b"), keyed("c"), keyed("d", "x"), keyed("e", "y"), new_job("f")])
    assert (added, added.duplicates) == (["a", "b", "a", "old", "e", "f"], {2, 3})
    assert list(states(store)) == ["old", "a", "b", "e", "f"]


# ── error ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("taken_by", ["the database", "the batch"])
def test_where_it_is_an_error_nothing_of_the_batch_comes_in(store: Store, taken_by: str) -> None:
    store.enqueue([keyed("old", "k" if taken_by == "the database" else "other")])
    batch = [
        new_job("a"),
        keyed("b", "new"),
        keyed("c", "k" if taken_by == "the database" else "new", if_exists="error"),
    ]
    with pytest.raises(KeyTaken) as raised:
        store.enqueue(batch)
    holder = "old" if taken_by == "the database" else "b"
    assert (raised.value.holder, raised.value.state, raised.value.place) == (holder, State.PENDING, 2)
    assert list(states(store)) == ["old"]
    assert store.totals()["default"]["enqueued"] == 1


# ── replace ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_waiting_job_is_cancelled_for_the_new_one(store: Store, clock: FakeClock) -> None:
    store.enqueue([keyed("a", tags=("t",), delay_ms=60_000)])
    clock.advance(1)
    added = store.enqueue([keyed("b", if_exists="replace")])
    assert (added, added.duplicates) == (["b"], frozenset())
    old = store.get("a")
    assert (old.state, old.error, old.finished_at) == (State.CANCELLED, "cancelled: replaced by b", old.updated_at)
    assert store.get("b").state is State.PENDING


def test_a_job_that_waits_for_another_try_is_replaced_and_its_history_stays(store: Store, worker: Hands) -> None:
    store.enqueue([keyed("a")])
    worker.run(BAD)
    store.enqueue([keyed("b", if_exists="replace")])
    assert states(store) == {"a": State.CANCELLED, "b": State.PENDING}
    assert len(store.history("a")) == 1


def test_a_running_job_is_not_replaced(store: Store, worker: Hands) -> None:
    store.enqueue([keyed("a")])
    worker.claim_one()
    with pytest.raises(KeyTaken) as raised:
        store.enqueue([new_job("x"), keyed("b", if_exists="replace")])
    assert (raised.value.holder, raised.value.state) == ("a", State.PROCESSING)
    assert states(store) == {"a": State.PROCESSING}


def test_a_later_job_of_a_batch_replaces_an_earlier_one(store: Store) -> None:
    replace = {"if_exists": "replace"}
    added = store.enqueue([keyed("a"), new_job("x"), keyed("b", **replace), keyed("c", **replace), keyed("d")])
    assert (added, added.duplicates) == (["a", "x", "b", "c", "c"], {4})
    assert states(store) == {
        "a": State.CANCELLED,
        "x": State.PENDING,
        "b": State.CANCELLED,
        "c": State.PENDING,
    }
    assert store.get("b").error == "cancelled: replaced by c"


def test_what_replaces_has_an_id_of_its_own(store: Store) -> None:
    store.enqueue([keyed("a")])
    with pytest.raises(errors.DuplicateId):
        store.enqueue([keyed("a", if_exists="replace")])
    assert states(store) == {"a": State.PENDING}


# ── for a time ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_for_a_time_a_job_that_has_ended_still_has_the_key(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([keyed("a")])
    worker.run()
    clock.advance(3599)
    assert store.enqueue([keyed("b", unique_for_ms=3_600_000)]) == ["a"]
    clock.advance(1)
    assert store.enqueue([keyed("c", unique_for_ms=3_600_000)]) == ["c"]


def test_the_time_counts_from_the_last_enqueue(store: Store, worker: Hands, clock: FakeClock) -> None:
    for name in ("a", "b"):
        store.enqueue([keyed(name)])
        worker.run()
        clock.advance(10)
    added = store.enqueue([keyed("c", unique_for_ms=15_000), keyed("d", unique_for_ms=5_000)])
    assert added == ["b", "d"]


# ── another chance ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dead_job_whose_key_is_taken_stays_dead(store: Store, worker: Hands) -> None:
    store.enqueue([keyed("a", max_retries=1)])
    worker.run(BAD)
    store.enqueue([keyed("b")])
    revived = store.retry(["a"], states=ANY)
    assert dict(revived) == {"a": State.DEAD}
    assert (revived.taken["a"].key, revived.taken["a"].holder) == ("k", "b")
    assert states(store) == {"a": State.DEAD, "b": State.PENDING}
    worker.run()
    assert not store.retry(["a"], states=ANY).taken
    assert store.get("a").state is State.PENDING


def test_of_several_dead_jobs_with_one_key_one_gets_another_chance(store: Store, worker: Hands) -> None:
    for name in ("a", "b"):
        store.enqueue([keyed(name, max_retries=1)])
        worker.run(BAD)
    revived = store.retry(["a", "b"], states=ANY)
    assert set(revived) == {"a", "b"}
    assert len(revived.taken) == 1
    assert Counter(states(store).values()) == {State.DEAD: 1, State.PENDING: 1}


def test_a_failed_job_need_not_wait_for_its_own_key(store: Store, worker: Hands) -> None:
    store.enqueue([keyed("a")])
    worker.run(BAD)
    assert not store.retry(["a"], states=ANY).taken
    assert store.get("a").state is State.PENDING


# ── out and in ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_import_that_would_be_a_second_one_is_refused_by_name(store: Store) -> None:
    store.enqueue([keyed("a")])
    defaults = Defaults(0, 3, False, 2.0, None, "/")
    fields = {"id": "b", "command": "true", "unique_key": "k", "created_at": "2026-01-01T00:00:00Z"}
    with pytest.raises(KeyTaken, match="cannot import 'b'"), store.transfers.importer({}) as door:
        door.add([parse_record({**fields, "state": "pending"}, defaults)])
    assert list(states(store)) == ["a"]
    with store.transfers.importer({}) as door:
        door.add([parse_record({**fields, "state": "cancelled"}, defaults)])
    assert store.get("b").unique_key == "k"


def test_two_that_wait_with_one_key_are_not_imported(store: Store) -> None:
    defaults = Defaults(0, 3, False, 2.0, None, "/")
    fields = {"command": "true", "unique_key": "k", "created_at": "2026-01-01T00:00:00Z", "state": "pending"}
    records = [parse_record({**fields, "id": name}, defaults) for name in "ab"]
    with pytest.raises(KeyTaken, match="cannot import 'b'"), store.transfers.importer({}) as door:
        door.add(records)
    assert states(store) == {}


# ── at the same time ────────────────────────────────────────────────────────────────────────────────────────────────

ROUNDS = 40


def hammer(home: str, url: str | None, name: str, if_exists: str, answers: Answers[list[str]]) -> None:
    """In a process of its own. Cancels what it has enqueued, so that the key is fought for."""
    store = open_store(home, url, SystemClock())
    said = []
    for number in range(ROUNDS):
        try:
            (job_id,) = store.enqueue([keyed(f"{name}{number}", if_exists=if_exists)])
        except KeyTaken as error:
            said.append(f"refused {error.state}")
            continue
        said.append("mine" if job_id == f"{name}{number}" else "yours")
        if job_id == f"{name}{number}" and number % 3 == 0:
            store.cancel([job_id])
    store.close()
    answers.put(said)


@pytest.mark.parametrize("if_exists", ["skip", "error", "replace"])
def test_two_processes_never_have_the_key_at_once(store: Store, backend: Backend, if_exists: str) -> None:
    """The invariants and the schema check that no two wait; this test, that the race causes no error."""
    at_once = multiprocessing.get_context("spawn")
    answers: Answers[list[str]] = at_once.Queue()
    url = backend.url if isinstance(backend, PostgresBackend) else None
    processes = [
        at_once.Process(target=hammer, args=(str(backend.home), url, name, if_exists, answers)) for name in "ab"
    ]
    for process in processes:
        process.start()
    said = Counter(word for _ in processes for word in answers.get(timeout=30))
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert said.total() == 2 * ROUNDS
    allowed = {"skip": {"mine", "yours"}, "error": {"mine", "refused pending"}, "replace": {"mine"}}
    assert said["mine"]
    assert set(said) <= allowed[if_exists]
    assert sum(job.state not in FINAL for job in store.jobs()) <= 1


def test_many_keys_in_one_batch_are_as_good_as_few(store: Store) -> None:
    jobs = [keyed(f"j{number}", f"k{number % 1500}") for number in range(3000)]
    added = store.enqueue(jobs)
    assert len(set(added)) == len(added) - len(added.duplicates) == 1500


def test_the_jobs_of_a_dead_worker_still_have_their_keys(store: Store, hire: Hire) -> None:
    store.enqueue([keyed("a")])
    hire("w1").claim_one()
    store.claims.rescue("w1", max_crashes=3)
    assert store.enqueue([keyed("b")]) == ["a"]
