"""Firing schedules: any worker that lives does it, at the moment itself. The store sees to it that each tick fires once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from queuectl.errors import BatchComplete, ScheduleNotFound, UsageError, ZonesMissing
from queuectl.events import ScheduleFired, Sink, StoreTrouble
from queuectl.job.cron.fire import LOOK_AGAIN_MS, Means, fire
from queuectl.job.cron.model import Change, View
from queuectl.job.settings import Settings
from queuectl.job.spec import Defaults
from queuectl.store.ids import new_job_ids
from queuectl.store.protocol import Store
from queuectl.zones import find_zone

LOOK_EVERY: Final = 5.0  # whatever was planned: the wall clock may have been put forward
HINT_EVERY: Final = 0.2  # somebody writes all the time, and rarely about schedules
WAIT_AGAIN: Final = LOOK_AGAIN_MS / 1000
UNABLE_PAUSE: Final = 30.0
AT_ONCE: Final = 1000


class FireDuty:
    """Adds the jobs of schedules whose time has come."""

    adds_work: Final = True

    def __init__(
        self, *, store: Store, settings: Callable[[], Settings], chance: Callable[[], float], emit: Sink
    ) -> None:
        self._store = store
        self._load_settings = settings
        self._chance = chance
        self._emit = emit
        self._since_ms = store.now_ms()
        self._looked = self._again = 0.0
        self._not_before: dict[str, float] = {}  # schedules about which there was nothing to decide yet
        self._said: dict[str, str] = {}

    def step(self, now: float) -> float:
        if now < self._again and now < self._looked + HINT_EVERY:
            return min(self._again, self._looked + HINT_EVERY)
        self._looked, self._again = now, now + LOOK_EVERY
        looks = self._store.looks(limit=AT_ONCE)
        self._not_before = {look.name: self._not_before.get(look.name, 0.0) for look in looks}
        for name, in_ms in looks:
            at = max(now + in_ms / 1000, self._not_before[name])
            self._again = min(self._again, at if at > now else self._see_to(name, now))
        return self._again

    def _see_to(self, name: str, now: float) -> float:
        """Let the rules decide about a schedule, and say when to look again."""
        try:
            change = self._fire(name)
        except ScheduleNotFound:
            return now
        except (UsageError, ZonesMissing, BatchComplete) as exc:
            # Of this machine, or of its settings: another worker may know better, and other schedules can be fired.
            if self._said.get(name) != exc.message:
                self._said[name] = exc.message
                self._emit(StoreTrouble(f"schedule {name}: {exc.message}"))
            self._not_before[name] = now + UNABLE_PAUSE
            return now + UNABLE_PAUSE
        if change is None:
            self._not_before[name] = now + WAIT_AGAIN
            return now + WAIT_AGAIN
        for tick in change.ticks:
            self._emit(ScheduleFired(name, None if tick.job is None else tick.job.id, tick.reason))
        return now

    def _fire(self, name: str) -> Change | None:
        # A schedule has a directory of its own.
        defaults = Defaults.of(self._load_settings(), cwd="/", by_queue=self._store.queue_defaults())

        def rule(view: View) -> Change | None:
            means = Means.of(
                view.schedule,
                defaults,
                zone=find_zone(view.schedule.tz, subject="tz"),
                chance=self._chance,
                new_id=lambda: new_job_ids(1)[0],
                since_ms=self._since_ms,
            )
            return fire(view, means)

        return self._store.change_schedule(name, rule)
