"""Schedules: what is stored, and that each run is enqueued once."""

from __future__ import annotations

from typing import Any

import pytest

from queuectl.cron.schedule import Overlap, RunDecision, Schedule, ScheduleChange, ScheduleView, UnfinishedJob
from queuectl.errors import ScheduleExists, ScheduleNotFound
from queuectl.jobs.states import State
from queuectl.store.schedules import MAX_UNFINISHED_READ, RUNS_KEPT, Rule
from queuectl.store.store import Store
from queuectl.store.types import Filter, ScheduleCheck
from tests.clock import START_MS, FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.hands import BAD, Hands
from tests.store.wakeups import drain, wakes

T = START_MS


def schedule(name: str = "s", **changes: Any) -> Schedule:
    plain = Schedule(
        name=name,
        expression="0 2 * * *",
        tz="Europe/Berlin",
        anchor_ms=T,
        fields={"command": "true", "tags": ["a"]},
        overlap=Overlap.SKIP,
        catch_up=1,
        jitter_ms=0,
        until_ms=None,
        is_paused=False,
        created_ms=T,
        updated_ms=T,
        tick_ms=T + 1000,
        start_ms=T + 1000,
        look_ms=T + 1000,
    )
    return plain._replace(**changes)


def firing(*ticks: RunDecision, release: str | None = None, **changes: Any) -> Rule:
    return lambda view: ScheduleChange(view.schedule._replace(**changes), ticks, release)


def tick(job_id: str, at_ms: int = T, **rest: Any) -> RunDecision:
    return RunDecision(at_ms, new_job(job_id, **rest.pop("job", {})), **rest)


def nothing(view: ScheduleView) -> ScheduleChange | None:
    return None


# ── what is kept ────────────────────────────────────────────────────────────────────────────────────────────────────


FULL = {
    "overlap": Overlap.QUEUE,
    "catch_up": 7,
    "jitter_ms": 1500,
    "until_ms": T + 10**9,
    "last_ms": T - 5,
    "waiting": "w",
    "fields": {"argv": ["a b", "ü"], "env": {"A": "b"}, "timeout": 1.5},
}


@pytest.mark.parametrize("changes", [{}, FULL, {"is_paused": True, "tick_ms": None, "start_ms": None, "look_ms": None}])
def test_a_schedule_is_kept_as_it_was_added(store: Store, other: Store, changes: dict[str, Any]) -> None:
    one = schedule(**changes)
    store.schedules.add(one)
    assert other.schedules.get("s") == one
    assert other.schedules.all() == [one]


def test_schedules_are_listed_by_name(store: Store) -> None:
    for name in ("b", "a", "B"):
        store.schedules.add(schedule(name))
    assert [one.name for one in store.schedules.all()] == ["B", "a", "b"]


def test_a_name_that_is_taken_is_refused_and_nothing_changed(store: Store) -> None:
    store.schedules.add(schedule())
    with pytest.raises(ScheduleExists):
        store.schedules.add(schedule(expression="@daily"))
    assert store.schedules.get("s").expression == "0 2 * * *"


def test_what_is_not_there_is_not_found(store: Store) -> None:
    for ask in (store.schedules.get, store.schedules.remove, lambda name: store.schedules.change(name, nothing)):
        with pytest.raises(ScheduleNotFound):
            ask("none")
    assert store.schedules.runs("none", limit=5) == []
    assert store.schedules.all() == []


def test_a_schedule_that_is_removed_goes_with_its_ticks_and_leaves_its_jobs(store: Store, backend: Backend) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(tick("a")))
    store.schedules.remove("s")
    assert store.schedules.all() == []
    assert backend.rows("schedule_runs") == []
    assert store.get("a").cron == "s"


def test_a_job_that_waits_for_a_schedule_that_is_removed_need_not_any_more(store: Store, worker: Hands) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(tick("a", is_held=True), waiting="a"))
    assert worker.claim(1) == []
    store.schedules.remove("s")
    assert worker.claim_one().id == "a"


