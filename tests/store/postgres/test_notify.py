"""The bell: it wakes over the network, says when it cannot, and comes back."""

from __future__ import annotations

from pathlib import Path

from queuectl.store.address import PostgresUrl
from queuectl.store.postgres.connection import Connection
from queuectl.store.postgres.notify import LOST, POOLED, NotifyWakeup
from queuectl.store.postgres.session import Session
from queuectl.store.postgres.store import PostgresStore
from queuectl.store.postgres.transactions import NOTIFICATION_BURST
from queuectl.store.types import NewWorker
from tests import postgres
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import PID
from tests.store.postgres.conftest import Open
from tests.store.postgres.test_connection import end_sessions
from tests.store.wakeups import drain, wakes


def hire(store: PostgresStore, home: Path) -> NotifyWakeup:
    return store.claims.register(NewWorker("w1", "here", PID, str(home), 1, None))


def test_an_enqueue_of_another_process_wakes_the_worker(store: PostgresStore, open_pg: Open, home: Path) -> None:
    bell = hire(store, home)
    assert not bell.polling_because
    assert not wakes(bell, within=0)
    open_pg().enqueue([new_job()])
    assert wakes(bell)
    assert bell.drain()
    assert not drain(bell)
    bell.close()


def test_who_writes_without_pause_rings_only_so_often(store: PostgresStore) -> None:
    rung = sum(bool(store.tx.notification()) for _ in range(1000))
    assert NOTIFICATION_BURST <= rung < 2 * NOTIFICATION_BURST


def test_a_bell_whose_connection_ended_is_silent_until_the_next_heartbeat(
    store: PostgresStore, server: postgres.Server, url: str, home: Path
) -> None:
    bell = hire(store, home)
    end_sessions(server, url)
    assert wakes(bell)  # the disconnect
    assert bell.drain()  # something may have been missed
    assert bell.polling_because == LOST
    assert not wakes(bell, within=0)
    descriptor = bell.fileno()
    store.claims.heartbeat("w1", slots=1, stopping=False)
    assert not bell.polling_because
    assert bell.fileno() == descriptor
    store.enqueue([new_job()])
    assert wakes(bell)
    bell.close()


class Pooled(Connection):
    """As behind a pooler in transaction mode: the session that listens is not the one that notes are sent to."""

    elsewhere: Connection

    def new_session(self) -> Session:
        return self.elsewhere.new_session()


def test_a_bell_that_hears_nothing_says_so_and_never_rings(
    url: str, empty: str, store: PostgresStore, clock: FakeClock
) -> None:
    db = Pooled(PostgresUrl(url), clock=clock)
    db.elsewhere = Connection(PostgresUrl(url), clock=clock)
    db.open()
    db.elsewhere = Connection(PostgresUrl(empty), clock=clock)
    bell = NotifyWakeup(db)
    assert bell.polling_because == POOLED
    store.enqueue([new_job()])
    assert not wakes(bell, within=0.05)
    assert not drain(bell)
    bell.reconnect()
    assert bell.polling_because  # there is nothing to mend
    bell.close()
    db.close()
