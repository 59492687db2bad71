"""The seam to the database: every verb that touches it, with its contract. Composed of one protocol a subject: what can be
asked is in reads.py, what workers do with jobs in runs.py; callers take all names from here.

A store keeps the promises of docs/reference by itself: callers never ask what they are talking to. Every write is one
transaction and durable when the call returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

from queuectl.errors import KeyTaken
from queuectl.job.audit import Actor
from queuectl.job.lifecycle import State
from queuectl.job.newjob import NewJob, QueueDefaults
from queuectl.store.alerting import Alerts
from queuectl.store.amending import Amendable
from queuectl.store.auditing import Audited
from queuectl.store.batches import Batching
from queuectl.store.calling import Calling
from queuectl.store.choosing import After as After
from queuectl.store.choosing import Chosen as Chosen
from queuectl.store.choosing import Filter as Filter
from queuectl.store.choosing import Sort as Sort
from queuectl.store.entry import Enqueued
from queuectl.store.ids import Ids
from queuectl.store.measures import Histogram as Histogram
from queuectl.store.measures import Spread as Spread
from queuectl.store.measures import Throughput as Throughput
from queuectl.store.porting import Imports
from queuectl.store.pruning import Prunable
from queuectl.store.queues import QueueRules
from queuectl.store.reads import OUTPUT_AT_ONCE as OUTPUT_AT_ONCE
from queuectl.store.reads import LatestRun as LatestRun
from queuectl.store.reads import Printed as Printed
from queuectl.store.reads import Reads as Reads
from queuectl.store.requests import Request, Requests
from queuectl.store.runs import ClaimRequest as ClaimRequest
from queuectl.store.runs import End as End
from queuectl.store.runs import Exchange as Exchange
from queuectl.store.runs import Lost as Lost
from queuectl.store.runs import OutputPiece as OutputPiece
from queuectl.store.runs import Runs
from queuectl.store.runs import Sign as Sign
from queuectl.store.runs import Span as Span
from queuectl.store.runs import Start as Start
from queuectl.store.sampling import Samples
from queuectl.store.scheduling import Schedules
from queuectl.store.telling import Decides
from queuectl.store.workforce import Bell as Bell
from queuectl.store.workforce import NewWorker as NewWorker
from queuectl.store.workforce import Orders as Orders
from queuectl.store.workforce import StopMode as StopMode
from queuectl.store.workforce import Workforce


class CancelAnswer(NamedTuple):
    """`before` is the state the job was in. If it was processing, the cancel is recorded and `worker` has to end it."""

    before: State
    worker: str | None
    token: str | None


class Revived(dict[str, State]):
    """The state before, of each job that there is. `taken`: who stays as it is since another has its key, and why."""

    taken: Mapping[str, KeyTaken] = MappingProxyType({})


class Inbox(Protocol):
    """As much of a store as adding jobs needs."""

    actor: Actor | None  # see store/auditing.py

    def close(self) -> None: ...

    def config(self) -> dict[str, str]:
        """The stored settings, as they were written."""
        ...

    def queue_defaults(self) -> QueueDefaults:
        """What is said about the jobs of some queues."""
        ...

    def enqueue(
        self, jobs: Sequence[NewJob], *, on_complete: NewJob | None = None, idempotency: Request | None = None
    ) -> Enqueued:
        """Add jobs, all or none, and return their ids in the order given.

        Of all jobs with one unique key at most one waits or runs, at any moment and whoever enqueues at the same time; the
        jobs of a batch come one after the other. What becomes of a job whose key is taken, job/unique.py says: its place
        in the answer has the id of the one that is there, or that one is called off for it. Nothing of it counts as an enqueue
        but what came in. A job that waits for one whose key is taken waits for the one that is there. `on_complete` is queued
        when all of the batch that it names have ended. Raises DuplicateId if an id is taken or given twice, KeyTaken if a key
        is and that is an error, BatchComplete or BatchDiffers, see store/batches.py; for a job that is to wait for others
        ParentNotFound, ParentEnded if one of them can no longer end as is needed, and InvalidInput if they wait for each other.

        With `idempotency`, the same request again within 24 hours adds nothing and gets the same answer, also while the first is under
        way; one that had the same key and was another raises KeyReused.
        """
        ...


class Store(
    Inbox,
    Reads,
    Runs,
    Imports,
    Prunable,
    Batching,
    Calling,
    Schedules,
    Alerts,
    QueueRules,
    Workforce,
    Amendable,
    Decides,
    Samples,
    Requests,
    Audited,
    Protocol,
):
    def cancel(self, ids: Ids) -> dict[str, CancelAnswer]:
        """Call off those that wait at once; record the wish for those that run; all in one transaction. Other states stay as
        they are. Returns an answer for each job that there is."""
        ...

    def revive(self, ids: Ids, *, states: frozenset[State]) -> Revived:
        """Back to pending, due now, same place in the line, those in one of `states`; all in one transaction. Returns for
        each job that there is the state before.

        A dead or cancelled job starts with no attempts and no crashes again; its runs and history stay. One whose unique
        key another job has taken meanwhile stays as it is, and `taken` says so.
        """
        ...

    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        """Remove those that are dead, and their history, in one transaction. Returns for each job that there is the state
        found, unchanged unless it was dead, and the log."""
        ...

    def set_config(self, changes: Mapping[str, str | None]) -> None:
        """Store settings; None removes one. A change of `ageing` ranks anew what waits, in the same transaction."""
        ...

    def reset(self) -> int:
        """Remove all jobs and their history, keep the settings. Returns how many jobs there were."""
        ...
