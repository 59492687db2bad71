"""Whether there may be something to claim: of jobs, and of the calls that are made beside them."""

from __future__ import annotations

from queuectl.store.types import Exchange

Rooms = tuple[int, int]  # for jobs, which is free slots, and for calls


class Look:
    def __init__(self) -> None:
        self.jobs = True
        self.calls = True

    def everywhere(self) -> None:
        self.jobs = self.calls = True

    def pays(self, slots: int, calls: int) -> bool:
        """With so many slots free, and room for so many calls."""
        return bool((slots and self.jobs) or (calls and self.calls))

    def note(self, written: Exchange, slots: int, calls: int, *, again: bool) -> None:
        """What was found when so many were asked for. `again`: nothing can be said yet."""
        self.jobs = written.more or again or (self.jobs and not slots)
        self.calls = written.more_calls or (self.calls and not calls)
