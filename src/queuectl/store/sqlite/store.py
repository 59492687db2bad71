"""The store in one SQLite file: it needs no server and serves one machine."""

from __future__ import annotations

from functools import partial

from queuectl.clock import Clock
from queuectl.store.composed import ComposedStore
from queuectl.store.sqlite.claims import SqliteClaims
from queuectl.store.sqlite.connection import OnWait, SqliteTransactions, connect
from queuectl.store.sqlite.dependencies import SqliteResolver
from queuectl.store.sqlite.enqueue import SqliteEnqueuer
from queuectl.store.sqlite.maintenance import SqliteMaintenance
from queuectl.store.sqlite.reads import SqliteReads
from queuectl.store.sqlite.transfer import SqliteTransfers


class SqliteStore(ComposedStore):
    def __init__(self, path: str, *, clock: Clock, patience: float = 30.0, on_wait: OnWait | None = None) -> None:
        tx = SqliteTransactions(connect(path, clock=clock, patience=patience, on_wait=on_wait), clock)
        self.db = tx.db
        resolver, reads = SqliteResolver(tx), SqliteReads(tx)
        self.compose(
            tx,
            SqliteEnqueuer(tx),
            resolver,
            reads,
            claims=SqliteClaims(tx, reads, resolver),
            maintenance=SqliteMaintenance(tx, reads, resolver),
            transfers=partial(SqliteTransfers, tx),
        )
