"""The process of a simulated worker, and its `Processes`: its own through its keeper, those that it has adopted by the real
watch."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from queuectl import errors
from queuectl.jobs.outcome import Exited, Signalled
from queuectl.jobs.resources import ResourceReport
from queuectl.process import ending
from queuectl.process.ledger import Footprint
from queuectl.process.protocol import Begun, Order
from queuectl.process.table import Entry
from queuectl.process.watch import Child, Untold, Watch
from tests.sim.keeper import Keeper, Told
from tests.sim.machine import Host, Process, Signals, kill_group_of
from tests.sim.stage import AFTER_AN_ORDER, Stage

LOOK_EVERY: Final = 0.02


class Worker:
    def __init__(
        self,
        stage: Stage,
        host: Host,
        spawned: Callable[[Host, Process, Keeper], None],
        adopted: Callable[..., None],
    ) -> None:
        self.is_gone = False
        self.signals = Signals()
        self.host = host
        self.process = host.fork()
        self.participant = stage.me()
        self.participant.on_crash = self._crash
        self._keeper: Keeper | None = None
        self._stage = stage
        self._spawned = spawned  # called with each new process of a job
        self._adopted = adopted
        self._to_bury: list[int] = []  # told with the next orders, or when there is nothing else to do
        self._watch = Watch()

    def open(self, ledger: str, *, lock: int, environment: Mapping[str, str]) -> None:
        stage = self._stage
        keeper = self._keeper = Keeper(stage, self.host, ledger, self.signals, self._spawned)
        if stage.strikes(stage.chances.keeper):
            stage.later(stage.random.random() * 6, keeper.die)

    def close(self) -> None:
        """Whatever runs goes on."""
        self._watch.close()
        self._be_gone(alone=True)

    def forget_ledger(self) -> None:
        """It is about to be removed, by one that ends in order: what it was told then, nobody can know after it."""
        if self._keeper is not None:
            self._keeper.noted.clear()

    def _crash(self) -> None:
        """Sometimes with its keeper, as at the end of a container or for want of memory."""
        chance = self._stage.random.random
        alone = chance() < 0.65
        self._be_gone(alone=alone)
        if alone and self._keeper is not None and chance() < 0.15:
            self._stage.later(chance() * 3, self._keeper.die)

    def lose_power(self) -> None:
        """The machine is gone; `Host.start_anew` does the rest."""
        self._be_gone(alone=False)

    def _be_gone(self, *, alone: bool) -> None:
        if self.is_gone:
            return
        if self._keeper is not None and alone:
            self._keeper.hang_up()
        elif self._keeper is not None:
            self._keeper.die()
        self.is_gone = True
        self.host.processes.pop(self.process.pid, None)
        self.participant.on_crash = lambda: None
        self._watch._poll.close()  # the pins in it are closed with all that a participant had open

    def fileno(self) -> int:
        return self._watch.fileno()

    def look_again(self) -> float | None:
        return LOOK_EVERY if self._watch.is_restless else None

    def limit_logs(self, limit: int) -> None: ...

    def rest(self) -> None:
        if self._keeper is not None:
            for pid in self._to_bury:
                self._keeper.bury(pid)
            self._to_bury.clear()

    @property
    def is_ready(self) -> bool:
        return self._keeper is not None and bool(self._keeper.begun)

    def begin(self, orders: Sequence[Order]) -> None:
        keeper, chance = self._kept_by(), self._stage.random.random
        self.rest()
        keeper.orders += orders
        if chance() < 0.7:
            keeper.make_all()
        else:  # also if we should be stopped or gone by then
            keeper.make_soon()
        self._stage.effect(AFTER_AN_ORDER)

    def begun(self, *, wait: bool = False) -> Sequence[Begun]:
        keeper = self._kept_by()
        if wait:
            keeper.make_all()
        found, keeper.begun = keeper.begun, []
        return found

    def _kept_by(self) -> Keeper:
        assert self._keeper is not None
        if self._keeper.is_gone:
            raise errors.SupervisorGone
        return self._keeper

    def adopt(self, child: Child, token: str, ledger: str) -> float:
        age = self._watch.adopt(child, token, ledger)
        self._adopted(self, child, token, is_running=self._watch._adopted[child].pin is not None)
        return age

    def lasted(self, child: Child) -> float | None:
        return self._watch.lasted(child) if child in self._watch else self._told(child).lasted

    def log_to(self, child: Child) -> int | None:
        return self._watch.log_to(child) if child in self._watch else self._told(child).log_to

    def spent(self, child: Child) -> ResourceReport:
        return self._watch.spent(child) if child in self._watch else self._told(child).spent

    def leave_ends(self, children: Collection[Child]) -> None:
        if self._keeper is not None:
            self._keeper.left |= {child.pid for child in children if child not in self._watch}

    def _told(self, child: Child) -> Told:
        assert self._keeper is not None
        return self._keeper.told[child.pid]

    def peek(self, child: Child) -> Exited | Signalled | Untold | None:
        if child in self._watch:
            return self._watch.peek(child)
        # Nobody tells us any more, if our keeper is gone; at the next order we go, too.
        found = self.host.processes.get(child.pid)
        return found.how if found is not None and found.started == child.started else None

    def reap(self, child: Child) -> None:
        self._stage.effect("before a reap")
        if child in self._watch:
            self._watch.forget(child)
        else:
            self._to_bury.append(child.pid)

    def families(self, runs: Mapping[str, Child]) -> dict[str, list[Entry]]:
        found = ending.families({token: child.pid for token, child in runs.items() if child not in self._watch})
        for token, child in runs.items():
            if child in self._watch:
                found[token] = ending.orphans({token: Footprint(*child, 0)})
        return found

    def send(self, number: int, to: Sequence[Entry]) -> None:
        ending.send(number, to)

    def kill_group(self, child: Child) -> None:
        if child in self._watch:
            ending.kill_groups({"": Footprint(*child, 0)})
        else:
            with contextlib.suppress(ProcessLookupError):
                kill_group_of(self._stage, self.host, child.pid, signal.SIGKILL)

    def reap_strays(self) -> None: ...