def test_a_reset_keeps_the_schedules(store: Store) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(tick("a")))
    store.reset()
    assert [one.name for one in store.schedules.all()] == ["s"]
    assert [(past.job, past.state) for past in store.schedules.runs("s", limit=5)] == [("a", None)]


# ── when to look ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_has_to_be_looked_at_is_told_the_first_one_first(store: Store, clock: FakeClock) -> None:
    store.schedules.add(schedule("late", look_ms=T + 9000))
    store.schedules.add(schedule("soon", look_ms=T + 500))
    store.schedules.add(schedule("never", tick_ms=None, start_ms=None, look_ms=None))
    assert store.schedules.checks(limit=9) == [ScheduleCheck("soon", 500), ScheduleCheck("late", 9000)]
    assert store.schedules.checks(limit=1) == [ScheduleCheck("soon", 500)]
    clock.advance(1)
    assert store.schedules.checks(limit=9) == [ScheduleCheck("soon", 0), ScheduleCheck("late", 8000)]


def test_every_change_of_a_schedule_wakes_the_workers(store: Store, other: Store, worker: Hands) -> None:
    drain(worker.wakeup)
    for act in (
        lambda: other.schedules.add(schedule()),
        lambda: other.schedules.change("s", firing(catch_up=3)),
        lambda: other.schedules.remove("s"),
    ):
        act()
        assert wakes(worker.wakeup)
        drain(worker.wakeup)


# ── firing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_rule_sees_the_schedule_the_time_and_what_has_not_ended(
    store: Store, clock: FakeClock, worker: Hands
) -> None:
    one = schedule()
    store.schedules.add(one)
    store.schedules.add(schedule("t"))
    store.schedules.change("s", firing(*(tick(f"j{number}", T + number) for number in range(5))))
    store.schedules.change("t", firing(tick("theirs")))
    for outcome in (BAD, None):
        claim = worker.claim_one()
        worker.end(claim, outcome) if outcome else None  # j0 waits for its retry, j1 runs
    store.cancel(["j2"])
    clock.advance(3)
    seen: list[ScheduleView] = []

    def look(view: ScheduleView) -> None:
        seen.append(view)

    assert store.schedules.change("s", look) is None
    left = tuple(UnfinishedJob(f"j{number}", is_held=False) for number in (0, 1, 3, 4))
    assert seen == [ScheduleView(one, T + 3000, left)]


def test_the_job_that_waits_is_seen_however_many_there_are(store: Store) -> None:
    store.schedules.add(schedule())
    ticks = [tick(f"a{number:03}", T + number) for number in range(20)]
    store.schedules.change("s", firing(*ticks, tick("zz", T + 99, is_held=True), waiting="zz"))
    seen: list[ScheduleView] = []
    store.schedules.change("s", seen.append)
    assert UnfinishedJob("zz", is_held=True) in seen[0].unended
    assert len(seen[0].unended) <= MAX_UNFINISHED_READ + 1


def test_a_fired_job_is_an_ordinary_one_that_knows_its_schedule(store: Store, worker: Hands) -> None:
    store.schedules.add(schedule())
    given = {"queue": "q", "priority": 4, "tags": ("x", "y")}
    done = store.schedules.change(
        "s", firing(tick("a", job=given), last_ms=T, tick_ms=T + 5, start_ms=T + 6, look_ms=T + 6)
    )
    job = store.get("a")
    assert (job.cron, job.state, job.queue, job.priority, job.tags) == ("s", State.PENDING, "q", 4, ("x", "y"))
    assert store.tally()["q"][State.PENDING] == 1
    assert done is not None
    assert done.schedule == store.schedules.get("s")
    assert (done.schedule.last_ms, done.schedule.look_ms) == (T, T + 6)
    assert worker.claim_one().id == "a"


def test_a_job_that_no_schedule_added_has_none(store: Store) -> None:
    store.enqueue([new_job("a")])
    assert store.get("a").cron is None


