"""amend: changes to what waits, and to nothing else."""

from __future__ import annotations

import pytest

from queuectl.jobs.edit import HOLD, RELEASE, RUN_NOW, JobEdit
from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.store.store import Store
from queuectl.store.types import Edited
from queuectl.units import to_ms
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.conftest import Hire
from tests.store.hands import BAD, OK, Hands

DONE = Edited(State.PENDING, is_stale=False)


def test_every_field_can_become_different_and_the_others_stay(store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job("a", timeout_ms=5000, tags=("t",), first_is_free=True), new_job("b")])
    before = store.get("a")
    clock.advance(1)
    change = JobEdit(command="make", queue="q", priority=7, delay_ms=60_000, max_retries=9, timeout_ms=1234)
    assert store.edit(["a"], change) == {"a": DONE}
    job = store.get("a")
    assert (job.command, job.argv, job.queue, job.priority, job.effective_priority) == ("make", None, "q", 7, 7)
    assert (job.max_retries, job.first_is_free, job.timeout_ms) == (9, True, 1234)
    assert to_ms(job.run_at) == clock.now_ms() + 60_000
    assert to_ms(job.updated_at) == clock.now_ms()
    assert (job.state, job.tags, job.created_at, job.cwd) == (before.state, before.tags, before.created_at, before.cwd)
    assert store.get("b").priority == 0
    store.edit(["a"], JobEdit(first_is_free=False, timeout_ms=0))
    job = store.get("a")
    assert (job.command, job.priority, job.first_is_free, job.timeout_ms) == ("make", 7, False, None)


def test_a_shell_command_becomes_an_argv_and_back(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", command="true")])
    store.edit(["a"], JobEdit(argv=("echo", "Größe", 'a"b')))
    assert (store.get("a").command, store.get("a").argv) == (None, ("echo", "Größe", 'a"b'))
    assert worker.claim_one().argv == ("echo", "Größe", 'a"b')
    store.enqueue([new_job("b", command=None, argv=("true",))])
    store.edit(["b"], JobEdit(command="false"))
    assert (worker.claim_one().command, store.get("b").argv) == ("false", None)


@pytest.mark.parametrize("ageing", ["off", "1s", "enqueues"])
def test_a_new_priority_is_a_new_place_in_the_line(store: Store, worker: Hands, clock: FakeClock, ageing: str) -> None:
    store.set_config({"ageing": ageing})
    store.enqueue([new_job("a"), new_job("b"), new_job("c")])
    clock.advance(1)
    store.edit(["c"], JobEdit(priority=5))
    store.edit(["a"], JobEdit(priority=-5))
    assert [claim.id for claim in worker.claim(3)] == ["c", "b", "a"]


def test_a_new_time_to_run_is_kept_to(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("now"), new_job("later", delay_ms=60_000)])
    store.edit(["now"], JobEdit(delay_ms=10_000))
    store.edit(["later"], JobEdit(run_at_ms=clock.now_ms() + 5_000))
    assert worker.exchange(limit=2).next_due_ms == 5_000
    clock.advance(5)
    assert worker.claim_one().id == "later"
    clock.advance(5)
    assert worker.claim_one().id == "now"


