"""A store composed of its parts. Each method of the interface is that of the same name of one part; protocol.py has the contracts.

A test compares the signatures.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from queuectl.store.admin import AuditLog, JobAdmin, QueueAdmin
from queuectl.store.alerts import Alerts
from queuectl.store.batches import Batches
from queuectl.store.counters import Samples
from queuectl.store.dependencies import Resolver
from queuectl.store.enqueue import EnqueueSteps
from queuectl.store.protocol import Store
from queuectl.store.reads import JobReads
from queuectl.store.schedules import Schedules
from queuectl.store.transactions import Transactions
from queuectl.store.transfer import ImportParts, Transfers

if TYPE_CHECKING:
    from queuectl.jobs.audit import Actor


class Parts(NamedTuple):
    """The parts without a type differ between the dialects. `tx` is last: a method of the interface belongs to the first that has it."""

    enqueuer: Any
    reads: Any
    claims: Any
    maintenance: Any
    transfers: Transfers
    jobs: JobAdmin
    queues: QueueAdmin
    schedules: Schedules
    alerts: Alerts
    batches: Batches
    samples: Samples
    audit: AuditLog
    tx: Transactions


class ComposedStore:
    """Base of the two dialects, which create the parts that differ."""

    parts: Parts

    def compose(
        self,
        tx: Transactions,
        enqueuer: EnqueueSteps,
        resolver: Resolver,
        reads: JobReads,
        *,
        claims: Any,
        maintenance: Any,
        transfers: Callable[[ImportParts], Transfers],
    ) -> None:
        queues, schedules = QueueAdmin(tx), Schedules(tx, enqueuer, resolver)
        alerts, batches = Alerts(tx, enqueuer), Batches(tx, enqueuer)
        imports = transfers(ImportParts(reads, queues, schedules, alerts, batches, resolver))
        jobs = JobAdmin(tx, resolver)
        of_records = (jobs, queues, schedules, alerts, batches, Samples(tx), AuditLog(tx))
        self.parts = Parts(enqueuer, reads, claims, maintenance, imports, *of_records, tx)

    @property
    def actor(self) -> Actor | None:
        return self.parts.tx.actor

    @actor.setter
    def actor(self, actor: Actor | None) -> None:
        self.parts.tx.actor = actor


def owner(parts: Parts, method: str) -> Any:
    return next(part for part in parts if hasattr(part, method))


def _delegate(name: str) -> Any:
    declared = getattr(Store, name)
    if isinstance(declared, property):
        return property(lambda self: getattr(owner(self.parts, name), name))

    @functools.wraps(declared)
    def call(self: ComposedStore, /, *args: Any, **kwargs: Any) -> Any:
        return getattr(owner(self.parts, name), name)(*args, **kwargs)

    return call


INTERFACE = tuple(name for name in dir(Store) if not name.startswith("_"))
for _name in INTERFACE:
    setattr(ComposedStore, _name, _delegate(_name))
