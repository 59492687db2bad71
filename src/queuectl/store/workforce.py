"""The seam to the database, as far as it is about workers: who there is, and what others want of them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol


class StopMode(StrEnum):
    FINISH = "finish"  # claim nothing more, finish what runs
    NOW = "now"  # end what runs, give it back
    RESTART = "restart"  # let what runs go on, and begin anew in the same process, which then adopts it


class NewWorker(NamedTuple):
    id: str
    host: str
    pid: int
    home: str
    slots: int
    queues: tuple[str, ...] | None
    machine: str = ""  # which one, whatever it is called
    lock: str = ""  # the mark of its lock file


class Orders(NamedTuple):
    """What others want of a worker."""

    known: bool  # False: the store has no such worker any more, it was declared lost
    stop: StopMode | None
    cancels: list[str]  # tokens of its claims that somebody cancelled


class Bell(Protocol):
    """What rings when there may be something to do. A hint: it may ring for nothing, and a ring may be lost."""

    silent_because: str | None  # why it never rings now, so that workers have to poll; None if it does

    def fileno(self) -> int: ...

    def hush(self) -> bool:
        """Take note of all rings so far. Whether there were any."""
        ...

    def close(self) -> None: ...


class Workforce(Protocol):
    def register(self, worker: NewWorker) -> Bell:
        """Begin to work under this name. The bell rings after each enqueue, cancel, revive, stop and change
        of a schedule from anywhere."""
        ...

    def heartbeat(self, worker: str, *, slots: int, stopping: bool) -> bool:
        """Say that this worker lives. False if the store does not know it (any more)."""
        ...

    def orders(self, worker: str) -> Orders: ...

    def request_stop(self, worker: str, mode: StopMode) -> bool:
        """Ask a worker to stop; a later NOW overrides FINISH. False if there is no such worker."""
        ...

    def retire(self, worker: str) -> None:
        """Forget a worker. One that holds a job stays, for others to rescue what it holds."""
        ...
