"""Bearing with a store that does not answer for a moment: for whoever looks on for long, or has jobs to add as they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from queuectl.clock import Clock
from queuectl.errors import StoreBusy, StoreUnreachable
from queuectl.store.protocol import Reads

T = TypeVar("T")

# As long as a command may take that does not wait for anything. A server that is started anew is back sooner.
PATIENCE: Final = 10.0
AGAIN_AFTER: Final = 0.1


def persist(clock: Clock, act: Callable[[], T], *, until: float | None = None) -> T:
    """What `act` gives, tried again for so long; and not beyond `until`, by the monotonic clock.

    Not if it may have been done: to do that twice is not ours to choose.
    """
    deadline = clock.monotonic() + PATIENCE
    deadline = deadline if until is None else min(deadline, until)
    while True:
        try:
            return act()
        except (StoreBusy, StoreUnreachable) as error:
            if clock.monotonic() >= deadline or (isinstance(error, StoreUnreachable) and error.in_doubt):
                raise
            clock.sleep(AGAIN_AFTER)


def patient(store: Reads, clock: Clock, *, until: float | None = None) -> Reads:
    """The same store, each of whose answers is waited for like that."""
    return cast(Reads, _Patient(store, clock, until))


class _Patient:
    def __init__(self, store: Reads, clock: Clock, until: float | None) -> None:
        self._store = store
        self._clock = clock
        self._until = until

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found
        return lambda *args, **kwargs: persist(self._clock, lambda: found(*args, **kwargs), until=self._until)

    def jobs(self, *args: Any, **kwargs: Any) -> Any:
        # All at once: rows that came before the line was cut must not come twice. Whoever looks on asks for a few.
        return persist(self._clock, lambda: list(self._store.jobs(*args, **kwargs)), until=self._until)
