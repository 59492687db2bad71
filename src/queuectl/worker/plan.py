"""How a worker was asked to work, and what it is made of."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from queuectl.clock import Clock
from queuectl.events import Sink
from queuectl.jobs.audit import Actor
from queuectl.process.protocol import Processes
from queuectl.process.watch import Adoption
from queuectl.settings import Settings
from queuectl.store.protocol import Store
from queuectl.text import WEBHOOK_QUEUE
from queuectl.worker.asked import Secrets
from queuectl.worker.standby import HasFileno, Standby


class Plan(NamedTuple):
    id: str
    host: str
    machine: str
    pid: int
    home: str
    slots: int | None  # None: as the setting worker-count says, also when it changes
    queues: tuple[str, ...] | None
    weights: tuple[int, ...] | None = None  # of the queues; None: the first is served first
    drain: bool = False
    idle_timeout: float | None = None
    actor: Actor | None = None  # who started it, for the audit
    lock: str = ""  # the mark of the lock that makes the name ours, once it does

    @property
    def calls_aside(self) -> bool:
        """Whether jobs that tell of ends take none of its slots. Who was given their queue gives them what it has."""
        return self.queues is None or WEBHOOK_QUEUE not in self.queues

    @property
    def served(self) -> tuple[str, ...] | None:
        """The queues it takes jobs from: those it was given, and last the webhooks of whoever they are."""
        return None if self.queues is None else tuple(dict.fromkeys((*self.queues, WEBHOOK_QUEUE)))


class Duty(Protocol):
    """Something for the house that has to be done from time to time.

    `adds_work`: it brings jobs in. So it wants to look whenever somebody has written something, and a worker that is to
    begin nothing more leaves it to others.
    """

    @property
    def adds_work(self) -> bool: ...

    def step(self, now: float) -> float:
        """Do what is due and return when to come again, by the monotonic clock."""
        ...


class World(NamedTuple):
    """Everything outside that the loop touches. The simulator brings one of its own."""

    store: Store
    processes: Processes
    clock: Clock
    chance: Callable[[], float]  # uniform in [0, 1)
    load_settings: Callable[[], Settings]
    emit: Sink
    wait: Callable[[Sequence[HasFileno], float], None]  # until one is readable, or that many seconds
    foundlings: deque[Adoption]  # whoever finds runs whose worker is gone puts them there
    secrets: Secrets | None = None  # who knows those of this host; None: nobody
    standby: Standby | None = None  # looks after the runs while the loop waits for the store; None: nothing does
