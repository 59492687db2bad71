"""The scheduler: a maintenance task of every worker that adds the jobs of due schedules. The store ensures that each run is decided once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from queuectl.cron.operations import run_context
from queuectl.cron.schedule import HELD_RECHECK_MS, ScheduleChange, ScheduleView, decide_due_runs
from queuectl.errors import BatchComplete, ScheduleNotFound, UsageError, ZonesMissing
from queuectl.events import ScheduleFired, Sink, StoreTrouble
from queuectl.jobs.spec import Defaults
from queuectl.settings import Settings
from queuectl.store.store import Store

POLL_SECONDS: Final = 5.0  # also without a due run: the wall clock may have been set forward
MIN_POLL_SECONDS: Final = 0.2  # every change of the database wakes it, and few are about schedules
HELD_RECHECK_SECONDS: Final = HELD_RECHECK_MS / 1000
ERROR_RETRY_SECONDS: Final = 30.0
MAX_SCHEDULES_PER_POLL: Final = 1000


class Scheduler:
    """Adds the jobs of due schedules."""

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
        self._not_before: dict[str, float] = {}  # schedules that were checked and not due, or failed
        self._reported: dict[str, str] = {}

    def step(self, now: float) -> float:
        if now < self._again and now < self._looked + MIN_POLL_SECONDS:
            return min(self._again, self._looked + MIN_POLL_SECONDS)
        self._looked, self._again = now, now + POLL_SECONDS
        checks = self._store.schedules.checks(limit=MAX_SCHEDULES_PER_POLL)
        self._not_before = {check.name: self._not_before.get(check.name, 0.0) for check in checks}
        for name, in_ms in checks:
            at = max(now + in_ms / 1000, self._not_before[name])
            self._again = min(self._again, at if at > now else self._check(name, now))
        return self._again

    def _check(self, name: str, now: float) -> float:
        """Decide about a schedule, and return when to check again."""
        try:
            change = self._fire(name)
        except ScheduleNotFound:
            return now
        except (UsageError, ZonesMissing, BatchComplete) as exc:
            # A problem of this host or its settings: another worker may succeed, and other schedules are independent.
            if self._reported.get(name) != exc.message:
                self._reported[name] = exc.message
                self._emit(StoreTrouble(f"schedule {name}: {exc.message}"))
            self._not_before[name] = now + ERROR_RETRY_SECONDS
            return now + ERROR_RETRY_SECONDS
        if change is None:
            self._not_before[name] = now + HELD_RECHECK_SECONDS
            return now + HELD_RECHECK_SECONDS
        for tick in change.ticks:
            self._emit(ScheduleFired(name, None if tick.job is None else tick.job.id, tick.reason))
        return now

    def _fire(self, name: str) -> ScheduleChange | None:
        # `cwd` is unused: a schedule has its own.
        defaults = Defaults.of(self._load_settings(), cwd="/", by_queue=self._store.queue_defaults())

        def rule(view: ScheduleView) -> ScheduleChange | None:
            return decide_due_runs(view, run_context(view.schedule, defaults, self._chance, since_ms=self._since_ms))

        return self._store.schedules.change(name, rule)