def test_a_tick_that_was_decided_about_is_not_fired_again(store: Store, other: Store) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(tick("a"), RunDecision(T + 1, None, "no")))
    again = other.schedules.change("s", firing(tick("b"), tick("c", T + 1), tick("d", T + 2)))
    assert again is not None
    assert [one.job.id for one in again.ticks if one.job] == ["d"]
    assert [job.id for job in store.jobs(descending=False)] == ["a", "d"]
    assert [past.job for past in store.schedules.runs("s", limit=9)] == ["d", None, "a"]


def test_a_tick_may_replace_a_job_that_waits_and_not_one_that_runs(store: Store, worker: Hands) -> None:
    store.schedules.add(schedule())
    store.enqueue([new_job("mine", unique_key="k")])
    keyed = {"job": {"unique_key": "k", "if_exists": "replace"}}
    change = store.schedules.change("s", firing(tick("a", T, **keyed), tick("b", T + 1, **keyed)))
    assert change is not None
    assert [(one.job and one.job.id, one.reason) for one in change.ticks] == [
        (None, "job b of a later time takes its place"),
        ("b", None),
    ]
    assert (store.get("mine").state, store.get("mine").error) == (State.CANCELLED, "cancelled: replaced by b")
    assert [claim.id for claim in worker.claim(9)] == ["b"]
    change = store.schedules.change("s", firing(tick("c", T + 2, **keyed)))
    assert change is not None
    assert change.ticks[0].reason == "job b has the key 'k'"


def test_the_job_of_a_tick_joins_its_batch_unless_that_is_complete(store: Store, worker: Hands) -> None:
    store.schedules.add(schedule())
    store.enqueue([new_job("first", batch="over")], on_complete=new_job("last", batch="over"))
    worker.run()
    store.batches.complete_ended()
    change = store.schedules.change(
        "s", firing(tick("a", T, job={"batch": "over"}), tick("b", T + 1, job={"batch": "going"}))
    )
    assert change is not None
    assert [(one.job and one.job.id, one.reason) for one in change.ticks] == [
        (None, "the batch 'over' is complete"),
        ("b", None),
    ]
    assert (store.get("b").batch, store.get("b").cron) == ("going", "s")


def test_a_run_whose_unique_key_is_taken_is_skipped_and_names_the_holder(
    store: Store, other: Store, worker: Hands
) -> None:
    store.schedules.add(schedule())
    other.enqueue([new_job("mine", unique_key="k")])
    keyed = {"job": {"unique_key": "k"}}
    change = store.schedules.change("s", firing(tick("a", T, **keyed), tick("b", T + 1, **keyed), tick("c", T + 2)))
    assert change is not None
    assert [(one.job and one.job.id, one.reason) for one in change.ticks] == [
        (None, "job mine has the key 'k'"),
        (None, "job mine has the key 'k'"),
        ("c", None),
    ]
    assert [(past.job, past.reason) for past in store.schedules.runs("s", limit=2)] == [
        ("c", None),
        (None, "job mine has the key 'k'"),
    ]
    worker.run()
    # Free again: the first of several has it.
    change = store.schedules.change("s", firing(tick("d", T + 3, **keyed), tick("e", T + 4, **keyed)))
    assert change is not None
    assert [(one.job and one.job.id, one.reason) for one in change.ticks] == [
        ("d", None),
        (None, "job d has the key 'k'"),
    ]
    assert (store.get("d").unique_key, store.get("d").cron) == ("k", "s")
    within = {"job": {"unique_key": "k", "unique_for_ms": 10**6}}
    worker.run()
    change = store.schedules.change("s", firing(tick("f", T + 5, **within)))
    assert change is not None
    assert change.ticks[0].job is None


def test_a_run_by_hand_does_not_stand_in_for_a_tick_of_the_same_moment(store: Store) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(tick("hand", is_by_hand=True)))
    store.schedules.change("s", firing(tick("tick")))
    assert {(past.job, past.is_by_hand) for past in store.schedules.runs("s", limit=9)} == {
        ("hand", True),
        ("tick", False),
    }


