"""Watches the supervisor: one that is dead is replaced, one that does not answer is killed first. Nothing here waits for it."""

from __future__ import annotations

from typing import Final

from queuectl.errors import SupervisorGone
from queuectl.events import SupervisorLost, SupervisorRestarted
from queuectl.settings import Settings
from queuectl.worker.config import WorkerContext
from queuectl.worker.executor import Executor
from queuectl.worker.store_retry import RefusalReporter

# The first restart is immediate. The pause before the next ones doubles, as long as no supervisor lives for STABLE_AFTER.
MIN_PAUSE: Final = 0.5
MAX_PAUSE: Final = 30.0
STABLE_AFTER: Final = 60.0
RETRY_EVERY: Final = 0.02  # while the old one, which was killed, has not ended


class SupervisorWatchdog:
    """`check_at`: when to call `check` next; before that only if there is no supervisor any more."""

    def __init__(self, executor: Executor, context: WorkerContext) -> None:
        self._executor = executor
        self._context = context
        self._processes = context.processes
        self._refusals = RefusalReporter(context.clock, context.emit)
        self._restarted_at = self._watched_since = self.check_at = context.clock.monotonic()
        self._is_lost = False  # and is restarted at `check_at`
        self._pause = 0.0

    def note_absence(self, now: float) -> None:
        """This process was stopped, and perhaps the supervisor with it: its silence before does not count."""
        self._watched_since = now

    def check(self, now: float, settings: Settings) -> None:
        """Call it after `Executor.update`, which reads what the supervisor has sent."""
        if not self._is_lost:
            self._watch(now, settings)
        if self._is_lost and now >= self.check_at:
            self._restart(now)

    def _watch(self, now: float, settings: Settings) -> None:
        problem, lease = "it was killed", settings.lease_ms / 1000
        silence = min(self._processes.silent_for(), now - self._watched_since)
        if self._processes.has_supervisor and silence >= lease:
            problem = f"it did not answer for {silence:.0f} s, and was killed"
            self._processes.kill_supervisor()
        if self._processes.has_supervisor:
            if not self._processes.silent_for():
                self._processes.ping()
            self.check_at = now + min(settings.heartbeat_ms / 1000, lease - silence)
            return
        self._is_lost = True
        if now - self._restarted_at >= STABLE_AFTER:
            self._pause = 0.0
        self._context.emit(SupervisorLost(problem, self._executor.supervisor_lost(now)))
        self._back_off(now)

    def _back_off(self, now: float) -> None:
        self.check_at = now + self._pause
        self._pause = min(max(2 * self._pause, MIN_PAUSE), MAX_PAUSE)

    def _restart(self, now: float) -> None:
        try:
            is_open = self._processes.reopen()
        except SupervisorGone as exc:
            self._context.emit(SupervisorLost(exc.message, 0))
            self._back_off(now)
        except OSError as exc:
            self._refusals.report(exc)
            self._back_off(now)
        else:
            self._is_lost = not is_open
            self.check_at = now if is_open else now + RETRY_EVERY
            if is_open:
                self._restarted_at = self._watched_since = now
                self._executor.supervisor_restarted()
                self._context.emit(SupervisorRestarted())
