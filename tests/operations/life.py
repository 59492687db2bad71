"""The life of jobs without processes, in single steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Exited, Outcome, Signalled
from queuectl.store.store import Store
from queuectl.store.types import ClaimRequest, End, NewWorker
from tests.factories import new_job, settlement

OK = Exited(0)
KILLED = Signalled(9)
QUARTER_SECOND = 0.25


def enqueue(store: Store, job_id: str, **fields: Any) -> str:
    """Enqueue a job that is dead after its first failure by default."""
    return store.enqueue([new_job(job_id, **{"max_retries": 1, **fields})])[0]


def register(store: Store, home: Path, *, name: str = "w1", queues: tuple[str, ...] | None = None) -> None:
    store.claims.register(NewWorker(name, "here", 4711, str(home), 1, queues)).close()


def claim(store: Store, home: Path, *, worker: str = "w1") -> Claim:
    """Claim the next job and record its start."""
    request = ClaimRequest(limit=1, queues=None, host="here", logs=str(home / "logs"))
    return store.claims.exchange(worker, claim=request).claims[0]


def end(
    store: Store,
    held: Claim,
    outcome: Outcome = OK,
    *,
    worker: str = "w1",
    span: tuple[int | None, int | None] = (0, 0),
) -> None:
    """Settle a run of 250 ms."""
    over = End(held, settlement(held, outcome), 4711, QUARTER_SECOND, QUARTER_SECOND, *span)
    store.claims.exchange(worker, ends=[over])


def run(store: Store, home: Path, outcome: Outcome = OK) -> str:
    """Claim the next job and settle it. Returns its ID."""
    held = claim(store, home)
    end(store, held, outcome)
    return held.id
