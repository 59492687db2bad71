"""A worker, or a command, may be stopped in the middle of what it sends. The server waits for the rest of it, with all locks; others do not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.store.postgres.connection import LOCK_SECONDS, SQL
from queuectl.store.postgres.exchange import MAX_NAME_BYTES, application_name
from queuectl.store.postgres.store import PostgresStore
from queuectl.store.transactions import Query
from queuectl.store.types import LastHeartbeat
from tests import postgres
from tests.factories import new_job
from tests.store.hands import Hands
from tests.store.postgres.conftest import Open
from tests.wait import wait_until

HEARTBEAT = ("heartbeat", {"id": "w1", "slots": 4, "state": "running", "now": 0})
EXCHANGE = ("hold_worker", {"worker": "w1"})
OF_ANOTHER = ("heartbeat", {"id": "w2", "slots": 4, "state": "running", "now": 0})


class Stopped:
    """A store whose process was stopped when the first half of a transaction had been sent."""

    def __init__(self, store: PostgresStore, first: Query) -> None:
        self._store = store
        self._first = first
        self._goes_on = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.error: errors.QueuectlError | None = None
        self._thread.start()

    def _send(self) -> None:
        try:
            self._store.db.write(self._halves())  # type: ignore[arg-type]  # what comes bit by bit is sent bit by bit
        except errors.QueuectlError as exc:
            self.error = exc

    def _halves(self) -> Iterator[Query]:
        yield self._first
        self._goes_on.wait(30)

    def go_on(self) -> None:
        self._goes_on.set()
        self._thread.join(30)


@contextmanager
def stopped(
    store: PostgresStore, server: postgres.Server, url: str, name: str | None, half: tuple[str, dict[str, object]]
) -> Iterator[Stopped]:
    statement, values = half
    made = Stopped(store, Query(SQL[statement], values))
    try:
        wait_until(lambda: waits_for_more(server, url, name), what="the server to wait for the rest")
        yield made
    finally:
        made.go_on()


def waits_for_more(server: postgres.Server, url: str, name: str | None) -> bool:
    """Whether a transaction of this worker (None: of a command) has done what it was sent, and waits. It never counts as idle."""
    seen = "select query, state, wait_event from pg_stat_activity where application_name = '{}' and datname = current_database()"
    return any(
        (state, event) == ("active", "ClientRead")
        and any(word in query for word in ("workers", "pg_current_snapshot", "queues"))
        for query, state, event in server.execute(
            seen.format("queuectl" if name is None else application_name(name)), url
        )
    )


def sign_of(store: PostgresStore, name: str) -> LastHeartbeat:
    (worker,) = (worker for worker in store.workers() if worker.id == name)
    return LastHeartbeat.of(worker)


@pytest.mark.parametrize("half", [HEARTBEAT, EXCHANGE], ids=["a heartbeat", "an exchange"])
def test_a_worker_that_was_stopped_while_it_sent_something_is_fenced_at_once(
    store: PostgresStore,
    open_pg: Open,
    server: postgres.Server,
    url: str,
    home: Path,
    half: tuple[str, dict[str, object]],
) -> None:
    its_own = open_pg()
    hands = Hands(its_own, home)
    store.enqueue([new_job("a")])
    hands.claim_one()
    with stopped(its_own, server, url, "w1", half) as worker:
        began = time.monotonic()
        held = store.claims.fence("w1", last_heartbeat=sign_of(store, "w1"))
        assert time.monotonic() - began < LOCK_SECONDS
        assert held is not None
        assert [claim.id for claim in held] == ["a"]
        assert [lost.claim.id for lost in store.claims.rescue("w1", max_crashes=3, only={held[0].token})] == ["a"]
    assert isinstance(worker.error, errors.StoreUnreachable)
    assert not its_own.claims.heartbeat("w1", slots=4, stopping=False)  # connected again, and no longer registered
    hands.wakeup.close()


def test_only_the_worker_that_was_meant_loses_what_it_has_under_way(
    store: PostgresStore, open_pg: Open, server: postgres.Server, url: str, home: Path
) -> None:
    first, second = open_pg(), open_pg()
    bells = [Hands(first, home, name="w1").wakeup, Hands(second, home, name="w2").wakeup]
    with stopped(first, server, url, "w1", HEARTBEAT) as one, stopped(second, server, url, "w2", OF_ANOTHER) as other:
        sign = sign_of(store, "w1")
        assert (
            store.claims.fence("w1", last_heartbeat=sign._replace(beats=7)) is None
        )  # it has given another sign since
        assert (
            store.claims.fence("w1", last_heartbeat=LastHeartbeat(sign.started_at + 1, None)) is None
        )  # another one of its name
        assert waits_for_more(server, url, "w1")
        assert store.claims.fence("w1", last_heartbeat=sign) == []
        assert waits_for_more(server, url, "w2")
    assert isinstance(one.error, errors.StoreUnreachable)
    assert other.error is None
    assert [(worker.id, worker.state, worker.beats) for worker in store.workers()] == [
        ("w1", "lost", 0),
        ("w2", "running", 1),
    ]
    for bell in bells:
        bell.close()


def test_a_role_that_may_not_end_the_session_says_so(
    open_pg: Open, server: postgres.Server, url: str, home: Path
) -> None:
    role = f"other_{url.partition('?')[0].rpartition('/')[2]}"
    server.execute(f"create role {role} login")
    server.execute(f"grant usage on schema queuectl to {role}", url)
    server.execute(f"grant select, update on all tables in schema queuectl to {role}", url)
    its_own, other = open_pg(), open_pg(address=url.replace("//postgres@", f"//{role}@"))
    other.db.seconds = 0.3
    bell = Hands(its_own, home).wakeup
    try:
        with stopped(its_own, server, url, "w1", HEARTBEAT) as worker:
            with pytest.raises(errors.StoreRefused, match=r"worker w1 .* may not end it") as raised:
                other.claims.fence("w1", last_heartbeat=sign_of(other, "w1"))
            assert "pg_signal_backend" in raised.value.hint
        assert worker.error is None
        assert other.claims.fence("w1") == []
    finally:
        bell.close()
        other.close()
        server.execute(f"drop owned by {role}; drop role {role}", url)


def test_a_command_that_was_stopped_while_it_sent_something_is_ended_by_who_finds_it_in_the_way(
    store: PostgresStore, open_pg: Open, server: postgres.Server, url: str
) -> None:
    store.queues.set_rules("mail", {"concurrency": 2})
    command, other = open_pg(), open_pg()
    other.db.seconds = 0.3
    with stopped(command, server, url, None, ("take_rules", {"name": "mail"})) as held:
        with pytest.raises(errors.StoreBusy):
            other.queues.set_rules("mail", {"concurrency": 3})
        assert waits_for_more(server, url, None)  # not at once: it may only be slow

        def is_served() -> bool:
            with suppress(errors.StoreBusy):
                other.queues.set_rules("mail", {"concurrency": 3})
                return True
            return False

        wait_until(is_served, what="the one in the way to be ended")
    assert isinstance(held.error, errors.StoreUnreachable)
    assert store.queues.rules()["mail"].concurrency == 3


def test_the_server_itself_ends_what_was_stopped_where_it_can(
    store: PostgresStore, open_pg: Open, server: postgres.Server, url: str
) -> None:
    ((version,),) = server.execute("select current_setting('server_version_num')::integer")
    command = open_pg()
    command.db.seconds = 0.2
    with stopped(command, server, url, None, ("take_rules", {"name": "mail"})) as held:
        if version >= 170000:
            wait_until(lambda: not waits_for_more(server, url, None), what="the server to end it")
        else:
            assert waits_for_more(server, url, None)
    assert isinstance(held.error, errors.StoreUnreachable) == (version >= 170000)


def test_each_worker_has_another_name_for_its_transactions_that_the_server_keeps() -> None:
    names = ["w1", "x" * 54, "x" * 55, "x" * 63 + "1", "x" * 63 + "2", "größe", "grüße"]
    given = [application_name(name) for name in names]
    assert given[0] == "queuectl w1"
    assert len(set(given)) == len(names)
    assert all(name.isascii() and len(name) <= MAX_NAME_BYTES for name in given)