def test_a_delayed_job_that_runs_now_has_waited_from_now_on(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.set_config({"ageing": "1s"})
    store.enqueue([new_job("a", delay_ms=3_600_000)])
    clock.advance(10)
    store.edit(["a"], RUN_NOW)
    clock.advance(3)
    assert store.get("a").effective_priority == 3
    assert worker.claim_one().id == "a"
    assert store.get("a").wait_ms == 3_000


def test_a_failed_job_that_runs_now_keeps_state_attempts_and_age(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.set_config({"ageing": "1s"})
    store.enqueue([new_job("a", backoff_base=1000.0)])
    worker.run(BAD)
    clock.advance(2)
    assert store.edit(["a"], RUN_NOW) == {"a": Edited(State.FAILED, is_stale=False)}
    job = store.get("a")
    assert (job.state, job.attempts, job.effective_priority) == (State.FAILED, 1, 2)
    assert worker.claim_one().attempts == 1


def test_a_held_job_is_not_claimed_until_it_is_released(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("now"), new_job("later", delay_ms=1_000)])
    store.edit(["now", "later"], HOLD)
    clock.advance(5)
    exchange = worker.exchange(limit=2)
    assert (exchange.claims, exchange.next_due_ms) == ([], None)
    job = store.get("now")
    assert (job.held, job.state, job.reason) == (True, State.PENDING, "held")
    store.edit(["later", "now"], RELEASE)
    assert (store.get("now").held, [claim.id for claim in worker.claim(2)]) == (False, ["now", "later"])


def test_a_job_released_before_its_time_waits_for_it(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", delay_ms=9_000)])
    store.edit(["a"], HOLD)
    store.edit(["a"], RELEASE)
    assert worker.exchange(limit=1).next_due_ms == 9_000
    clock.advance(9)
    assert worker.claim_one().id == "a"


def test_a_held_job_stays_held_whatever_else_changes(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    store.edit(["a"], HOLD)
    store.edit(["a"], JobEdit(priority=5, delay_ms=0))
    assert store.get("a").held
    assert worker.claim(1) == []


def test_nothing_that_is_held_keeps_a_worker_from_being_done(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("failed"), new_job("pending", queue="q")])
    worker.run(BAD)
    store.edit(["pending"], HOLD)
    assert not store.is_drained(None)
    store.edit(["failed"], HOLD)
    clock.advance(60)
    assert store.is_drained(None)
    assert store.is_drained(("q",))
    store.edit(["failed"], RELEASE)
    assert not store.is_drained(None)


def test_a_job_that_goes_to_another_queue_is_counted_there_and_was_enqueued_once(store: Store, hire: Hire) -> None:
    store.enqueue([new_job("a", queue="p"), new_job("b", queue="p")])
    store.edit(["a", "b"], JobEdit(queue="q"))
    store.edit(["a"], JobEdit(queue="q"))  # where it is already
    assert {queue: states[State.PENDING] for queue, states in store.tally().items()} == {"p": 0, "q": 2}
    assert {queue: of["enqueued"] for queue, of in store.totals().items()} == {"p": 2, "q": 0}
    assert hire("w1", queues=("p",)).claim(2) == []
    assert [claim.id for claim in hire("w2", queues=("q",)).claim(2)] == ["a", "b"]


@pytest.mark.parametrize("state", [State.PROCESSING, *sorted(FINAL)])
def test_what_runs_or_has_ended_stays_as_it_is(store: Store, worker: Hands, backend: Backend, state: State) -> None:
    store.enqueue([new_job("a", max_retries=1)])
    match state:
        case State.PROCESSING:
            worker.claim_one()
        case State.CANCELLED:
            store.cancel(["a"])
        case _:
            worker.run(BAD if state is State.DEAD else OK)
    before = backend.rows()
    assert store.edit(["a"], JobEdit(priority=5, held=True)) == {"a": Edited(state, is_stale=False)}
    assert backend.rows() == before


def test_a_blocked_job_can_be_changed_and_waits_on(store: Store, worker: Hands, backend: Backend) -> None:
    store.enqueue([new_job("a")])
    backend.force("a", state=State.BLOCKED, ready=0)
    backend_rows = backend.rows("moves")
    store.edit(["a"], JobEdit(priority=5, delay_ms=0))
    assert (store.get("a").priority, store.get("a").state) == (5, State.BLOCKED)
    assert worker.claim(1) == []
    assert backend.rows("moves") == backend_rows
    store.edit(["a"], RUN_NOW, states=WAITING - {State.BLOCKED})
    backend.force("a", state=State.PENDING, ready=1)


def test_a_job_that_has_changed_since_it_was_shown_stays_as_it_is(store: Store, clock: FakeClock) -> None:
    store.enqueue([new_job("a"), new_job("b")])
    shown = to_ms(store.get("a").updated_at)
    clock.advance(1)
    assert store.edit(["a"], JobEdit(priority=1), as_of=shown) == {"a": DONE}
    assert store.edit(["a"], JobEdit(priority=2), as_of=shown) == {"a": Edited(State.PENDING, is_stale=True)}
    assert store.get("a").priority == 1


def test_only_those_in_one_of_the_named_states_change(store: Store) -> None:
    store.enqueue([new_job("a")])
    assert store.edit(["a"], JobEdit(priority=1), states=frozenset({State.FAILED})) == {"a": DONE}
    assert store.get("a").priority == 0


def test_nothing_changes_under_an_unknown_id_or_none(store: Store, backend: Backend) -> None:
    store.enqueue([new_job("ab")])
    before = backend.rows()
    assert store.edit(["a"], HOLD) == {}
    assert store.edit([], HOLD) == {}
    assert backend.rows() == before


def test_a_cancelled_job_that_was_held_is_still_held_when_it_is_revived(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a")])
    store.edit(["a"], HOLD)
    store.cancel(["a"])
    store.retry(["a"], states=frozenset(State))
    assert store.get("a").held
    assert worker.claim(1) == []
