"""What is decided about a schedule when somebody looks at it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput, ScheduleExists, ScheduleNotFound
from queuectl.job.cron.fire import (
    LATE_MS,
    LOOK_AGAIN_MS,
    MANY,
    MISSED,
    Means,
    due_ticks,
    fire,
    fire_by_hand,
    pause,
    resume,
    set_next,
)
from queuectl.job.cron.model import (
    Change,
    Overlap,
    PastTick,
    Schedule,
    Unended,
    View,
    format_catch_up,
    parse_catch_up,
    parse_overlap,
)
from queuectl.job.lifecycle import State
from queuectl.job.spec import Defaults

T = 1_767_323_040_000  # a whole minute
MIN = 60_000
DEFAULTS = Defaults(0, 3, False, 2.0, None, "/")


def schedule(**changes: Any) -> Schedule:
    """Every minute; the tick of T is next."""
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


def means(one: Schedule, *, since_ms: int = 0, chance: float = 0.5) -> Means:
    ids = (f"j{number}" for number in itertools.count(1))
    return Means.of(one, DEFAULTS, zone=UTC, chance=lambda: chance, new_id=lambda: next(ids), since_ms=since_ms)


def look(one: Schedule, at: int, *unended: Unended, since_ms: int = 0) -> Change | None:
    return fire(View(one, at, unended), means(one, since_ms=since_ms))


def told(change: Change | None) -> list[tuple[int, str]]:
    """Each tick in minutes after T, with its job or the reason."""
    assert change is not None
    return [((tick.at_ms - T) // MIN, str(tick.job.id if tick.job else tick.reason)) for tick in change.ticks]


# ── in time ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tick_fires_at_its_time_and_the_next_is_set() -> None:
    change = look(schedule(), T)
    assert told(change) == [(0, "j1")]
    assert change is not None
    after = change.schedule
    assert (after.last_ms, after.tick_ms, after.start_ms, after.look_ms) == (T, T + MIN, T + MIN, T + MIN)


def test_nothing_is_decided_before_the_time_has_come() -> None:
    assert look(schedule(), T - 1) is None


def test_a_clock_that_is_put_back_fires_nothing() -> None:
    change = look(schedule(), T)
    assert change is not None
    for back in (0, 1000, 3_600_000):
        assert look(change.schedule, T - back) is None


def test_a_schedule_without_a_next_tick_does_nothing() -> None:
    assert look(schedule(tick_ms=None, start_ms=None, look_ms=None), T) is None


def test_jitter_delays_the_start_and_never_reaches_the_next_tick() -> None:
    for jitter, chance, start in ((10_000, 0.5, 5_000), (10_000, 0.0, 0), (600_000, 1.0, MIN - 1)):
        one = schedule(jitter_ms=jitter)
        found = set_next(one, means(one, chance=chance), after_ms=T)
        assert (found.tick_ms, found.start_ms, found.look_ms) == (T + MIN, T + MIN + start, T + MIN + start)


def test_jitter_of_the_last_tick_of_all_has_no_bound_but_itself() -> None:
    one = schedule(jitter_ms=8_000)
    ends = means(one)._replace(next_tick=lambda after: T if after < T else None)
    assert set_next(one, ends, after_ms=T - 1).start_ms == T + 4_000


def test_a_tick_within_its_jitter_is_not_late() -> None:
    one = schedule(jitter_ms=30_000, start_ms=T + 30_000, catch_up=0)
    assert look(one, T + 29_999) is None
    assert told(look(one, T + 30_000, since_ms=T + 29_000)) == [(0, "j1")]


def test_after_until_nothing_comes() -> None:
    change = look(schedule(until_ms=T + MIN - 1), T)
    assert change is not None
    assert change.schedule.tick_ms is None
    assert change.schedule.look_ms is None


# ── after an absence ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "catch_up, decided",
    [
        (0, [(0, MISSED)]),
        (1, [(0, MISSED), (4, "j1")]),
        (3, [(0, MISSED), (2, "j1"), (3, "j2"), (4, "j3")]),
        (5, [(0, "j1"), (1, "j2"), (2, "j3"), (3, "j4"), (4, "j5")]),
        (9, [(0, "j1"), (1, "j2"), (2, "j3"), (3, "j4"), (4, "j5")]),
    ],
)
def test_what_was_missed_is_made_up_for_as_often_as_allowed(catch_up: int, decided: list[tuple[int, str]]) -> None:
    now = T + 4 * MIN + 30_000
    change = look(schedule(catch_up=catch_up), now, since_ms=now)
    assert told(change) == decided
    assert change is not None
    assert sum(tick.times for tick in change.ticks) == 5
    assert (change.schedule.last_ms, change.schedule.tick_ms) == (T + 4 * MIN, T + 5 * MIN)


def test_without_catching_up_the_tick_of_now_fires_all_the_same() -> None:
    now = T + 4 * MIN + 200
    assert told(look(schedule(catch_up=0), now, since_ms=now)) == [(0, MISSED), (4, "j1")]


def test_who_was_there_all_the_time_is_late_and_has_not_missed_it() -> None:
    one = schedule(catch_up=0, expression="@yearly")
    assert told(look(one, T + LATE_MS, since_ms=T - 1)) == [(0, "j1")]
    assert told(look(one, T + LATE_MS + 1, since_ms=T - 1)) == [(0, MISSED)]
    assert told(look(one, T + 1_001, since_ms=T + 1)) == [(0, MISSED)]


def test_nothing_after_until_is_made_up_for() -> None:
    now = T + 100 * MIN
    assert told(look(schedule(until_ms=T + 2 * MIN, catch_up=9), now)) == [(0, "j1"), (1, "j2"), (2, "j3")]


@pytest.mark.parametrize("expression", ["* * * * * *", "every 1s", "*/7 * * * * *"])
def test_years_of_seconds_are_searched_and_not_counted(expression: str) -> None:
    one, year = schedule(expression=expression, catch_up=3, anchor_ms=T), 366 * 86_400_000
    looked = 0

    def counted(next_tick: Callable[[int], int | None]) -> Callable[[int], int | None]:
        def ask(after: int) -> int | None:
            nonlocal looked
            looked += 1
            return next_tick(after)

        return ask

    given = means(one, since_ms=T + year)
    change = fire(View(one, T + year, ()), given._replace(next_tick=counted(given.next_tick)))
    assert change is not None
    missed, *fired = change.ticks
    assert (missed.at_ms, missed.reason, missed.times) == (T, MISSED, MANY + 1)
    last = [tick.at_ms for tick in fired]
    assert len(last) == 3
    assert all(given.next_tick(at) == after for at, after in itertools.pairwise([*last, change.schedule.tick_ms]))
    assert last[-1] <= T + year
    assert looked < 3 * MANY


@given(catch_up=st.integers(0, 20), late=st.integers(0, 3 * 86_400), step=st.integers(1, 60))
def test_the_ticks_found_are_the_last_ones_and_none_is_forgotten(catch_up: int, late: int, step: int) -> None:
    one = schedule(expression=f"*/{step} * * * * *", catch_up=catch_up)
    next_tick, now = means(one).next_tick, T + late * 1000
    due = due_ticks(one, next_tick, now)
    assert due.first == T
    assert all(next_tick(at) == after for at, after in itertools.pairwise(due.ticks))
    after = next_tick(due.last)
    assert due.last <= now
    assert after is None or after > now
    assert len(due.ticks) == due.number or (due.number > MANY and len(due.ticks) == max(1, catch_up))


# ── while another one runs ──────────────────────────────────────────────────────────────────────────────────────────

RUNNING = Unended("r", is_held=False)


def test_a_tick_is_skipped_while_a_job_before_has_not_ended() -> None:
    assert told(look(schedule(), T, RUNNING)) == [(0, "job r of an earlier tick has not ended")]


def test_ticks_may_be_allowed_to_overlap() -> None:
    assert told(look(schedule(overlap=Overlap.ALLOW), T, RUNNING)) == [(0, "j1")]


def test_all_that_are_made_up_for_come_at_once_if_nothing_was_there_before() -> None:
    assert len(told(look(schedule(catch_up=3), T + 2 * MIN))) == 3


def test_a_tick_that_queues_waits_for_the_job_before_and_only_one_does() -> None:
    change = look(schedule(overlap=Overlap.QUEUE), T, RUNNING)
    assert change is not None
    assert [(tick.job.id, tick.is_held) for tick in change.ticks if tick.job] == [("j1", True)]
    assert (change.schedule.waiting, change.schedule.look_ms) == ("j1", T + LOOK_AGAIN_MS)
    second = look(change.schedule, T + MIN, RUNNING, Unended("j1", is_held=True))
    assert told(second) == [(1, "job j1 of an earlier tick still waits")]
    assert second is not None
    assert second.schedule.waiting == "j1"


def test_of_several_that_were_missed_the_last_one_queues() -> None:
    change = look(schedule(overlap=Overlap.QUEUE, catch_up=2), T + MIN, RUNNING)
    assert told(change) == [(0, "job r of an earlier tick has not ended"), (1, "j1")]


def test_nothing_is_written_while_the_one_before_goes_on() -> None:
    waits = schedule(overlap=Overlap.QUEUE, waiting="w", look_ms=T - 1)
    assert look(waits, T - 1, RUNNING, Unended("w", is_held=True)) is None


def test_a_job_that_waited_is_let_go_when_the_one_before_has_ended() -> None:
    waits = schedule(overlap=Overlap.QUEUE, waiting="w", look_ms=T - 1)
    change = look(waits, T - 1, Unended("w", is_held=True))
    assert change is not None
    assert (change.release, change.schedule.waiting, change.schedule.look_ms) == ("w", None, T)
    assert change.ticks == ()


def test_one_that_is_let_go_keeps_the_next_waiting() -> None:
    waits = schedule(overlap=Overlap.QUEUE, waiting="w")
    change = look(waits, T, Unended("w", is_held=True))
    assert change is not None
    assert (change.release, change.schedule.waiting) == ("w", "j1")


@pytest.mark.parametrize("left", [(), (RUNNING,), (Unended("w", is_held=False),)])
def test_a_waiting_job_that_somebody_called_off_or_let_go_is_forgotten(left: tuple[Unended, ...]) -> None:
    waits = schedule(overlap=Overlap.QUEUE, waiting="w", look_ms=T - 1)
    change = look(waits, T - 1, *left)
    assert change is not None
    assert (change.release, change.schedule.waiting) == (None, None)


# ── by hand ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_by_hand_changes_nothing_about_the_plan() -> None:
    one = schedule(is_paused=True, tick_ms=None, start_ms=None, look_ms=None)
    change = fire_by_hand(View(one, T + 5, (RUNNING,)), means(one))
    assert change.schedule == one
    ((tick),) = change.ticks
    assert (tick.at_ms, tick.is_by_hand, tick.job and tick.job.id) == (T + 5, True, "j1")


def test_a_pause_takes_the_next_tick_away_and_resuming_gives_one_from_then_on() -> None:
    change = pause(View(schedule(), T + 10, ()))
    assert change is not None
    rests = change.schedule
    assert (rests.is_paused, rests.tick_ms, rests.look_ms) == (True, None, None)
    assert pause(View(rests, T + 10, ())) is None
    assert look(rests, T + 10 * MIN) is None
    again = resume(View(rests, T + 10 * MIN + 1, ()), means(rests))
    assert again is not None
    assert (again.schedule.is_paused, again.schedule.tick_ms) == (False, T + 11 * MIN)
    assert resume(View(again.schedule, T, ()), means(rests)) is None


def test_a_paused_schedule_still_looks_after_the_job_that_waits() -> None:
    change = pause(View(schedule(waiting="w"), T, ()))
    assert change is not None
    assert change.schedule.look_ms == T + LOOK_AGAIN_MS


def test_resuming_after_the_clock_was_put_back_fires_nothing_twice() -> None:
    rests = schedule(is_paused=True, tick_ms=None, start_ms=None, look_ms=None, last_ms=T)
    again = resume(View(rests, T - 5 * MIN, ()), means(rests))
    assert again is not None
    assert again.schedule.tick_ms == T + MIN


def test_a_paused_schedule_is_not_given_a_tick() -> None:
    one = schedule(is_paused=True)
    assert set_next(one, means(one), after_ms=T).tick_ms is None


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text, most, canonical", [("none", 0, "none"), ("ONE", 1, "one"), ("all:1", 1, "one"), (" all:12", 12, "all:12")])  # fmt: skip
def test_catching_up_has_three_forms(text: str, most: int, canonical: str) -> None:
    assert parse_catch_up(text, subject="--catch-up") == most
    assert format_catch_up(most) == canonical


@pytest.mark.parametrize("text", ["", "two", "all", "all:", "all:0", "all:1001", "all:-1", "all:٣", "all:" + "9" * 99, "none:1"])  # fmt: skip
def test_other_forms_of_catching_up_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--catch-up: expected none, one or all:N"):
        parse_catch_up(text, subject="--catch-up")


def test_an_overlap_is_one_of_three_words() -> None:
    assert parse_overlap("Queue", subject="--overlap") is Overlap.QUEUE
    with pytest.raises(InvalidInput, match="--overlap: expected skip, queue, allow, got 'both'"):
        parse_overlap("both", subject="--overlap")


def test_a_schedule_as_json_hides_the_environment_unless_asked() -> None:
    last = PastTick(T, T + 1, "a", None, 1, False, State.COMPLETED, 0, None)
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


def test_a_name_that_is_taken_and_one_that_is_unknown_are_refused_with_the_way_out() -> None:
    assert "--replace" in ScheduleExists("s").hint
    assert "cron list" in ScheduleNotFound("s").hint
