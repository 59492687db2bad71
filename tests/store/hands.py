"""A worker without processes: what one says to the store, said by a test."""

from __future__ import annotations

from pathlib import Path

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Exited, Outcome
from queuectl.store.store import Store
from queuectl.store.types import ClaimRequest, End, Exchange, NewWorker, Start
from tests.factories import settlement

OK = Exited(0)
BAD = Exited(3)
PID = 4711


class Hands:
    def __init__(
        self, store: Store, home: Path, *, name: str = "w1", queues: tuple[str, ...] | None = None, slots: int = 4
    ) -> None:
        self.store = store
        self.name = name
        self.queues = queues
        self.logs = str(home / "logs")
        self.wakeup = store.claims.register(NewWorker(name, "here", PID, str(home), slots, queues))

    def exchange(self, *, limit: int | None = None) -> Exchange:
        """Claim up to `limit`; None: settle and claim nothing, as a worker that stops does."""
        return self.store.claims.exchange(self.name, claim=None if limit is None else self.request(limit))

    def request(self, limit: int, *, calls: int = 0) -> ClaimRequest:
        return ClaimRequest(limit, self.queues, "here", self.logs, webhooks=calls)

    def calls(self, limit: int) -> list[Claim]:
        """Claim up to so many that tell of ends, and no others."""
        return self.store.claims.exchange(self.name, claim=self.request(0, calls=limit)).claims

    def claim(self, limit: int) -> list[Claim]:
        return self.exchange(limit=limit).claims

    def claim_one(self) -> Claim:
        (claim,) = self.claim(1)
        return claim

    def start(self, claim: Claim, *, pid: int = PID, age: float = 0, log_from: int | None = 0) -> None:
        self.store.claims.exchange(self.name, starts=[Start(claim, pid, age, log_from)])

    def end(
        self,
        claim: Claim,
        outcome: Outcome = OK,
        *,
        age: float = 0,
        duration: float = 0,
        log: tuple[int | None, int | None] = (0, 0),
        last_output: str | None = None,
    ) -> Exchange:
        settled = settlement(claim, outcome)
        span = (None, None) if settled.ending is None else log  # without a run there is no output
        end = End(claim, settled, PID, age, duration, *span, last_output=last_output)
        return self.store.claims.exchange(self.name, ends=[end])

    def run(self, outcome: Outcome = OK, *, duration: float = 0, last_output: str | None = None) -> Claim:
        """Claim the next job and end it."""
        claim = self.claim_one()
        self.end(claim, outcome, age=duration, duration=duration, last_output=last_output)
        return claim
