"""The store in PostgreSQL: one queue for many machines."""

from __future__ import annotations

from queuectl.store.admin import AuditLog, JobAdmin, QueueAdmin
from queuectl.store.alerts import Alerts
from queuectl.store.batches import Batches
from queuectl.store.composed import ComposedStore, Parts
from queuectl.store.counters import Samples
from queuectl.store.postgres.connection import Connection
from queuectl.store.postgres.dependencies import PostgresResolver
from queuectl.store.postgres.enqueue import PostgresEnqueuer
from queuectl.store.postgres.exchange import PostgresClaims
from queuectl.store.postgres.maintenance import PostgresMaintenance
from queuectl.store.postgres.reads import PostgresReads
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.postgres.transfer import PostgresTransfers
from queuectl.store.schedules import Schedules
from queuectl.store.transfer import ImportParts


class PostgresStore(ComposedStore):
    def __init__(self, db: Connection) -> None:
        tx = PostgresTransactions(db)
        self.db = db
        queues, resolver, reads = QueueAdmin(tx), PostgresResolver(tx), PostgresReads(tx)
        enqueuer = PostgresEnqueuer(tx, resolver)
        schedules, alerts, batches = Schedules(tx, enqueuer, resolver), Alerts(tx, enqueuer), Batches(tx, enqueuer)
        parts = ImportParts(reads, queues, schedules, alerts, batches, resolver)
        super().__init__(
            Parts(
                tx=tx,
                enqueuer=enqueuer,
                reads=reads,
                claims=PostgresClaims(tx, reads, resolver),
                maintenance=PostgresMaintenance(tx, resolver),
                transfers=PostgresTransfers(tx, parts, enqueuer),
                jobs=JobAdmin(tx, resolver),
                queues=queues,
                schedules=schedules,
                alerts=alerts,
                batches=batches,
                samples=Samples(tx),
                audit=AuditLog(tx),
            )
        )
