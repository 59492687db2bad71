"""The scheduler on a real store, with a clock of the test."""

from __future__ import annotations

import random
import zoneinfo
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.config import load_settings
from queuectl.cron.operations import CronContext, ScheduleRequest, add, pause_all, remove_all, resume_all
from queuectl.cron.scheduler import ERROR_RETRY_SECONDS, HELD_RECHECK_SECONDS, MIN_POLL_SECONDS, POLL_SECONDS, Scheduler
from queuectl.errors import InvalidInput
from queuectl.events import Event, ScheduleFired, StoreTrouble
from queuectl.jobs.spec import Defaults
from queuectl.jobs.states import State
from queuectl.paths import make_folders, make_home, store_file
from queuectl.settings import Settings
from queuectl.store.schedules import Schedules
from queuectl.store.sqlite.connection import MEMORY
from queuectl.store.sqlite.store import SqliteStore
from queuectl.store.types import ScheduleCheck
from tests.clock import FakeClock
from tests.store.hands import Hands


def plain_settings() -> Settings:
    return load_settings({}, {})


class Setup:
    """A store with schedules, and any number of schedulers."""

    def __init__(self, store: SqliteStore, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.events: list[Event] = []
        self.shop = CronContext(
            lambda: store, lambda: store, lambda: Defaults.of(plain_settings(), cwd="/"), random.Random(1).random
        )

    def duty(self, **given: Any) -> Scheduler:
        with_defaults = {"settings": plain_settings, "chance": random.Random(2).random, "emit": self.events.append}
        return Scheduler(**{"store": self.store, **with_defaults, **given})

    def add(self, expression: str, name: str = "s", *, replace: bool = False, **given: Any) -> None:
        add(ScheduleRequest(name, expression, "UTC", {"command": "true"}, **given), self.shop, replace=replace)

    def run(self, *duties: Scheduler, seconds: float) -> None:
        """Call each scheduler when it is due, as the loop of a worker does."""
        end = self.clock.monotonic() + seconds
        due = dict.fromkeys(duties, self.clock.monotonic())
        while (soon := min(due.values())) <= end:
            self.clock.advance(max(0.0, soon - self.clock.monotonic()))
            for duty, at in due.items():
                if at <= self.clock.monotonic():
                    due[duty] = duty.step(self.clock.monotonic())
        self.clock.advance(end - self.clock.monotonic())

    def jobs(self) -> list[int]:
        """When each job was added, in seconds from the start of this minute."""
        return [round(job.created_at.timestamp()) % 3600 for job in self.store.jobs(descending=False)]


@pytest.fixture
def setup(home: Path, clock: FakeClock) -> Iterator[Setup]:
    make_home(str(home))
    make_folders(str(home))
    store = SqliteStore(store_file(str(home)), clock=clock)
    yield Setup(store, clock)
    store.close()


# The clock starts at 03:04:05.


def test_a_schedule_runs_on_time_and_not_at_the_next_poll(setup: Setup) -> None:
    duty = setup.duty()
    setup.add("*/7 * * * * *", overlap="allow")
    setup.run(duty, seconds=31)
    assert setup.jobs() == [4 * 60 + second for second in (7, 14, 21, 28, 35)]
    assert [event.job is not None for event in setup.events if isinstance(event, ScheduleFired)] == [True] * 5


def test_any_number_of_workers_decide_each_run_once(setup: Setup) -> None:
    setup.add("every 2s", overlap="allow")
    setup.run(*(setup.duty() for _ in range(5)), seconds=20)
    assert len(setup.jobs()) == len(set(setup.jobs())) == 10


def test_an_idle_scheduler_polls_rarely(setup: Setup) -> None:
    duty, now = setup.duty(), setup.clock.monotonic()
    assert duty.step(now) == now + POLL_SECONDS
    # Many changes of the database lead to few polls.
    assert duty.step(now + 0.01) == now + MIN_POLL_SECONDS
    setup.add("every 1h")
    assert duty.step(now + MIN_POLL_SECONDS) == now + MIN_POLL_SECONDS + POLL_SECONDS


def test_a_clock_that_is_set_forward_is_noticed_and_one_that_is_set_back_repeats_no_run(setup: Setup) -> None:
    duty = setup.duty()
    setup.add("0 * * * *", overlap="allow")
    setup.clock.jump(3600)
    setup.run(duty, seconds=POLL_SECONDS + 1)
    assert len(setup.jobs()) == 1
    setup.clock.jump(-3000)
    setup.run(duty, seconds=2900)
    assert len(setup.jobs()) == 1
    pause_all(["s"], setup.shop)
    resume_all(["s"], setup.shop)
    setup.run(duty, seconds=3600)
    assert len(setup.jobs()) == 2


def test_after_downtime_one_missed_run_is_caught_up_by_default(setup: Setup) -> None:
    for name, catch_up in (("none", "none"), ("one", "one"), ("three", "all:3")):
        setup.add("*/10 * * * *", name, catch_up=catch_up)
    setup.clock.advance(3 * 3600)
    setup.run(setup.duty(), seconds=1)
    assert Counter(job.cron for job in setup.store.jobs()) == {"one": 1, "three": 3}
    (missed,) = setup.store.schedules.runs("none", limit=5)
    assert (missed.reason, missed.times) == ("missed: no worker was running", 18)


def test_a_held_job_is_released_when_the_earlier_job_has_ended(setup: Setup, home: Path) -> None:
    worker, duty = Hands(setup.store, home), setup.duty()
    setup.add("every 10s", overlap="queue")
    setup.run(duty, seconds=10)
    first = worker.claim_one()
    setup.run(duty, seconds=25)
    assert worker.claim(5) == []
    waiting = setup.store.schedules.get("s").waiting
    worker.end(first)
    setup.run(duty, seconds=HELD_RECHECK_SECONDS)
    second = worker.claim_one()
    assert second.id == waiting
    assert [(past.job, past.reason) for past in setup.store.schedules.runs("s", limit=9)] == [
        (None, f"job {second.id} of an earlier run still waits"),
        (second.id, None),
        (first.id, None),
    ]
    worker.wakeup.close()


def test_a_held_job_stays_when_its_schedule_is_replaced(setup: Setup, home: Path) -> None:
    worker, duty = Hands(setup.store, home), setup.duty()
    setup.add("every 10s", overlap="queue")
    setup.run(duty, seconds=21)
    first = worker.claim_one()
    setup.add("@yearly", replace=True)
    worker.end(first)
    setup.run(duty, seconds=POLL_SECONDS + 1)
    assert worker.claim_one().id != first.id
    worker.wakeup.close()


def test_a_paused_or_removed_schedule_adds_no_jobs(setup: Setup) -> None:
    duty = setup.duty()
    setup.add("every 10s", overlap="allow")
    setup.run(duty, seconds=11)
    pause_all(["s"], setup.shop)
    setup.run(duty, seconds=60)
    assert len(setup.jobs()) == 1
    resume_all(["s"], setup.shop)
    setup.run(duty, seconds=10)
    assert len(setup.jobs()) == 2
    remove_all(["s"], setup.shop)
    setup.run(duty, seconds=60)
    assert len(setup.jobs()) == 2


def test_current_settings_are_the_defaults_of_a_scheduled_job(setup: Setup) -> None:
    setup.add("every 10s", overlap="allow")
    duty = setup.duty(settings=lambda: load_settings(setup.store.config(), {}))
    setup.run(duty, seconds=10)
    setup.store.set_config({"max-retries": "7"})
    setup.run(duty, seconds=10)
    assert [job.max_retries for job in setup.store.jobs(descending=False)] == [3, 7]


def test_the_error_of_a_schedule_is_reported_once_and_affects_no_other(setup: Setup) -> None:
    setup.add("every 10s", "bad", overlap="allow")
    setup.add("every 10s", "good", overlap="allow")
    real = setup.store.schedules.get("bad")
    setup.store.db.execute("update schedules set tz = 'Nowhere/Land' where name = 'bad'")
    setup.run(setup.duty(), seconds=41)
    assert [event for event in setup.events if isinstance(event, StoreTrouble)] == [
        StoreTrouble("schedule bad: tz: unknown time zone 'Nowhere/Land'")
    ]
    assert Counter(job.cron for job in setup.store.jobs()) == {"good": 4}
    setup.store.db.execute("update schedules set tz = ? where name = 'bad'", (real.tz,))
    setup.run(setup.duty(), seconds=1)
    assert Counter(job.cron for job in setup.store.jobs())["bad"] == 1


def test_invalid_settings_are_reported_and_add_no_jobs(setup: Setup) -> None:
    def broken() -> Settings:
        raise InvalidInput("lease", "too short", hint="")

    setup.add("every 10s")
    setup.run(setup.duty(settings=broken), seconds=10 + ERROR_RETRY_SECONDS)
    assert setup.events == [StoreTrouble("schedule s: lease: too short")]
    assert setup.jobs() == []


def test_a_schedule_that_is_removed_between_two_polls_is_ignored(setup: Setup) -> None:
    setup.add("every 10s")
    setup.clock.advance(10)
    hasty = SqliteStore(setup.store.db.path, clock=setup.clock)
    hasty.schedules = Hasty(hasty.tx, hasty.enqueuer, hasty.dependencies)
    duty, now = setup.duty(store=hasty), setup.clock.monotonic()
    assert duty.step(now) == now
    assert setup.events == []
    assert setup.store.schedules.all() == []
    hasty.close()


class Hasty(Schedules):
    """Schedules that are removed between the listing and the decision."""

    def checks(self, *, limit: int) -> list[ScheduleCheck]:
        found = super().checks(limit=limit)
        for look in found:
            self.remove(look.name)
        return found


def test_a_worker_without_time_zones_reports_it_and_other_workers_continue(setup: Setup, no_zones: None) -> None:
    setup.add("every 10s")
    setup.store.db.execute("update schedules set tz = 'Europe/Berlin'")
    setup.run(setup.duty(), seconds=11)
    (said,) = setup.events
    assert isinstance(said, StoreTrouble)
    assert "no time zone database" in said.problem
    zoneinfo.reset_tzpath()
    setup.run(setup.duty(), seconds=1)
    assert len(setup.jobs()) == 1


# ── by chance ───────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_no_run_is_decided_twice_and_none_is_skipped(seed: int) -> None:
    """Workers start and stop, clocks jump, jobs end or not: each run of every schedule is decided once, in order."""
    chance, clock = random.Random(seed), FakeClock()
    setup = Setup(SqliteStore(MEMORY, clock=clock), clock)
    overlap = chance.choice(["skip", "queue", "allow"])
    setup.add(
        chance.choice(["every 3s", "*/5 * * * * *", "* * * * *"]),
        overlap=overlap,
        catch_up=chance.choice(["none", "one", "all:4"]),
        jitter=chance.choice([None, "2s"]),
    )
    duties = [setup.duty()]
    for _ in range(25):
        match chance.randrange(6):
            case 0:
                clock.jump(chance.choice([-100, -3, 5, 400]))
            case 1:
                duties = [setup.duty() for _ in range(chance.randint(1, 3))]
            case 2:
                clock.advance(chance.uniform(0, 300))
            case 3:
                for job in list(setup.store.jobs()):
                    if job.state is State.PENDING and chance.random() < 0.5:
                        setup.store.cancel([job.id])
            case _:
                setup.run(*duties, seconds=chance.uniform(0, 30))
    ticks = setup.store.schedules.runs("s", limit=1000)
    assert len({tick.at_ms for tick in ticks}) == len(ticks)
    fired = [tick.job for tick in ticks if tick.job]
    assert len(fired) == len(set(fired))
    waiting = [job for job in setup.store.jobs() if job.held and job.state is State.PENDING]
    assert len(waiting) <= (overlap == "queue")
    assert all(job.id == setup.store.schedules.get("s").waiting for job in waiting)
    setup.store.close()
