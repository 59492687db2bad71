"""Making jobs that tell of the ends of others. See store/calling.py."""

from __future__ import annotations

from typing import Final

from queuectl.store.protocol import Store

EVERY: Final = 1.0


class CallDuty:
    adds_work: Final = True

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self, now: float) -> float:
        return now if self._store.make_calls() else now + EVERY
