"""The interface of claims, which each dialect implements: assign jobs to workers, and settle their runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from queuectl.jobs.audit import Act
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.types import Orders, Span, StopMode

if TYPE_CHECKING:
    from queuectl.jobs.model import Claim
    from queuectl.store.transactions import Transactions
    from queuectl.store.types import (
        ClaimRequest,
        End,
        Exchange,
        LastHeartbeat,
        NewWorker,
        OutputPiece,
        Rescued,
        Start,
    )


class Wakeup(Protocol):
    """Wakes a sleeping worker when there may be work. A hint: it may come without reason, and it may be lost."""

    polling_because: str | None  # why no wake-ups arrive now, so that the worker has to poll; None if they do

    def fileno(self) -> int: ...

    def drain(self) -> bool:
        """Consume all wake-ups so far. Whether there were any."""
        ...

    def close(self) -> None: ...


class Claims(ABC):
    """Claims, runs and their settlement.

    Every write about a running job names the token of its claim (a fencing token), and changes nothing if the job has another
    token by now.
    """

    def __init__(self, tx: Transactions) -> None:
        self._tx = tx

    @abstractmethod
    def exchange(
        self,
        worker: str,
        *,
        starts: Sequence[Start] = (),
        outputs: Sequence[OutputPiece] = (),
        ends: Sequence[End] = (),
        claim: ClaimRequest | None = None,
    ) -> Exchange:
        """Record starts, store output, settle ended runs, promote jobs that came due and claim the next ones, in one transaction.

        Eligible: pending or failed, due, not held, in a queue that is not paused and not at one of its limits, which hold across
        all workers. Order: rank, then first in, first out. Two callers never get the same job. Each claim starts a new run with
        a new token. An unregistered worker gets no jobs, because they would never be rescued.
        Starts and output must be of runs that are in progress or that end in this call. An end with an outdated token changes
        nothing and is returned in `lost`. A cancel that was recorded before the end wins: the job is cancelled, and the run
        does not count as an attempt.
        Dependencies on jobs that have ended are resolved in small steps, see Resolver.
        """

    @abstractmethod
    def fence(self, worker: str, *, last_heartbeat: LastHeartbeat | None = None) -> list[Claim] | None:
        """Ignore all writes of this worker until it registers again. Returns the claims it holds.

        The first step of a rescue: a worker that was only silent may wake up while its jobs are being killed. With
        `last_heartbeat`, changes nothing and returns None if the worker has sent another one, or another process has its name.
        """

    @abstractmethod
    def adopt(self, worker: str, tokens: Collection[str], *, by: str) -> list[str]:
        """Transfer the runs with these tokens from a fenced worker to another. They keep their tokens. Returns the transferred
        ones: none if the other worker is not registered (any more)."""

    @abstractmethod
    def rescue(
        self,
        worker: str,
        *,
        max_crashes: int,
        spans: Mapping[str, Span] = MappingProxyType({}),
        only: Collection[str] | None = None,
        unbegun: Collection[str] = (),
    ) -> list[Rescued]:
        """Settle the runs of a dead worker as lost, and remove the worker. With `only`, the runs with these tokens: the worker
        may have registered again since it was fenced, and then keeps its new claims and its name.

        `spans`: the output of the lost runs, by token. `unbegun`: tokens of claims for which no process was started; they do not
        count as attempts. The caller has made sure that the worker is dead and that none of these jobs still runs.
        """

    @abstractmethod
    def register(self, worker: NewWorker) -> Wakeup:
        """Register a worker under this name. It is woken after each enqueue, cancel, retry, stop and change of a schedule."""

    @abstractmethod
    def heartbeat(self, worker: str, *, slots: int, stopping: bool) -> bool:
        """False if the worker is not registered (any more)."""

    @abstractmethod
    def retire(self, worker: str) -> None:
        """Remove a worker. One that holds a job stays, so that the job is rescued."""

    @retry_conflicts
    def request_stop(self, worker: str, mode: StopMode) -> bool:
        """Ask a worker to stop; a later NOW overrides FINISH. False if there is no such worker."""
        with self._tx.write(notify=True):
            found = self._tx.execute("request_stop", {"id": worker, "mode": mode.value})
            self._tx.record(Act("worker stop", [worker] if found else [], after={"mode": mode.value}))
        return found == 1

    def orders(self, worker: str) -> Orders:
        found, cancels = self._tx.each(("stop_order", {"id": worker}), ("cancel_orders", {"worker": worker}))
        stop = StopMode(found[0][0]) if found and found[0][0] is not None else None
        return Orders(known=bool(found), stop=stop, cancels=[token for (token,) in cancels])
