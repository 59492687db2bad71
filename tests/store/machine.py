"""What machines have in common that play anything against a store and a model of it."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, run_state_machine_as_test

from queuectl.jobs.model import Claim
from tests.clock import FakeClock
from tests.store.backends import BACKENDS
from tests.store.hands import Hands
from tests.store.invariants import check_invariants
from tests.swift import swift_folder


class StoreMachine(RuleBasedStateMachine):
    backend_name: str

    def open(self, *workers: str) -> None:
        """An empty store with these workers, to be called by whatever the machine begins with."""
        self.folder = swift_folder()
        self.backend = BACKENDS[self.backend_name](Path(self.folder.name) / "home")
        self.clock = FakeClock()
        self.store = self.backend.open(self.clock)
        self.hands = {name: self.hire(name) for name in workers}
        self.held: list[Claim] = []

    def hire(self, name: str) -> Hands:
        return Hands(self.store, self.backend.home, name=name)

    def teardown(self) -> None:
        for hands in self.hands.values():
            hands.wakeup.close()
        self.store.close()
        self.backend.close()
        self.folder.cleanup()

    @invariant()
    def what_always_holds_holds(self) -> None:
        check_invariants(self.store, self.backend)


def play(machine: type[StoreMachine], backend_name: str, *, examples: int, steps: int) -> None:
    """Without a time limit: a timeout would look like a disagreement, and be shrunk for minutes."""
    run_state_machine_as_test(
        type("Machine", (machine,), {"backend_name": backend_name}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            # To explain takes longer than to shrink.
            phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
