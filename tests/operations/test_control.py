from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from queuectl.errors import InvalidInput, StaleEdit, WrongState
from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.edit import JobEdit
from queuectl.jobs.outcome import Cancelled
from queuectl.jobs.states import State
from queuectl.operations import control
from queuectl.operations.bulk import BULK_BATCH_SIZE
from queuectl.store.store import Store
from queuectl.store.types import Filter
from queuectl.text import WEBHOOK_QUEUE
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.operations.life import KILLED, claim, end, enqueue, register, run


def no_rescue() -> None:
    """No worker is dead."""


def test_a_waiting_job_is_cancelled_at_once(store: Store, clock: FakeClock) -> None:
    enqueue(store, "a")
    answer = control.cancel(store, clock, ["a"], rescue=no_rescue)
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

    answer = control.cancel(store, clock, ["a"], rescue=no_rescue, on_wait=on_wait)
    assert answer.done == ["a"]
    assert told == [["a"]]
    assert store.get("a").state is State.CANCELLED
    assert store.get("a").attempts == 0


def test_cancel_rescues_the_jobs_of_a_dead_worker(store: Store, other: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    claim(other, home)
    answer = control.cancel(store, clock, ["a"], rescue=lambda: other.claims.rescue("w1", max_crashes=3))
    assert answer.done == ["a"]
    assert store.get("a").state is State.CANCELLED


def test_an_ended_job_cannot_be_cancelled(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home)
    enqueue(store, "b")
    control.cancel(store, clock, ["b"], rescue=no_rescue)
    answer = control.cancel(store, clock, ["a", "b"], rescue=no_rescue)
    assert answer.done == []
    assert [error.message for _, error in answer.refused] == [
        "job 'a' is completed: cannot cancel it",
        "job 'b' is cancelled: cannot cancel it",
    ]


def test_retry_resets_the_attempts_of_dead_and_cancelled_jobs(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "dead")
    run(store, home, KILLED)
    enqueue(store, "off")
    control.cancel(store, clock, ["off"], rescue=no_rescue)
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
def test_retry_refuses_a_job_that_has_not_failed(store: Store, home: Path, state: str) -> None:
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
    assert [job.id for job in store.choose(Filter(control.DEAD))] == ["a", "c"]
    assert control.require_dead(store, "a") == "a"
    with pytest.raises(WrongState):
        control.require_dead(store, "b")


def test_dlq_retry_accepts_only_dead_jobs(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home, KILLED)
    enqueue(store, "off")
    control.cancel(store, clock, ["off"], rescue=no_rescue)
    answer = control.retry_dead(store, ["a", "off"])
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
    answer = control.purge_dead(store, ["a", "b"])
    assert answer.done == ["a"]
    assert [ref for ref, _ in answer.refused] == ["b"]
    assert not log.exists()
    assert [job.id for job in store.jobs()] == ["b"]


def test_purge_ignores_a_missing_log(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    run(store, home, KILLED)
    assert control.purge_dead(store, ["a"]).done == ["a"]


def test_a_job_that_has_changed_since_it_was_selected_is_refused(
    store: Store, other: Store, home: Path, clock: FakeClock
) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    chosen = [job.id for job in store.choose(Filter(control.CANCELLABLE))]
    run(other, home)
    answer = control.cancel(store, clock, chosen, rescue=no_rescue, exact=True)
    assert answer.done == ["b"]
    assert [error.message for _, error in answer.refused] == ["job 'a' is completed: cannot cancel it"]
    dead = control.retry(store, ["b"], states=control.DEAD, exact=True)
    assert [error.message for _, error in dead.refused] == ["job 'b' is cancelled: cannot retry it"]


def chain(store: Store, length: int) -> list[str]:
    """Enqueue a chain of jobs, each with the previous one as its parent."""
    names = [f"j{number}" for number in range(length)]
    parents = [(), *((Dependency(name),) for name in names)]
    store.enqueue([new_job(name, max_retries=1, depends_on=of) for name, of in zip(names, parents, strict=False)])
    return names


def test_children_that_are_cancelled_with_their_parent_are_not_refused(
    store: Store, home: Path, clock: FakeClock
) -> None:
    """In batches: the children of the first batch are changed with their parents."""
    names = chain(store, BULK_BATCH_SIZE + 10)
    answer = control.cancel(store, clock, names, rescue=no_rescue, exact=True)
    assert answer == (names, [])
    assert store.count(Filter(states=frozenset({State.CANCELLED}))) == len(names)
    last = store.get(names[-1])
    assert last.error == f"cancelled: {names[-2]}, for which it waited, is cancelled"


def test_children_that_are_retried_with_their_parent_are_blocked_again(
    store: Store, home: Path, clock: FakeClock
) -> None:
    names = chain(store, BULK_BATCH_SIZE + 10)
    register(store, home)
    run(store, home, KILLED)
    while store.dependencies.decide():
        pass
    assert control.retry(store, names, exact=True) == (names, [])
    assert [store.get(name).state for name in (names[0], names[1], names[-1])] == ["pending", "blocked", "blocked"]


def test_a_job_that_was_cancelled_before_is_refused(store: Store, clock: FakeClock) -> None:
    names = chain(store, BULK_BATCH_SIZE + 2)
    store.cancel([names[-1]])
    answer = control.cancel(store, clock, names, rescue=no_rescue, exact=True)
    assert [(refusal.id, refusal.error.code) for refusal in answer.refused] == [(names[-1], "wrong-state")]


def test_an_edit_of_a_job_that_does_not_wait_is_refused_with_a_hint(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "over")
    run(store, home)
    enqueue(store, "running")
    claim(store, home)
    enqueue(store, "waits")
    answer = control.edit(store, ["over", "running", "waits"], JobEdit(priority=5))
    assert answer.done == ["waits"]
    assert [(ref, error.message) for ref, error in answer.refused] == [
        ("over", "job 'over' is completed: cannot edit it"),
        ("running", "job 'running' is processing: cannot edit it"),
    ]
    assert "queuectl clone" in answer.refused[0].error.hint
    assert "queuectl cancel" in answer.refused[1].error.hint


def test_a_webhook_delivery_can_be_reprioritized_and_held_but_not_edited_or_cloned(store: Store) -> None:
    store.enqueue([new_job(id="call", queue=WEBHOOK_QUEUE)])
    enqueue(store, "mine")
    before = store.get("call")
    answer = control.edit(store, ["call", "mine"], JobEdit(command="rm -r x", priority=3))
    assert answer.done == ["mine"]
    (refusal,) = answer.refused
    assert isinstance(refusal.error, InvalidInput)
    assert "is reserved for webhook deliveries" in refusal.error.message
    assert store.get("call") == before
    with pytest.raises(InvalidInput, match="cannot clone one"):
        control.clone(store, "call", {"queue": "mine"})
    assert control.edit(store, ["call"], JobEdit(priority=5)).done == ["call"]
    assert control.hold(store, ["call"]).done == ["call"]


def test_the_hint_suggests_retry_only_where_it_is_possible(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "over")
    run(store, home)
    enqueue(store, "cancelled")
    store.cancel(["cancelled"])
    over, cancelled = control.hold(store, ["over", "cancelled"]).refused
    assert "retry" not in over.error.hint
    assert "queuectl retry" in cancelled.error.hint


def test_a_stale_edit_is_refused(store: Store, other: Store, clock: FakeClock) -> None:
    enqueue(store, "a")
    shown = to_ms(store.get("a").updated_at)
    clock.advance(1)
    control.hold(other, ["a"])
    (refusal,) = control.edit(store, ["a"], JobEdit(priority=5), as_of=shown).refused
    assert isinstance(refusal.error, StaleEdit)
    assert store.get("a").priority == 0


def test_a_job_that_started_during_the_edit_is_refused_because_it_runs(
    store: Store, home: Path, clock: FakeClock
) -> None:
    register(store, home)
    enqueue(store, "a")
    shown = to_ms(store.get("a").updated_at)
    clock.advance(1)
    claim(store, home)
    (refusal,) = control.edit(store, ["a"], JobEdit(priority=5), as_of=shown).refused
    assert isinstance(refusal.error, WrongState)


def test_hold_release_and_run_now_name_their_verb(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    claim(store, home)
    for do, verb in ((control.hold, "hold"), (control.release, "release"), (control.run_now, "run")):
        assert do(store, ["a"]).refused[0].error.message == f"job 'a' is processing: cannot {verb} it"


def test_a_clone_has_the_fields_of_the_original_and_no_history(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    fields = {"queue": "q", "priority": 3, "max_retries": 1, "first_is_free": True, "backoff_base": 3.0}
    rest = {"timeout_ms": 5000, "cwd": "/srv", "env": {"A": "1"}, "tags": ("t",), "unique_key": "k"}
    store.enqueue([new_job("a", **fields, **rest)])
    run(store, home)
    new = control.clone(store, "a", {})
    assert new == new_job(None, **fields, **{**rest, "unique_key": None})
    assert control.clone(store, "a", {"argv": ["true"], "timeout": 0, "env": {"B": "2"}, "id": "b"}) == new._replace(
        command=None, argv=("true",), timeout_ms=None, env={"A": "1", "B": "2"}, id="b"
    )
    with pytest.raises(InvalidInput):
        control.clone(store, "a", {"priority": "high"})


def test_a_clone_of_a_delayed_job_is_due_at_the_same_time(store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job("a", delay_ms=60_000)])
    assert control.clone(store, "a", {}).run_at_ms == clock.now_ms() + 60_000
    later = control.clone(store, "a", {"delay": 5})
    assert (later.run_at_ms, later.delay_ms) == (None, 5000)
    store.cancel(["a"])
    assert store.get("a").state is State.CANCELLED
    assert control.clone(store, "a", {}).run_at_ms is None
