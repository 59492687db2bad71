from __future__ import annotations

from pathlib import Path

import pytest

from queuectl.errors import InvalidInput, StaleEdit, WrongState
from queuectl.job.change import Change
from queuectl.job.lifecycle import State
from queuectl.job.model import to_ms
from queuectl.job.names import WEBHOOKS
from queuectl.queue import amend
from queuectl.store.protocol import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.queue.life import claim, enqueue, register, run


def test_what_cannot_be_changed_any_more_is_refused_with_a_way_out(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "over")
    run(store, home)
    enqueue(store, "running")
    claim(store, home)
    enqueue(store, "waits")
    answer = amend.edit(store, ["over", "running", "waits"], Change(priority=5))
    assert answer.done == ["waits"]
    assert [(ref, error.message) for ref, error in answer.refused] == [
        ("over", "job 'over' is completed: cannot edit it"),
        ("running", "job 'running' is processing: cannot edit it"),
    ]
    assert "queuectl clone" in answer.refused[0].error.hint
    assert "queuectl cancel" in answer.refused[1].error.hint


def test_a_call_is_neither_edited_nor_cloned_but_may_go_sooner_and_wait(store: Store) -> None:
    store.enqueue([new_job(id="call", queue=WEBHOOKS)])
    enqueue(store, "mine")
    before = store.get("call")
    answer = amend.edit(store, ["call", "mine"], Change(command="rm -r x", priority=3))
    assert answer.done == ["mine"]
    (refusal,) = answer.refused
    assert isinstance(refusal.error, InvalidInput)
    assert "is for calls of webhooks only" in refusal.error.message
    assert store.get("call") == before
    with pytest.raises(InvalidInput, match="cannot clone one"):
        amend.clone(store, "call", {"queue": "mine"})
    assert amend.edit(store, ["call"], Change(priority=5)).done == ["call"]
    assert amend.hold(store, ["call"]).done == ["call"]


def test_only_what_can_be_retried_is_said_to_be(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "over")
    run(store, home)
    enqueue(store, "called-off")
    store.cancel(["called-off"])
    over, called_off = amend.hold(store, ["over", "called-off"]).refused
    assert "retry" not in over.error.hint
    assert "queuectl retry" in called_off.error.hint


def test_a_stale_edit_is_refused(store: Store, other: Store, clock: FakeClock) -> None:
    enqueue(store, "a")
    shown = to_ms(store.get("a").updated_at)
    clock.advance(1)
    amend.hold(other, ["a"])
    (refusal,) = amend.edit(store, ["a"], Change(priority=5), as_of=shown).refused
    assert isinstance(refusal.error, StaleEdit)
    assert store.get("a").priority == 0


def test_a_job_that_began_while_it_was_edited_is_refused_for_that(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    shown = to_ms(store.get("a").updated_at)
    clock.advance(1)
    claim(store, home)
    (refusal,) = amend.edit(store, ["a"], Change(priority=5), as_of=shown).refused
    assert isinstance(refusal.error, WrongState)


def test_hold_release_and_run_now_name_their_verb(store: Store, home: Path) -> None:
    register(store, home)
    enqueue(store, "a")
    claim(store, home)
    for do, verb in ((amend.hold, "hold"), (amend.release, "release"), (amend.run_now, "run")):
        assert do(store, ["a"]).refused[0].error.message == f"job 'a' is processing: cannot {verb} it"


def test_a_clone_has_the_fields_of_the_other_and_no_past(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    fields = {"queue": "q", "priority": 3, "max_retries": 1, "first_is_free": True, "backoff_base": 3.0}
    rest = {"timeout_ms": 5000, "cwd": "/srv", "env": {"A": "1"}, "tags": ("t",), "unique_key": "k"}
    store.enqueue([new_job("a", **fields, **rest)])
    run(store, home)
    new = amend.clone(store, "a", {})
    assert new == new_job(None, **fields, **{**rest, "unique_key": None})
    assert amend.clone(store, "a", {"argv": ["true"], "timeout": 0, "env": {"B": "2"}, "id": "b"}) == new._replace(
        command=None, argv=("true",), timeout_ms=None, env={"A": "1", "B": "2"}, id="b"
    )
    with pytest.raises(InvalidInput):
        amend.clone(store, "a", {"priority": "high"})


def test_a_clone_of_a_job_with_a_time_of_its_own_has_it_too(store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job("a", delay_ms=60_000)])
    assert amend.clone(store, "a", {}).run_at_ms == clock.now_ms() + 60_000
    later = amend.clone(store, "a", {"delay": 5})
    assert (later.run_at_ms, later.delay_ms) == (None, 5000)
    store.cancel(["a"])
    assert store.get("a").state is State.CANCELLED
    assert amend.clone(store, "a", {}).run_at_ms is None
