"""The life of jobs without processes: a worker's words to the store, said by a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from queuectl.job.model import Claim, NewJob
from queuectl.job.outcome import Exited, Outcome, Signalled
from queuectl.job.retry import RetryPolicy
from queuectl.job.settle import settle
from queuectl.store.protocol import ClaimRequest, End, NewWorker, Store

OK = Exited(0)
KILLED = Signalled(9)


def new_job(command: str = "true", **fields: Any) -> NewJob:
    values: dict[str, Any] = {
        "command": command,
        "argv": None,
        "id": None,
        "queue": "default",
        "priority": 0,
        "max_retries": 1,
        "first_is_free": False,
        "backoff_base": 2.0,
        "timeout_ms": None,
        "run_at_ms": None,
        "delay_ms": None,
        "cwd": "/",
        "env": None,
        "tags": (),
    }
    return NewJob(**{**values, **fields})


def enqueue(store: Store, job_id: str, **fields: Any) -> str:
    return store.enqueue([new_job(id=job_id, **fields)])[0]


def register(store: Store, home: Path, *, name: str = "w1", queues: tuple[str, ...] | None = None) -> None:
    store.register(NewWorker(name, "here", 4711, str(home), 1, queues)).close()


def claim(store: Store, home: Path, *, worker: str = "w1") -> Claim:
    """The next job, now running."""
    request = ClaimRequest(limit=1, queues=None, host="here", logs=str(home / "logs"))
    return store.exchange(worker, claim=request).claims[0]


def end(
    store: Store, held: Claim, outcome: Outcome = OK, *, worker: str = "w1", span: tuple[int, int] = (0, 0)
) -> None:
    policy = RetryPolicy(max_ms=3_600_000, jitter=0)
    settlement = settle(held, outcome, policy=policy, chance=0.5)
    store.exchange(worker, ends=[End(held, settlement, 4711, 0.25, 0.25, *span)])


def run(store: Store, home: Path, outcome: Outcome = OK) -> str:
    """Claim the next job and end it; its id."""
    held = claim(store, home)
    end(store, held, outcome)
    return held.id
