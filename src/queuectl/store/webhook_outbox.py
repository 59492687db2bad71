"""The webhook outbox: from the end of a run to the job that delivers the webhook.

The transaction that settles a run adds a row for each webhook to the outbox; runs without webhooks cost nothing. A later transaction turns
the rows into jobs, which need sequence numbers and ranks like any other. So a webhook is lost by nothing that a job survives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.jobs.model import Claim, Worker
from queuectl.jobs.outcome import Settlement
from queuectl.jobs.spec import NewJob
from queuectl.store import rows
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.enqueue import EnqueueSteps, new_job_ids
from queuectl.store.transactions import Transactions
from queuectl.text import WEBHOOK_QUEUE
from queuectl.webhooks.rules import (
    DELIVER_PROGRAM,
    ORIGIN_VARIABLE,
    TAG,
    URL_VARIABLE,
    WORKER_SLOTS,
    deliveries_for,
    receiver_limit,
    receiver_of,
    unpack_hooks,
)

MAX_DELIVERIES_PER_STEP: Final = 200
DELIVERY_RETRIES: Final = 10  # with a base of 2: over half an hour, unless backoff-max is shorter
DELIVERY_TIMEOUT_MS: Final = 30_000
# A draining worker waits for this many attempts of each delivery: half a minute if the receiver does not answer. A receiver that
# restarts is back by then; the deliveries to others are left to the next worker.
DRAIN_ATTEMPTS: Final = 5


class OutboxRow(NamedTuple):
    """In the order of `take_deliveries`."""

    at: int
    job: str
    run: int
    event: str
    url: str
    origin: str


def outbox_rows(claim: Claim, settlement: Settlement, *, now_ms: int) -> list[dict[str, Any]]:
    """The parameters of `add_delivery`."""
    return [
        OutboxRow(now_ms, claim.id, claim.run, one.event.value, one.hook.url, one.hook.origin.value)._asdict()
        for one in deliveries_for(unpack_hooks(claim.hooks), settlement)
    ]


def deliveries(found: Sequence[tuple[Any, ...]], workers: Sequence[Worker]) -> list[NewJob]:
    """The delivery jobs for the rows of `take_deliveries`. URLs are often secrets: they go into the environment, which is not shown.

    The receiver is the concurrency key of its deliveries, so that a receiver that does not answer cannot take all slots.
    """
    running = [worker for worker in workers if worker.state == "running"]
    # A worker that was given the queue of the deliveries uses its slots for them, see worker/config.py.
    slots = sum(worker.slots if WEBHOOK_QUEUE in (worker.queues or ()) else WORKER_SLOTS for worker in running)
    return [_delivery(row, receiver_limit(slots)) for row in sorted(map(OutboxRow._make, found))]


def _delivery(row: OutboxRow, max_concurrent: int) -> NewJob:
    argv = (DELIVER_PROGRAM, row.event, row.job, str(row.run))
    env = {URL_VARIABLE: row.url, ORIGIN_VARIABLE: row.origin}
    job = delivery_job(argv=argv, env=env, tag=TAG)
    return job._replace(key=receiver_of(row.url), places=max_concurrent)


def delivery_job(
    *, argv: tuple[str, ...] | None, env: Mapping[str, str], tag: str, command: str | None = None, cwd: str = "/"
) -> NewJob:
    """A job of the queue of webhook deliveries."""
    retries = (DELIVERY_RETRIES, False, 2.0, DELIVERY_TIMEOUT_MS)
    return NewJob(command, argv, None, WEBHOOK_QUEUE, 0, *retries, None, None, cwd, env, (tag,))


class WebhookOutbox:
    def __init__(self, tx: Transactions, enqueuer: EnqueueSteps) -> None:
        self._tx = tx
        self._enqueuer = enqueuer

    def enqueue(self) -> int:
        """Enqueue deliveries for ended runs, some at a time: once per webhook. Returns how many. Cheap if there is none."""
        return self._enqueue() if self._tx.value("has_deliveries") else 0

    @retry_conflicts
    def _enqueue(self) -> int:
        with self._tx.write("hold_ageing", notify=True) as transitions:
            workers = [rows.worker(row) for row in self._tx.all("workers", {"busy": False})]
            jobs = deliveries(self._tx.all("take_deliveries", {"limit": MAX_DELIVERIES_PER_STEP}), workers)
            self._enqueuer.add(jobs, new_job_ids(len(jobs)), transitions)
        return len(jobs)
