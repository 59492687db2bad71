"""The duty that fires schedules, on a real store with a clock of the test's."""

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
from queuectl.errors import InvalidInput
from queuectl.events import Event, ScheduleFired, StoreTrouble
from queuectl.home import make_folders, make_home, store_file
from queuectl.job.lifecycle import State
from queuectl.job.settings import Settings
from queuectl.job.spec import Defaults
from queuectl.queue.schedules import Shop, Wish, add, pause_all, remove_all, resume_all
from queuectl.store.scheduling import Look
from queuectl.store.sqlite.connection import MEMORY
from queuectl.store.sqlite.store import SqliteStore
from queuectl.upkeep.fire import HINT_EVERY, LOOK_EVERY, UNABLE_PAUSE, WAIT_AGAIN, FireDuty
from tests.clock import FakeClock
from tests.store.hands import Hands


def plain_settings() -> Settings:
    return load_settings({}, {})


class House:
    """A store, somebody who adds schedules, and any number of workers' duties."""

    def __init__(self, store: SqliteStore, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.events: list[Event] = []
        self.shop = Shop(
            lambda: store, lambda: store, lambda: Defaults.of(plain_settings(), cwd="/"), random.Random(1).random
        )

    def duty(self, **given: Any) -> FireDuty:
        with_defaults = {"settings": plain_settings, "chance": random.Random(2).random, "emit": self.events.append}
        return FireDuty(**{"store": self.store, **with_defaults, **given})

    def add(self, expression: str, name: str = "s", *, replace: bool = False, **given: Any) -> None:
        add(Wish(name, expression, "UTC", {"command": "true"}, **given), self.shop, replace=replace)

    def run(self, *duties: FireDuty, seconds: float) -> None:
        """As the loops of workers do: each duty is called when it wants to be."""
        end = self.clock.monotonic() + seconds
        due = dict.fromkeys(duties, self.clock.monotonic())
        while (soon := min(due.values())) <= end:
            self.clock.advance(max(0.0, soon - self.clock.monotonic()))
            for duty, at in due.items():
                if at <= self.clock.monotonic():
                    due[duty] = duty.step(self.clock.monotonic())
        self.clock.advance(end - self.clock.monotonic())

    def jobs(self) -> list[int]:
        """When each was added, in seconds of this minute or after it."""
        return [round(job.created_at.timestamp()) % 3600 for job in self.store.jobs(descending=False)]


@pytest.fixture
def house(home: Path, clock: FakeClock) -> Iterator[House]:
    make_home(str(home))
    make_folders(str(home))
    store = SqliteStore(store_file(str(home)), clock=clock)
    yield House(store, clock)
    store.close()


# The clock begins at 03:04:05.


def test_a_schedule_fires_at_the_moment_itself_and_not_at_the_next_look(house: House) -> None:
    duty = house.duty()
    house.add("*/7 * * * * *", overlap="allow")
    house.run(duty, seconds=31)
    assert house.jobs() == [4 * 60 + second for second in (7, 14, 21, 28, 35)]
    assert [event.job is not None for event in house.events if isinstance(event, ScheduleFired)] == [True] * 5


def test_any_number_of_workers_fire_each_tick_once(house: House) -> None:
    house.add("every 2s", overlap="allow")
    house.run(*(house.duty() for _ in range(5)), seconds=20)
    assert len(house.jobs()) == len(set(house.jobs())) == 10


def test_who_has_nothing_to_do_looks_now_and_then(house: House) -> None:
    duty, now = house.duty(), house.clock.monotonic()
    assert duty.step(now) == now + LOOK_EVERY
    # Somebody wrote, and then again: it is looked into, and not for each of a thousand.
    assert duty.step(now + 0.01) == now + HINT_EVERY
    house.add("every 1h")
    assert duty.step(now + HINT_EVERY) == now + HINT_EVERY + LOOK_EVERY


def test_a_clock_that_is_put_forward_is_noticed_and_one_that_is_put_back_fires_nothing_twice(house: House) -> None:
    duty = house.duty()
    house.add("0 * * * *", overlap="allow")
    house.clock.jump(3600)
    house.run(duty, seconds=LOOK_EVERY + 1)
    assert len(house.jobs()) == 1
    house.clock.jump(-3000)
    house.run(duty, seconds=2900)
    assert len(house.jobs()) == 1
    pause_all(["s"], house.shop)
    resume_all(["s"], house.shop)
    house.run(duty, seconds=3600)
    assert len(house.jobs()) == 2


def test_after_downtime_what_was_missed_comes_once_by_default(house: House) -> None:
    for name, catch_up in (("none", "none"), ("one", "one"), ("three", "all:3")):
        house.add("*/10 * * * *", name, catch_up=catch_up)
    house.clock.advance(3 * 3600)
    house.run(house.duty(), seconds=1)
    assert Counter(job.cron for job in house.store.jobs()) == {"one": 1, "three": 3}
    (missed,) = house.store.ticks("none", limit=5)
    assert (missed.reason, missed.times) == ("missed: no worker was there in time", 18)


def test_a_job_that_waits_for_the_one_before_goes_when_that_has_ended(house: House, home: Path) -> None:
    worker, duty = Hands(house.store, home), house.duty()
    house.add("every 10s", overlap="queue")
    house.run(duty, seconds=10)
    first = worker.claim_one()
    house.run(duty, seconds=25)
    assert worker.claim(5) == []
    waiting = house.store.schedule("s").waiting
    worker.end(first)
    house.run(duty, seconds=WAIT_AGAIN)
    second = worker.claim_one()
    assert second.id == waiting
    assert [(past.job, past.reason) for past in house.store.ticks("s", limit=9)] == [
        (None, f"job {second.id} of an earlier tick still waits"),
        (second.id, None),
        (first.id, None),
    ]
    worker.bell.close()


def test_a_waiting_job_survives_that_its_schedule_is_replaced(house: House, home: Path) -> None:
    worker, duty = Hands(house.store, home), house.duty()
    house.add("every 10s", overlap="queue")
    house.run(duty, seconds=21)
    first = worker.claim_one()
    house.add("@yearly", replace=True)
    worker.end(first)
    house.run(duty, seconds=LOOK_EVERY + 1)
    assert worker.claim_one().id != first.id
    worker.bell.close()


def test_a_paused_schedule_rests_and_one_that_is_removed_is_gone(house: House) -> None:
    duty = house.duty()
    house.add("every 10s", overlap="allow")
    house.run(duty, seconds=11)
    pause_all(["s"], house.shop)
    house.run(duty, seconds=60)
    assert len(house.jobs()) == 1
    resume_all(["s"], house.shop)
    house.run(duty, seconds=10)
    assert len(house.jobs()) == 2
    remove_all(["s"], house.shop)
    house.run(duty, seconds=60)
    assert len(house.jobs()) == 2


def test_settings_of_the_moment_hold_for_what_a_schedule_does_not_say(house: House) -> None:
    house.add("every 10s", overlap="allow")
    duty = house.duty(settings=lambda: load_settings(house.store.config(), {}))
    house.run(duty, seconds=10)
    house.store.set_config({"max-retries": "7"})
    house.run(duty, seconds=10)
    assert [job.max_retries for job in house.store.jobs(descending=False)] == [3, 7]


def test_what_keeps_one_schedule_from_firing_is_said_once_and_keeps_no_other(house: House) -> None:
    house.add("every 10s", "bad", overlap="allow")
    house.add("every 10s", "good", overlap="allow")
    real = house.store.schedule("bad")
    house.store._db.execute("update schedules set tz = 'Nowhere/Land' where name = 'bad'")
    house.run(house.duty(), seconds=41)
    assert [event for event in house.events if isinstance(event, StoreTrouble)] == [
        StoreTrouble("schedule bad: tz: unknown time zone 'Nowhere/Land'")
    ]
    assert Counter(job.cron for job in house.store.jobs()) == {"good": 4}
    house.store._db.execute("update schedules set tz = ? where name = 'bad'", (real.tz,))
    house.run(house.duty(), seconds=1)
    assert Counter(job.cron for job in house.store.jobs())["bad"] == 1


def test_settings_that_cannot_be_in_force_fire_nothing_and_are_told(house: House) -> None:
    def broken() -> Settings:
        raise InvalidInput("lease", "too short", hint="")

    house.add("every 10s")
    house.run(house.duty(settings=broken), seconds=10 + UNABLE_PAUSE)
    assert house.events == [StoreTrouble("schedule s: lease: too short")]
    assert house.jobs() == []


def test_a_schedule_that_goes_between_two_looks_is_no_trouble(house: House) -> None:
    house.add("every 10s")
    house.clock.advance(10)
    hasty = Hasty(house.store._db.path, clock=house.clock)
    duty, now = house.duty(store=hasty), house.clock.monotonic()
    assert duty.step(now) == now
    assert house.events == []
    assert house.store.schedules() == []
    hasty.close()


class Hasty(SqliteStore):
    """Whatever it has told of is gone when somebody comes to see to it."""

    def looks(self, *, limit: int) -> list[Look]:
        found = super().looks(limit=limit)
        for look in found:
            self.remove_schedule(look.name)
        return found


def test_a_worker_that_knows_no_zones_says_so_and_leaves_it_to_others(house: House, no_zones: None) -> None:
    house.add("every 10s")
    house.store._db.execute("update schedules set tz = 'Europe/Berlin'")
    house.run(house.duty(), seconds=11)
    (said,) = house.events
    assert isinstance(said, StoreTrouble)
    assert "no time zone database" in said.problem
    zoneinfo.reset_tzpath()
    house.run(house.duty(), seconds=1)
    assert len(house.jobs()) == 1


# ── by chance ───────────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=60)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_no_tick_fires_twice_and_none_is_forgotten(seed: int) -> None:
    """Workers come and go, clocks jump, jobs end or not: of every schedule each tick was decided about once, in order."""
    chance, clock = random.Random(seed), FakeClock()
    house = House(SqliteStore(MEMORY, clock=clock), clock)
    overlap = chance.choice(["skip", "queue", "allow"])
    house.add(
        chance.choice(["every 3s", "*/5 * * * * *", "* * * * *"]),
        overlap=overlap,
        catch_up=chance.choice(["none", "one", "all:4"]),
        jitter=chance.choice([None, "2s"]),
    )
    duties = [house.duty()]
    for _ in range(25):
        match chance.randrange(6):
            case 0:
                clock.jump(chance.choice([-100, -3, 5, 400]))
            case 1:
                duties = [house.duty() for _ in range(chance.randint(1, 3))]
            case 2:
                clock.advance(chance.uniform(0, 300))
            case 3:
                for job in list(house.store.jobs()):
                    if job.state is State.PENDING and chance.random() < 0.5:
                        house.store.cancel([job.id])
            case _:
                house.run(*duties, seconds=chance.uniform(0, 30))
    ticks = house.store.ticks("s", limit=1000)
    assert len({tick.at_ms for tick in ticks}) == len(ticks)
    fired = [tick.job for tick in ticks if tick.job]
    assert len(fired) == len(set(fired))
    waiting = [job for job in house.store.jobs() if job.held and job.state is State.PENDING]
    assert len(waiting) <= (overlap == "queue")
    assert all(job.id == house.store.schedule("s").waiting for job in waiting)
    house.store.close()
