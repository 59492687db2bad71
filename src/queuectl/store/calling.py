"""The seam for webhooks: from an end that somebody is to be told of to a job that tells it.

In two steps. The transaction that writes an end notes whom to tell, a row each: it costs those nothing that tell nobody, and on
PostgreSQL no round trip. Whoever comes next makes jobs of these rows, which takes numbers and ranks as any enqueue
does. Each step is whole or not at all, so that a call is lost by nothing that a job survives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from queuectl.job.hooks import DELIVER, SAID, TAG, URL, WORKER_SLOTS, calls, receiver_limit, receiver_of, unpack
from queuectl.job.model import Claim, Worker
from queuectl.job.names import WEBHOOKS
from queuectl.job.newjob import NewJob
from queuectl.job.settle import Settlement

AT_ONCE: Final = 200
RETRIES: Final = 10  # with a base of 2: for a good half hour, or as long as backoff-max lets them
TIMEOUT_MS: Final = 30_000
# A worker that is to leave when all is done waits for so many tries of each call, which is half a minute if nobody is there: a
# receiver that is being restarted is back by then, one that is gone is left to whoever works next.
DRAIN_TRIES: Final = 5


class Noted(NamedTuple):
    """In the order of take_calls.sql."""

    at: int
    job: str
    run: int
    happening: str
    url: str
    said: str


class Calling(Protocol):
    def make_calls(self) -> int:
        """Queue what tells of ends, some at a time: for each call once, whoever else does the same at the same time. Returns
        how many. Cheap if there is none."""
        ...


def call_rows(claim: Claim, settlement: Settlement, *, now_ms: int) -> list[dict[str, Any]]:
    """The parameters of note_call.sql."""
    return [
        {
            "job": claim.id,
            "run": claim.run,
            "happening": call.happening.value,
            "url": call.hook.url,
            "said": call.hook.said.value,
            "at": now_ms,
        }
        for call in calls(unpack(claim.hooks), settlement)
    ]


def deliveries(found: Sequence[tuple[Any, ...]], workers: Sequence[Worker]) -> list[NewJob]:
    """The delivery jobs for the rows of take_calls.sql. URLs are often secrets: they go into the environment, which is not shown.

    The receiver is the concurrency key of its deliveries, so that a receiver that does not answer cannot take all slots.
    """
    running = [worker for worker in workers if worker.state == "running"]
    # A worker that was given the queue of the deliveries uses its slots for them, see worker/plan.py.
    slots = sum(worker.slots if WEBHOOKS in (worker.queues or ()) else WORKER_SLOTS for worker in running)
    return [_delivery(one, receiver_limit(slots)) for one in sorted(Noted._make(row) for row in found)]


def _delivery(noted: Noted, at_once: int) -> NewJob:
    return NewJob(
        command=None,
        argv=(DELIVER, noted.happening, noted.job, str(noted.run)),
        id=None,
        queue=WEBHOOKS,
        priority=0,
        max_retries=RETRIES,
        first_is_free=False,
        backoff_base=2.0,
        timeout_ms=TIMEOUT_MS,
        run_at_ms=None,
        delay_ms=None,
        cwd="/",
        env={URL: noted.url, SAID: noted.said},
        tags=(TAG,),
        key=receiver_of(noted.url),
        places=at_once,
    )
