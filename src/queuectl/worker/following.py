"""The settings that a worker goes by, which may change while it works."""

from __future__ import annotations

from queuectl import errors, events
from queuectl.settings import Settings
from queuectl.worker.plan import World


class Following:
    def __init__(self, world: World) -> None:
        self._world = world
        self.latest = world.load_settings()
        self._complaint: str | None = None  # what was wrong with them, when we last said so

    def settings(self) -> Settings:
        """As they are now; as they were, while something is wrong with them."""
        try:
            self.latest = self._world.load_settings()
            self._complaint = None
        except (errors.UsageError, errors.Unavailable) as exc:
            if exc.message != self._complaint:  # once, not at every beat
                self._complaint = exc.message
                self._world.emit(events.StoreTrouble(exc.message))
        return self.latest
