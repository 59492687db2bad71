from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from queuectl.errors import WrongState
from queuectl.job.graph import Dependency
from queuectl.job.lifecycle import State
from queuectl.job.outcome import Cancelled
from queuectl.queue import control, dlq
from queuectl.queue.pick import AT_ONCE
from queuectl.store.protocol import Filter, Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.queue.life import KILLED, claim, end, enqueue, register, run


def nobody_died() -> None:
    """There is nothing to rescue."""


def test_a_waiting_job_is_called_off_at_once(store: Store, clock: FakeClock) -> None:
    enqueue(store, "a")
    answer = control.cancel(store, clock, ["a"], rescue=nobody_died)
    assert answer.done == ["a"]
    assert store.get("a").state is State.CANCELLED


def test_cancel_returns_when_the_running_job_has_ended(
    store: Store, other: Store, home: Path, clock: FakeClock
) -> None:
    register(store, home)
    enqueue(store, "a")
    held = claim(other, home)
    told: list[list[str]] = []

    def on_wait(waiting: Sequence[str]) -> None:
        told.append(list(waiting))
        end(other, held, Cancelled(KILLED))

    answer = control.cancel(store, clock, ["a"], rescue=nobody_died, on_wait=on_wait)
    assert answer.done == ["a"]
    assert told == [["a"]]
    assert store.get("a").state is State.CANCELLED
    assert store.get("a").attempts == 0


def test_cancel_has_the_jobs_of_a_dead_worker_dealt_with(
    store: Store, other: Store, home: Path, clock: FakeClock
) -> None:
    register(store, home)
    enqueue(store, "a")
    claim(other, home)
    answer = control.cancel(store, clock, ["a"], rescue=lambda: other.rescue("w1", max_crashes=3))
    assert answer.done == ["a"]
    assert store.get("a").state is State.CANCELLED


def test_what_has_ended_cannot_be_cancelled(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home)
    enqueue(store, "b")
    control.cancel(store, clock, ["b"], rescue=nobody_died)
    answer = control.cancel(store, clock, ["a", "b"], rescue=nobody_died)
    assert answer.done == []
    assert [error.message for _, error in answer.refused] == [
        "job 'a' is completed: cannot cancel it",
        "job 'b' is cancelled: cannot cancel it",
    ]


def test_retry_gives_dead_and_cancelled_jobs_a_new_beginning(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "dead")
    run(store, home, KILLED)
    enqueue(store, "off")
    control.cancel(store, clock, ["off"], rescue=nobody_died)
    assert control.retry(store, ["dead", "off"]).done == ["dead", "off"]
    for job_id in ("dead", "off"):
        job = store.get(job_id)
        assert (job.state, job.attempts) == (State.PENDING, 0)
    assert store.get("dead").runs == 1
    assert len(store.history("dead")) == 1


def test_retry_lets_a_failed_job_run_now_and_keeps_its_attempts(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a", max_retries=3)
    run(store, home, KILLED)
    assert store.get("a").state is State.FAILED
    assert control.retry(store, ["a"]).done == ["a"]
    assert store.get("a").attempts == 1
    assert claim(store, home).id == "a"


@pytest.mark.parametrize("state", ["completed", "pending", "processing"])
def test_retry_refuses_a_job_that_needs_no_other_chance(store: Store, home: Path, state: str) -> None:
    register(store, home)
    enqueue(store, "a")
    if state != "pending":
        held = claim(store, home)
        if state == "completed":
            end(store, held)
    answer = control.retry(store, ["a"])
    assert answer.done == []
    (refusal,) = answer.refused
    assert isinstance(refusal.error, WrongState)
    assert refusal.error.message == f"job 'a' is {state}: cannot retry it"
    assert store.get("a").state.value == state


def test_the_dlq_holds_the_dead_in_the_order_of_enqueue(store: Store, home: Path) -> None:
    register(store, home)
    for job_id in ("a", "b", "c"):
        enqueue(store, job_id)
    run(store, home, KILLED)
    run(store, home)
    run(store, home, KILLED)
    assert [job.id for job in store.choose(Filter(dlq.DEAD))] == ["a", "c"]
    assert dlq.require_dead(store, "a") == "a"
    with pytest.raises(WrongState):
        dlq.require_dead(store, "b")


def test_dlq_retry_takes_only_the_dead(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home, KILLED)
    enqueue(store, "off")
    control.cancel(store, clock, ["off"], rescue=nobody_died)
    answer = dlq.retry(store, ["a", "off"])
    assert answer.done == ["a"]
    assert [ref for ref, _ in answer.refused] == ["off"]
    assert store.get("off").state is State.CANCELLED


def test_purge_removes_a_dead_job_with_its_history_and_log(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    run(store, home, KILLED)
    log = home / "logs" / "a.log"
    log.write_bytes(b"what it printed")
    answer = dlq.purge(store, ["a", "b"])
    assert answer.done == ["a"]
    assert [ref for ref, _ in answer.refused] == ["b"]
    assert not log.exists()
    assert [job.id for job in store.jobs()] == ["b"]


def test_purge_does_not_mind_a_log_that_is_gone_already(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home, KILLED)
    assert dlq.purge(store, ["a"]).done == ["a"]


def test_a_job_that_has_moved_on_since_it_was_chosen_is_refused_by_name(
    store: Store, other: Store, home: Path, clock: FakeClock
) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    chosen = [job.id for job in store.choose(Filter(control.CANCELLABLE))]
    run(other, home)
    answer = control.cancel(store, clock, chosen, rescue=nobody_died, exact=True)
    assert answer.done == ["b"]
    assert [error.message for _, error in answer.refused] == ["job 'a' is completed: cannot cancel it"]
    dead = control.retry(store, ["b"], states=dlq.DEAD, exact=True)
    assert [error.message for _, error in dead.refused] == ["job 'b' is cancelled: cannot retry it"]


def chain(store: Store, length: int) -> list[str]:
    """Each waits for the one before it."""
    names = [f"j{number}" for number in range(length)]
    parents = [(), *((Dependency(name),) for name in names)]
    store.enqueue([new_job(name, max_retries=1, depends_on=of) for name, of in zip(names, parents, strict=False)])
    return names


def test_of_many_those_that_a_parent_takes_with_it_are_not_refused(store: Store, home: Path, clock: FakeClock) -> None:
    """They come some at a time: what waits for the first ones has gone, or come back, with them."""
    names = chain(store, AT_ONCE + 10)
    answer = control.cancel(store, clock, names, rescue=nobody_died, exact=True)
    assert answer == (names, [])
    assert store.count(Filter(states=frozenset({State.CANCELLED}))) == len(names)
    last = store.get(names[-1])
    assert last.error == f"cancelled: {names[-2]}, for which it waited, is cancelled"


def test_of_many_those_that_come_back_with_a_parent_wait_for_it_again(
    store: Store, home: Path, clock: FakeClock
) -> None:
    names = chain(store, AT_ONCE + 10)
    register(store, home)
    run(store, home, KILLED)
    while store.decide():
        pass
    assert control.retry(store, names, exact=True) == (names, [])
    assert [store.get(name).state for name in (names[0], names[1], names[-1])] == ["pending", "blocked", "blocked"]


def test_who_was_cancelled_before_is_refused_as_ever(store: Store, clock: FakeClock) -> None:
    names = chain(store, AT_ONCE + 2)
    store.cancel([names[-1]])
    answer = control.cancel(store, clock, names, rescue=nobody_died, exact=True)
    assert [(refusal.id, refusal.error.code) for refusal in answer.refused] == [(names[-1], "wrong-state")]
