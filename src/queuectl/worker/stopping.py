"""Whether a worker is to stop, and how."""

from __future__ import annotations

from queuectl.events import Sink, WorkerRestarting, WorkerStopping
from queuectl.store.types import StopMode
from queuectl.worker.runs import Runs
from queuectl.worker.signals import SignalPipe


class Stopping:
    def __init__(self, runs: Runs, emit: Sink) -> None:
        self.mode: StopMode | None = None
        self._runs = runs
        self._emit = emit

    def begin(self, mode: StopMode, now: float) -> bool:
        """False if that is no news: who ends at once cannot end sooner, and who is to end is not to begin anew."""
        if self.mode in (mode, StopMode.NOW) or (self.mode is not None and mode is StopMode.RESTART):
            return False
        self.mode = mode
        self._runs.give_back()
        if mode is StopMode.RESTART:
            self._emit(WorkerRestarting(len(self._runs)))
        else:
            self._emit(WorkerStopping(len(self._runs), mode is StopMode.NOW, len(self._runs.over)))
        if mode is StopMode.NOW:
            self._runs.release_all(now)
        return True


def asked_by(signals: SignalPipe) -> StopMode | None:
    """What the signals ask for that have come so far."""
    if signals.stops >= 2:
        return StopMode.NOW
    if signals.stops == 1:
        return StopMode.FINISH
    return StopMode.RESTART if signals.is_leaving else None
