"""The decisions about due schedules."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.cron.expression import parse_expression, timetable
from queuectl.cron.schedule import (
    HELD_RECHECK_MS,
    MAX_ENUMERATED_RUNS,
    MISSED_AFTER_MS,
    MISSED_REASON,
    Overlap,
    PastRun,
    RunContext,
    Schedule,
    ScheduleChange,
    ScheduleView,
    UnfinishedJob,
    decide_due_runs,
    find_due_runs,
    format_catch_up,
    parse_catch_up,
    parse_overlap,
    pause,
    resume,
    run_now,
    set_next,
)
from queuectl.errors import InvalidInput, ScheduleExists, ScheduleNotFound
from queuectl.jobs.spec import Defaults, validate
from queuectl.jobs.states import State

T = 1_767_323_040_000  # a whole minute
MIN = 60_000
DEFAULTS = Defaults(0, 3, False, 2.0, None, "/")


def schedule(**changes: Any) -> Schedule:
    """Every minute; the next run is at T."""
    plain = Schedule(
        name="s",
        expression="* * * * *",
        tz="UTC",
        anchor_ms=T - MIN,
        fields={"command": "true", "env": {"A": "b"}},
        overlap=Overlap.SKIP,
        catch_up=1,
        jitter_ms=0,
        until_ms=None,
        is_paused=False,
        created_ms=T - MIN,
        updated_ms=T - MIN,
        tick_ms=T,
        start_ms=T,
        look_ms=T,
    )
    return plain._replace(**changes)


def means(one: Schedule, *, since_ms: int = 0, chance: float = 0.5) -> RunContext:
    ids = (f"j{number}" for number in itertools.count(1))
    next_run = timetable(parse_expression(one.expression), zone=UTC, anchor_ms=one.anchor_ms)
    return RunContext(next_run, validate(one.fields, DEFAULTS), lambda: chance, lambda: next(ids), since_ms)


def look(one: Schedule, at: int, *unended: UnfinishedJob, since_ms: int = 0) -> ScheduleChange | None:
    return decide_due_runs(ScheduleView(one, at, unended), means(one, since_ms=since_ms))


def told(change: ScheduleChange | None) -> list[tuple[int, str]]:
    """Each run in minutes after T, with its job or the reason."""
    assert change is not None
    return [((tick.at_ms - T) // MIN, str(tick.job.id if tick.job else tick.reason)) for tick in change.ticks]


# ── in time ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_due_run_adds_a_job_and_sets_the_next_run() -> None:
    change = look(schedule(), T)
    assert told(change) == [(0, "j1")]
    assert change is not None
    after = change.schedule
    assert (after.last_ms, after.tick_ms, after.start_ms, after.look_ms) == (T, T + MIN, T + MIN, T + MIN)


def test_nothing_is_decided_before_a_run_is_due() -> None:
    assert look(schedule(), T - 1) is None


def test_a_clock_that_is_set_back_adds_no_job() -> None:
    change = look(schedule(), T)
    assert change is not None
    for back in (0, 1000, 3_600_000):
        assert look(change.schedule, T - back) is None


def test_a_schedule_without_a_next_run_does_nothing() -> None:
    assert look(schedule(tick_ms=None, start_ms=None, look_ms=None), T) is None


def test_jitter_delays_the_start_and_never_reaches_the_next_run() -> None:
    for jitter, chance, start in ((10_000, 0.5, 5_000), (10_000, 0.0, 0), (600_000, 1.0, MIN - 1)):
        one = schedule(jitter_ms=jitter)
        found = set_next(one, means(one, chance=chance), after_ms=T)
        assert (found.tick_ms, found.start_ms, found.look_ms) == (T + MIN, T + MIN + start, T + MIN + start)


def test_the_jitter_of_the_last_run_is_only_bounded_by_itself() -> None:
    one = schedule(jitter_ms=8_000)
    ends = means(one)._replace(next_run=lambda after: T if after < T else None)
    assert set_next(one, ends, after_ms=T - 1).start_ms == T + 4_000


def test_a_run_within_its_jitter_is_not_late() -> None:
    one = schedule(jitter_ms=30_000, start_ms=T + 30_000, catch_up=0)
    assert look(one, T + 29_999) is None
    assert told(look(one, T + 30_000, since_ms=T + 29_000)) == [(0, "j1")]


def test_there_are_no_runs_after_until() -> None:
    change = look(schedule(until_ms=T + MIN - 1), T)
    assert change is not None
    assert change.schedule.tick_ms is None
    assert change.schedule.look_ms is None


# ── after an absence ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "catch_up, decided",
    [
        (0, [(0, MISSED_REASON)]),
        (1, [(0, MISSED_REASON), (4, "j1")]),
        (3, [(0, MISSED_REASON), (2, "j1"), (3, "j2"), (4, "j3")]),
        (5, [(0, "j1"), (1, "j2"), (2, "j3"), (3, "j4"), (4, "j5")]),
        (9, [(0, "j1"), (1, "j2"), (2, "j3"), (3, "j4"), (4, "j5")]),
    ],
)
def test_missed_runs_are_caught_up_as_often_as_allowed(catch_up: int, decided: list[tuple[int, str]]) -> None:
    now = T + 4 * MIN + 30_000
    change = look(schedule(catch_up=catch_up), now, since_ms=now)
    assert told(change) == decided
    assert change is not None
    assert sum(tick.times for tick in change.ticks) == 5
    assert (change.schedule.last_ms, change.schedule.tick_ms) == (T + 4 * MIN, T + 5 * MIN)


def test_without_catch_up_the_current_run_adds_its_job() -> None:
    now = T + 4 * MIN + 200
    assert told(look(schedule(catch_up=0), now, since_ms=now)) == [(0, MISSED_REASON), (4, "j1")]


def test_a_late_run_of_a_live_scheduler_is_not_missed() -> None:
    one = schedule(catch_up=0, expression="@yearly")
    assert told(look(one, T + MISSED_AFTER_MS, since_ms=T - 1)) == [(0, "j1")]
    assert told(look(one, T + MISSED_AFTER_MS + 1, since_ms=T - 1)) == [(0, MISSED_REASON)]
    assert told(look(one, T + 1_001, since_ms=T + 1)) == [(0, MISSED_REASON)]


def test_runs_after_until_are_not_caught_up() -> None:
    now = T + 100 * MIN
    assert told(look(schedule(until_ms=T + 2 * MIN, catch_up=9), now)) == [(0, "j1"), (1, "j2"), (2, "j3")]


@pytest.mark.parametrize("expression", ["* * * * * *", "every 1s", "*/7 * * * * *"])
def test_years_of_seconds_are_searched_and_not_enumerated(expression: str) -> None:
    one, year = schedule(expression=expression, catch_up=3, anchor_ms=T), 366 * 86_400_000
    looked = 0

    def counted(next_run: Callable[[int], int | None]) -> Callable[[int], int | None]:
        def ask(after: int) -> int | None:
            nonlocal looked
            looked += 1
            return next_run(after)

        return ask

    given = means(one, since_ms=T + year)
    change = decide_due_runs(ScheduleView(one, T + year, ()), given._replace(next_run=counted(given.next_run)))
    assert change is not None
    missed, *fired = change.ticks
    assert (missed.at_ms, missed.reason, missed.times) == (T, MISSED_REASON, MAX_ENUMERATED_RUNS + 1)
    last = [tick.at_ms for tick in fired]
    assert len(last) == 3
    assert all(given.next_run(at) == after for at, after in itertools.pairwise([*last, change.schedule.tick_ms]))
    assert last[-1] <= T + year
    assert looked < 3 * MAX_ENUMERATED_RUNS


@given(catch_up=st.integers(0, 20), late=st.integers(0, 3 * 86_400), step=st.integers(1, 60))
def test_the_due_runs_are_the_last_ones_without_gaps(catch_up: int, late: int, step: int) -> None:
    one = schedule(expression=f"*/{step} * * * * *", catch_up=catch_up)
    next_run, now = means(one).next_run, T + late * 1000
    due = find_due_runs(one, next_run, now)
    assert due.first == T
    assert all(next_run(at) == after for at, after in itertools.pairwise(due.ticks))
    after = next_run(due.last)
    assert due.last <= now
    assert after is None or after > now
    assert len(due.ticks) == due.number or (due.number > MAX_ENUMERATED_RUNS and len(due.ticks) == max(1, catch_up))


# ── while another one runs ──────────────────────────────────────────────────────────────────────────────────────────

RUNNING = UnfinishedJob("r", is_held=False)


def test_a_run_is_skipped_while_an_earlier_job_has_not_ended() -> None:
    assert told(look(schedule(), T, RUNNING)) == [(0, "job r of an earlier run has not ended")]


def test_runs_may_overlap_if_allowed() -> None:
    assert told(look(schedule(overlap=Overlap.ALLOW), T, RUNNING)) == [(0, "j1")]


def test_all_missed_runs_are_added_at_once_without_an_earlier_job() -> None:
    assert len(told(look(schedule(catch_up=3), T + 2 * MIN))) == 3


def test_a_queued_run_is_held_for_the_earlier_job_and_only_one_is() -> None:
    change = look(schedule(overlap=Overlap.QUEUE), T, RUNNING)
    assert change is not None
    assert [(tick.job.id, tick.is_held) for tick in change.ticks if tick.job] == [("j1", True)]
    assert (change.schedule.waiting, change.schedule.look_ms) == ("j1", T + HELD_RECHECK_MS)
    second = look(change.schedule, T + MIN, RUNNING, UnfinishedJob("j1", is_held=True))
    assert told(second) == [(1, "job j1 of an earlier run still waits")]
    assert second is not None
    assert second.schedule.waiting == "j1"


def test_of_several_missed_runs_the_last_one_is_queued() -> None:
    change = look(schedule(overlap=Overlap.QUEUE, catch_up=2), T + MIN, RUNNING)
    assert told(change) == [(0, "job r of an earlier run has not ended"), (1, "j1")]


def test_nothing_is_written_while_the_earlier_job_runs() -> None:
    waits = schedule(overlap=Overlap.QUEUE, waiting="w", look_ms=T - 1)
    assert look(waits, T - 1, RUNNING, UnfinishedJob("w", is_held=True)) is None


def test_a_held_job_is_released_when_the_earlier_one_has_ended() -> None:
    waits = schedule(overlap=Overlap.QUEUE, waiting="w", look_ms=T - 1)
    change = look(waits, T - 1, UnfinishedJob("w", is_held=True))
    assert change is not None
    assert (change.release, change.schedule.waiting, change.schedule.look_ms) == ("w", None, T)
    assert change.ticks == ()


def test_a_released_job_holds_the_next_one() -> None:
    waits = schedule(overlap=Overlap.QUEUE, waiting="w")
    change = look(waits, T, UnfinishedJob("w", is_held=True))
    assert change is not None
    assert (change.release, change.schedule.waiting) == ("w", "j1")


@pytest.mark.parametrize("left", [(), (RUNNING,), (UnfinishedJob("w", is_held=False),)])
def test_a_held_job_that_was_cancelled_or_released_is_forgotten(left: tuple[UnfinishedJob, ...]) -> None:
    waits = schedule(overlap=Overlap.QUEUE, waiting="w", look_ms=T - 1)
    change = look(waits, T - 1, *left)
    assert change is not None
    assert (change.release, change.schedule.waiting) == (None, None)


# ── by hand ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_manual_run_does_not_change_the_next_run() -> None:
    one = schedule(is_paused=True, tick_ms=None, start_ms=None, look_ms=None)
    change = run_now(ScheduleView(one, T + 5, (RUNNING,)), means(one))
    assert change.schedule == one
    ((tick),) = change.ticks
    assert (tick.at_ms, tick.is_by_hand, tick.job and tick.job.id) == (T + 5, True, "j1")


def test_a_paused_schedule_has_no_next_run_and_a_resumed_one_has_a_future_one() -> None:
    change = pause(ScheduleView(schedule(), T + 10, ()))
    assert change is not None
    rests = change.schedule
    assert (rests.is_paused, rests.tick_ms, rests.look_ms) == (True, None, None)
    assert pause(ScheduleView(rests, T + 10, ())) is None
    assert look(rests, T + 10 * MIN) is None
    again = resume(ScheduleView(rests, T + 10 * MIN + 1, ()), means(rests))
    assert again is not None
    assert (again.schedule.is_paused, again.schedule.tick_ms) == (False, T + 11 * MIN)
    assert resume(ScheduleView(again.schedule, T, ()), means(rests)) is None


def test_a_paused_schedule_still_releases_its_held_job() -> None:
    change = pause(ScheduleView(schedule(waiting="w"), T, ()))
    assert change is not None
    assert change.schedule.look_ms == T + HELD_RECHECK_MS


def test_resuming_after_the_clock_was_set_back_repeats_no_run() -> None:
    rests = schedule(is_paused=True, tick_ms=None, start_ms=None, look_ms=None, last_ms=T)
    again = resume(ScheduleView(rests, T - 5 * MIN, ()), means(rests))
    assert again is not None
    assert again.schedule.tick_ms == T + MIN


def test_a_paused_schedule_gets_no_next_run() -> None:
    one = schedule(is_paused=True)
    assert set_next(one, means(one), after_ms=T).tick_ms is None


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text, most, canonical", [("none", 0, "none"), ("ONE", 1, "one"), ("all:1", 1, "one"), (" all:12", 12, "all:12")])  # fmt: skip
def test_catching_up_has_three_forms(text: str, most: int, canonical: str) -> None:
    assert parse_catch_up(text, subject="--catch-up") == most
    assert format_catch_up(most) == canonical


@pytest.mark.parametrize("text", ["", "two", "all", "all:", "all:0", "all:1001", "all:-1", "all:٣", "all:" + "9" * 99, "none:1"])  # fmt: skip
def test_other_forms_of_catching_up_are_rejected(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--catch-up: expected none, one or all:N"):
        parse_catch_up(text, subject="--catch-up")


def test_an_overlap_is_one_of_three_words() -> None:
    assert parse_overlap("Queue", subject="--overlap") is Overlap.QUEUE
    with pytest.raises(InvalidInput, match="--overlap: expected skip, queue, allow, got 'both'"):
        parse_overlap("both", subject="--overlap")


def test_the_json_of_a_schedule_hides_the_environment_by_default() -> None:
    last = PastRun(T, T + 1, "a", None, 1, False, State.COMPLETED, 0, None)
    told = schedule(jitter_ms=1500).to_dict(last)
    assert told["job"]["env"] == {"A": "***"}
    assert schedule().to_dict(None, show_env=True)["job"]["env"] == {"A": "b"}
    assert schedule(fields={"argv": ["a"]}).to_dict(None)["argv"] == ["a"]
    calls = schedule(fields={"command": "true", "on_dead": "https://h.example/secret"})
    assert calls.to_dict(None)["job"]["on_dead"] == "https://h.example/…"
    assert calls.to_dict(None, show_env=True)["job"]["on_dead"] == "https://h.example/secret"
    assert (told["jitter"], told["queue"], told["next_at"]) == (1.5, "default", "2026-01-02T03:04:00.000Z")
    assert told["last"]["state"] == "completed"
    assert last._replace(job=None, state=None).to_dict()["state"] is None


def test_existing_and_unknown_names_are_rejected_with_a_hint() -> None:
    assert "--replace" in ScheduleExists("s").hint
    assert "cron list" in ScheduleNotFound("s").hint
