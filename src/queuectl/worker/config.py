"""What a worker was asked to do, and everything outside of it that its loop uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from queuectl.clock import Clock
from queuectl.events import Sink
from queuectl.jobs.audit import Actor
from queuectl.process.adopted import Adoption
from queuectl.process.client import Processes
from queuectl.settings import Settings
from queuectl.store.store import Store
from queuectl.text import WEBHOOK_QUEUE
from queuectl.worker.slots import Secrets
from queuectl.worker.store_retry import HasFileno, Standby


class WorkerConfig(NamedTuple):
    id: str
    host: str
    machine: str
    pid: int
    home: str
    slots: int | None  # None: the setting worker-count, also when it changes
    queues: tuple[str, ...] | None
    weights: tuple[int, ...] | None = None  # of the queues; None: the first is served first
    drain: bool = False
    idle_timeout: float | None = None
    actor: Actor | None = None  # who started it, for the audit log
    lock: str = ""  # the mark of its lock file, once it has the lock

    @property
    def has_webhook_slots(self) -> bool:
        """Whether webhook deliveries take none of its slots. A worker that was given their queue runs them in its slots."""
        return self.queues is None or WEBHOOK_QUEUE not in self.queues

    @property
    def served_queues(self) -> tuple[str, ...] | None:
        """Its queues, and last that of the webhook deliveries."""
        return None if self.queues is None else tuple(dict.fromkeys((*self.queues, WEBHOOK_QUEUE)))


class MaintenanceTask(Protocol):
    """A periodic task.

    `adds_work`: it adds jobs. It is also due at the first poll after another process has written to the store, and a worker that must not
    start anything more leaves it to others.
    """

    @property
    def adds_work(self) -> bool: ...

    def step(self, now: float) -> float:
        """Do what is due, and return when it is due again, by the monotonic clock."""
        ...


class WorkerContext(NamedTuple):
    """Everything outside that the loop uses. The simulator has its own."""

    store: Store
    processes: Processes
    clock: Clock
    chance: Callable[[], float]  # uniform in [0, 1)
    load_settings: Callable[[], Settings]
    emit: Sink
    wait: Callable[[Sequence[HasFileno], float], Sequence[HasFileno]]  # as `wait_for_any`
    adoptions: deque[Adoption]  # the rescuer puts runs of dead workers here
    secrets: Secrets | None = None  # None: this worker cannot resolve any
    standby: Standby | None = None  # None: nothing watches the runs while the loop waits for the store
    before_sleep: Callable[[], float | None] = lambda: (
        None
    )  # returns in how many seconds to call it again, None: no need
