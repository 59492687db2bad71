"""The store in PostgreSQL: one queue for many machines."""

from __future__ import annotations

from queuectl.store.composed import ComposedStore
from queuectl.store.postgres.connection import Connection
from queuectl.store.postgres.dependencies import PostgresResolver
from queuectl.store.postgres.enqueue import PostgresEnqueuer
from queuectl.store.postgres.exchange import PostgresClaims
from queuectl.store.postgres.maintenance import PostgresMaintenance
from queuectl.store.postgres.reads import PostgresReads
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.postgres.transfer import PostgresTransfers


class PostgresStore(ComposedStore):
    def __init__(self, db: Connection) -> None:
        tx = PostgresTransactions(db)
        self.db = db
        resolver, reads = PostgresResolver(tx), PostgresReads(tx)
        enqueuer = PostgresEnqueuer(tx, resolver)
        self.compose(
            tx,
            enqueuer,
            resolver,
            reads,
            claims=PostgresClaims(tx, reads, resolver),
            maintenance=PostgresMaintenance(tx, resolver),
            transfers=lambda parts: PostgresTransfers(tx, parts, enqueuer),
        )
