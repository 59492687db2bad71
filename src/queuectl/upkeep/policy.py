"""Following the policy of this host when its file changes."""

from __future__ import annotations

from typing import Final

from queuectl.events import PolicyInForce, Sink, StoreTrouble
from queuectl.policy.force import Force

LOOK_EVERY: Final = 1.0


class PolicyDuty:
    adds_work: Final = False

    def __init__(self, force: Force, *, emit: Sink) -> None:
        self._force = force
        self._emit = emit

    def step(self, now: float) -> float:
        self._force.follow(
            on_change=lambda path: self._emit(PolicyInForce(path)),
            on_trouble=lambda problem: self._emit(StoreTrouble(problem, is_retried=False)),
        )
        return now + LOOK_EVERY
