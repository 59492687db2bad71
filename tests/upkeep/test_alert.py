"""Who is told that things go wrong, on a real store with a clock of the test's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from queuectl.config import Here, load_settings
from queuectl.errors import CallUnanswered, StoreRefused
from queuectl.events import AlertTold, Event, StoreTrouble
from queuectl.home import make_folders, make_home, store_file
from queuectl.job.alert import TRY_AGAIN_MS, Alert, Kind, Telling
from queuectl.job.duration import parse_duration_ms
from queuectl.job.lifecycle import State
from queuectl.job.names import WEBHOOKS
from queuectl.job.settings import Settings
from queuectl.queue.alerts import Wish, read
from queuectl.store.sqlite.store import SqliteStore
from queuectl.upkeep.alert import EVERY, FRESH_MS, HINT_EVERY, NONE_EVERY, UNABLE_PAUSE, AlertDuty, Told, check
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import BAD, Hands

HERE = Here("there", "there")  # so that a worker of the test is one by its heartbeat
LEASE = 30


def plain_settings() -> Settings:
    return load_settings({}, {})


class House:
    """A store, workers who look, and somebody who looks where there is none."""

    def __init__(self, home: Path, clock: FakeClock) -> None:
        self.home, self.clock = home, clock
        self.store = SqliteStore(store_file(str(home)), clock=clock)
        self.events: list[Event] = []
        self.direct: list[tuple[str, str]] = []
        self.trouble: BaseException | None = None
        self._me: Hands | None = None

    def add(self, kind: Kind, threshold: int, name: str = "a", **fields: Any) -> None:
        now = self.clock.now_ms()
        plain = Alert(name, kind, threshold, None, None, 0, None, None, "page", "/", now, seen_ms=now)
        self.store.add_alert(plain._replace(**fields))

    def duty(self, store: SqliteStore | None = None) -> AlertDuty:
        return AlertDuty(store=store or self.store, here=HERE, settings=plain_settings, emit=self.events.append)

    def step(self) -> None:
        """As a worker that begins does."""
        if self._me is None:
            self._me = Hands(self.store, self.home, name="me", queues=("default",))
        self.store.heartbeat("me", slots=1, stopping=False)
        self.duty().step(self.clock.monotonic())

    def look(self) -> list[Told]:
        """As `alert check` does."""
        return check(self.store, here=HERE, settings=plain_settings, tell=self.tell)

    def tell(self, alert: Alert, telling: Telling) -> None:
        self.direct.append((telling.word.value, telling.id))
        if self.trouble is not None:
            raise self.trouble

    def kill(self, hands: Hands, jobs: int) -> None:
        self.store.enqueue([new_job(max_retries=1) for _ in range(jobs)])
        for claim in hands.claim(jobs):
            hands.end(claim, BAD)

    def words(self) -> list[str]:
        """What jobs were made to say, in their order."""
        jobs = self.store.jobs(descending=False)
        return [(job.env or {})["QUEUECTL_ALERT_STATE"] for job in jobs if job.queue == WEBHOOKS]

    def close(self) -> None:
        if self._me is not None:
            self._me.bell.close()
        self.store.close()

    def hire(self) -> Hands:
        return Hands(self.store, self.home, queues=("default",))


@pytest.fixture
def house(home: Path, clock: FakeClock) -> Iterator[House]:
    make_home(str(home))
    make_folders(str(home))
    made = House(home, clock)
    yield made
    made.close()


@pytest.fixture
def worker(house: House) -> Iterator[Hands]:
    hands = house.hire()
    yield hands
    hands.bell.close()


# ── by jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_told_once_when_it_fires_and_once_when_it_is_over(house: House, worker: Hands) -> None:
    house.add(Kind.DEAD, 5)
    for dead, expected in ((4, []), (1, ["firing"]), (3, ["firing"])):
        house.kill(worker, dead)
        house.step()
        house.step()
        assert house.words() == expected
    ids = [job.id for job in house.store.jobs() if job.state is State.DEAD]
    for purged, expected in ((4, ["firing"]), (5, ["firing", "over"]), (8, ["firing", "over"])):
        house.store.purge(ids[:purged])
        house.step()
        assert house.words() == expected
    assert house.events == [AlertTold("a", "firing", "5 jobs are dead"), AlertTold("a", "over", "3 jobs are dead")]


def test_of_all_who_look_one_tells(house: House, worker: Hands, clock: FakeClock) -> None:
    house.add(Kind.DEAD, 1)
    house.kill(worker, 1)
    others = [SqliteStore(store_file(str(house.home)), clock=clock) for _ in range(3)]
    seen = house.store.alerts()
    for other in others:  # all of them have seen the same before one of them has written
        check(other, here=HERE, settings=plain_settings, alerts=seen)
        other.close()
    assert house.words() == ["firing"]


def test_only_those_count_that_died_lately(house: House, worker: Hands, clock: FakeClock) -> None:
    house.add(Kind.DEAD, 2, within_ms=60_000)
    for _ in range(3):
        house.kill(worker, 1)
        house.step()
        clock.advance(50)
    assert house.words() == ["firing"]
    clock.advance(30)
    house.step()
    assert house.words() == ["firing", "over"]


def test_the_oldest_that_waits_is_told_after_it_stayed_so(house: House, clock: FakeClock) -> None:
    house.add(Kind.OLDEST, 600_000, for_ms=60_000)
    house.store.enqueue([new_job()])
    for seconds, expected in ((599, []), (1, []), (59, []), (1, ["firing"])):
        clock.advance(seconds)
        house.step()
        assert house.words() == expected


def test_jobs_that_tell_are_not_what_is_told_of(house: House, clock: FakeClock) -> None:
    house.add(Kind.OLDEST, 1000)
    house.store.enqueue([new_job("a", queue=WEBHOOKS)])
    clock.advance(100)
    house.step()
    assert house.store.alert("a").value == 0


def test_that_nothing_has_changed_is_written_now_and_then(house: House, clock: FakeClock) -> None:
    house.add(Kind.DEAD, 1)
    for seconds, turn in ((0, 1), (FRESH_MS / 1000 - 1, 1), (1, 2)):
        clock.advance(seconds)
        house.step()
        assert house.store.alert("a").turn == turn


def test_a_worker_looks_every_two_seconds_and_at_a_hint_not_at_once_again(house: House, worker: Hands) -> None:
    duty = house.duty()
    assert duty.step(100.0) == 100.0 + NONE_EVERY
    house.add(Kind.DEAD, 1)
    assert duty.step(100.1) == 100.0 + HINT_EVERY
    assert duty.step(101.0) == 101.0 + EVERY
    assert house.store.alert("a").turn == 1


def test_the_last_worker_decides_nothing_any_more_when_it_is_about_to_leave(house: House, worker: Hands) -> None:
    house.add(Kind.DEAD, 1)
    house.kill(worker, 1)
    house.store.heartbeat(worker.name, slots=1, stopping=True)
    house.duty().step(house.clock.monotonic())
    assert house.store.alert("a").turn == 0
    assert house.words() == []
    house.look()
    assert [word for word, _ in house.direct] == ["firing"]


class Unable:
    def alerts(self) -> list[Alert]:
        raise StoreRefused("x", "permission denied for table alerts")


def test_a_right_that_is_missing_is_said_once_and_is_no_trouble_of_the_worker(house: House) -> None:
    duty = house.duty(Unable())  # type: ignore[arg-type]
    assert [duty.step(5.0), duty.step(99.0)] == [5.0 + UNABLE_PAUSE, 99.0 + UNABLE_PAUSE]
    (event,) = house.events
    assert isinstance(event, StoreTrouble)


# ── where there is no worker ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("threshold", ["2m", "10s"])
def test_no_worker_fires_when_its_time_has_passed_since_the_last_heartbeat(
    house: House, worker: Hands, clock: FakeClock, threshold: str
) -> None:
    house.store.heartbeat(worker.name, slots=1, stopping=False)
    wish = Wish("a", no_worker=threshold, command="page")
    house.store.add_alert(read(wish, cwd="/", now_ms=clock.now_ms()))
    passed = 0
    while not house.look():
        assert passed < 300
        clock.advance(1)
        passed += 1
    assert passed == max(
        parse_duration_ms(threshold, subject="") // 1000, LEASE
    )  # within the lease it counts as serving


def test_oldest_fires_when_a_job_has_waited_for_its_time(house: House, clock: FakeClock) -> None:
    house.store.enqueue([new_job()])
    house.store.add_alert(read(Wish("a", oldest="10m", command="page"), cwd="/", now_ms=clock.now_ms()))
    clock.advance(599)
    assert not house.look()
    clock.advance(1)
    assert [told.telling.word for told in house.look()] == ["firing"]


def test_that_there_is_no_worker_is_told_by_whoever_looks_without_a_job(house: House, clock: FakeClock) -> None:
    house.add(Kind.NO_WORKER, 120_000)
    for seconds, expected in ((119, []), (1, ["firing"]), (300, ["firing"])):
        clock.advance(seconds)
        house.look()
        assert [word for word, _ in house.direct] == expected
    assert house.words() == []
    assert house.store.alert("a").untold == ()


def test_that_a_worker_has_come_back_is_told_by_a_job(house: House, clock: FakeClock) -> None:
    house.add(Kind.NO_WORKER, 1000)
    clock.advance(1)
    house.look()
    hands = house.hire()
    house.look()
    assert ([word for word, _ in house.direct], house.words()) == (["firing"], ["over"])
    clock.advance(LEASE + 2)  # it gives no sign any more
    house.look()
    assert [word for word, _ in house.direct] == ["firing", "firing"]
    hands.bell.close()


def test_who_cannot_be_reached_is_told_again_after_a_minute_and_by_the_same_id(house: House, clock: FakeClock) -> None:
    house.add(Kind.NO_WORKER, 1000)
    house.trouble = CallUnanswered("example.org", "it answered 500")
    clock.advance(1)
    (told,) = house.look()
    assert (told.error, told.by_job) == (house.trouble, False)
    clock.advance(TRY_AGAIN_MS / 1000 - 1)
    assert house.look() == []
    house.trouble = None
    clock.advance(1)
    (told,) = house.look()
    assert told.error is None
    assert len(house.direct) == 2
    assert len(set(house.direct)) == 1
    clock.advance(TRY_AGAIN_MS / 1000)
    assert house.look() == []


def test_a_worker_that_comes_tells_what_nobody_could_be_told_in_its_order(house: House, clock: FakeClock) -> None:
    house.add(Kind.NO_WORKER, 1000)
    house.trouble = CallUnanswered("example.org", "no answer")
    clock.advance(1)
    house.look()
    hands = house.hire()
    house.step()
    assert house.words() == ["over"]  # the other is about to be tried by whoever was there before
    clock.advance(TRY_AGAIN_MS / 1000)
    hands.store.heartbeat(hands.name, slots=1, stopping=False)
    house.step()
    assert sorted(house.words()) == ["firing", "over"]
    assert house.store.alert("a").untold == ()
    assert {id_ for _, id_ in house.direct} < {job.id for job in house.store.jobs()}
    hands.bell.close()


def test_one_that_is_killed_while_it_tells_leaves_it_to_others(house: House, clock: FakeClock) -> None:
    house.add(Kind.NO_WORKER, 1000)
    house.trouble = KeyboardInterrupt()
    clock.advance(1)
    with pytest.raises(KeyboardInterrupt):
        house.look()
    house.trouble = None
    clock.advance(TRY_AGAIN_MS / 1000)
    assert [told.error for told in house.look()] == [None]
    assert len(set(house.direct)) == 1


def test_one_that_is_removed_while_it_is_told_is_gone(house: House, clock: FakeClock) -> None:
    house.add(Kind.NO_WORKER, 1000)
    clock.advance(1)

    def tell(alert: Alert, telling: Telling) -> None:
        house.store.remove_alert(alert.name)

    assert len(check(house.store, here=HERE, settings=plain_settings, tell=tell)) == 1
    assert house.store.alerts() == []


def test_how_it_stands_may_be_written_while_it_is_told(house: House, clock: FakeClock) -> None:
    house.add(Kind.NO_WORKER, 1000)
    clock.advance(1)

    def tell(alert: Alert, telling: Telling) -> None:
        assert house.store.turn_alert(house.store.alert("a")._replace(value=77))

    check(house.store, here=HERE, settings=plain_settings, tell=tell)
    after = house.store.alert("a")
    assert (after.value, after.untold, after.is_firing) == (77, (), True)


def test_all_alerts_are_told_directly_where_no_worker_could(house: House, clock: FakeClock) -> None:
    house.add(Kind.OLDEST, 1000)
    house.store.enqueue([new_job()])
    clock.advance(1)
    house.look()
    assert [word for word, _ in house.direct] == ["firing"]
    assert house.words() == []
