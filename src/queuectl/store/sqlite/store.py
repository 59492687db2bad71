"""The store in one SQLite file: it needs no server and serves one machine."""

from __future__ import annotations

from queuectl.clock import Clock
from queuectl.store.admin import AuditLog, JobAdmin, QueueAdmin
from queuectl.store.alerts import Alerts
from queuectl.store.batches import Batches
from queuectl.store.composed import ComposedStore, Parts
from queuectl.store.counters import Samples
from queuectl.store.schedules import Schedules
from queuectl.store.sqlite.claims import SqliteClaims
from queuectl.store.sqlite.connection import OnWait, SqliteTransactions, connect
from queuectl.store.sqlite.dependencies import SqliteResolver
from queuectl.store.sqlite.enqueue import SqliteEnqueuer
from queuectl.store.sqlite.maintenance import SqliteMaintenance
from queuectl.store.sqlite.reads import SqliteReads
from queuectl.store.sqlite.transfer import SqliteTransfers
from queuectl.store.transfer import ImportParts


class SqliteStore(ComposedStore):
    def __init__(self, path: str, *, clock: Clock, patience: float = 30.0, on_wait: OnWait | None = None) -> None:
        tx = SqliteTransactions(connect(path, clock=clock, patience=patience, on_wait=on_wait), clock)
        self.db = tx.db
        queues, enqueuer, resolver = QueueAdmin(tx), SqliteEnqueuer(tx), SqliteResolver(tx)
        reads = SqliteReads(tx, queues)
        schedules, alerts, batches = Schedules(tx, enqueuer, resolver), Alerts(tx, enqueuer), Batches(tx, enqueuer)
        super().__init__(
            Parts(
                tx=tx,
                enqueuer=enqueuer,
                reads=reads,
                claims=SqliteClaims(tx, reads, resolver),
                maintenance=SqliteMaintenance(tx, reads, resolver),
                transfers=SqliteTransfers(tx, ImportParts(reads, queues, schedules, alerts, batches, resolver)),
                jobs=JobAdmin(tx, resolver),
                queues=queues,
                schedules=schedules,
                alerts=alerts,
                batches=batches,
                samples=Samples(tx),
                audit=AuditLog(tx),
            )
        )