def test_two_schedules_may_tick_at_the_same_moment(store: Store) -> None:
    for name in ("s", "t"):
        store.schedules.add(schedule(name))
        store.schedules.change(name, firing(tick(f"of-{name}")))
    assert {job.cron for job in store.jobs()} == {"s", "t"}


def test_a_rule_that_fails_changes_nothing(store: Store, backend: Backend) -> None:
    one = schedule()
    store.schedules.add(one)

    def fail(view: ScheduleView) -> ScheduleChange:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.schedules.change("s", fail)
    assert store.schedules.get("s") == one
    assert backend.rows() == []
    assert store.schedules.change("s", firing(tick("a"))) is not None


def test_a_rule_with_nothing_to_say_rings_no_bell(store: Store, other: Store, worker: Hands) -> None:
    store.schedules.add(schedule())
    assert drain(worker.wakeup)
    assert other.schedules.change("s", nothing) is None
    assert not drain(worker.wakeup)


# ── waiting for the one before ──────────────────────────────────────────────────────────────────────────────────────


def test_a_held_job_is_not_claimed_until_it_is_let_go(store: Store, worker: Hands) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(tick("a", is_held=True), waiting="a"))
    job = store.get("a")
    assert (job.held, job.state) == (True, State.PENDING)
    assert job.reason == "waits until the job before it of the schedule s has ended"
    assert worker.claim(5) == []
    store.schedules.change("s", firing(release="a", waiting=None))
    assert store.get("a").held is False
    assert worker.claim_one().id == "a"


def test_a_held_job_with_a_delay_still_waits_for_its_time(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(tick("a", is_held=True, job={"delay_ms": 5000}), waiting="a"))
    store.schedules.change("s", firing(release="a", waiting=None))
    assert worker.claim(1) == []
    clock.advance(5)
    assert worker.claim_one().id == "a"


def test_a_held_job_that_was_cancelled_stays_cancelled(store: Store, worker: Hands) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(tick("a", is_held=True), waiting="a"))
    store.cancel(["a"])
    store.schedules.change("s", firing(release="a", waiting=None))
    assert store.get("a").state is State.CANCELLED
    assert worker.claim(1) == []


# ── what was ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tick_tells_how_its_job_is_now_and_that_it_is_gone(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(tick("a", job={"max_retries": 1}), RunDecision(T + 1, None, "why", times=3)))
    worker.run(BAD)
    skipped, fired = store.schedules.runs("s", limit=5)
    assert (fired.at_ms, fired.decided_ms, fired.job, fired.state, fired.exit_code) == (T, T, "a", State.DEAD, 3)
    assert fired.error
    assert (skipped.at_ms, skipped.job, skipped.reason, skipped.times, skipped.state) == (T + 1, None, "why", 3, None)
    assert store.schedules.runs("s", limit=5, fired=True) == [fired]
    assert store.schedules.runs("s", limit=1) == [skipped]
    store.purge(["a"])
    assert (
        store.schedules.runs("s", limit=5, fired=True)[0].job,
        store.schedules.runs("s", limit=5, fired=True)[0].state,
    ) == ("a", None)


def test_only_the_latest_ticks_are_kept(store: Store, backend: Backend) -> None:
    store.schedules.add(schedule())
    store.schedules.change("s", firing(*(RunDecision(T + number, None, "no") for number in range(RUNS_KEPT + 30))))
    kept = [past.at_ms - T for past in store.schedules.runs("s", limit=1000)]
    assert kept == list(range(RUNS_KEPT + 29, 29, -1))
    assert len(backend.rows("schedule_runs")) == RUNS_KEPT


def test_a_batch_of_jobs_is_not_disturbed_by_those_of_schedules(store: Store) -> None:
    store.schedules.add(schedule())
    store.enqueue([new_job("a"), new_job("b")])
    store.schedules.change("s", firing(tick("c")))
    store.enqueue([new_job("d")])
    assert [job.id for job in store.jobs(Filter(), descending=False)] == ["a", "b", "c", "d"]
