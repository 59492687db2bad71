"""Following the policy of this host when its file changes."""

from __future__ import annotations

from typing import Final

from queuectl.events import PolicyInForce, Sink, StoreTrouble
from queuectl.policy.doors import open_doors
from queuectl.policy.force import Force

LOOK_EVERY: Final = 1.0


class PolicyDuty:
    adds_work: Final = False

    def __init__(self, force: Force, *, home: str, emit: Sink) -> None:
        self._force = force
        self._home = home
        self._emit = emit

    def step(self, now: float) -> float:
        self._force.follow(on_change=self.begin, on_trouble=self._complain)
        return now + LOOK_EVERY

    def begin(self, path: str) -> None:
        """The one there is in force from now on."""
        self._emit(PolicyInForce(path))
        if self._force.guard is not None and (problem := open_doors(self._home, self._force.guard.accounts())):
            self._complain(problem)

    def _complain(self, problem: str) -> None:
        self._emit(StoreTrouble(problem, is_retried=False))
