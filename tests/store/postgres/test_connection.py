"""Connections end. The store comes back by itself, and knows what it does not know."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.jobs.outcome import Ending
from queuectl.jobs.states import State
from queuectl.store.postgres.store import PostgresStore
from queuectl.store.types import End
from tests import postgres
from tests.clock import FakeClock
from tests.factories import new_job, settlement
from tests.store.hands import PID, Hands
from tests.store.postgres.conftest import Open
from tests.store.postgres.proxy import Proxy


def end_sessions(server: postgres.Server, url: str) -> None:
    server.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()",
        url,
    )


def test_a_session_that_ended_between_two_calls_is_not_noticed(
    store: PostgresStore, server: postgres.Server, url: str, home: Path
) -> None:
    hands = Hands(store, home)
    for job_id in ("a", "b"):
        end_sessions(server, url)
        store.enqueue([new_job(job_id)])
        end_sessions(server, url)
        assert store.get(job_id).id == job_id
        end_sessions(server, url)
        assert [claim.id for claim in hands.claim(1)] == [job_id]
    hands.wakeup.close()


def round_trips(store: PostgresStore, do: Callable[[], object], folder: Path) -> int:
    """The number of round trips."""
    wire = store.db._session
    assert wire is not None
    with (folder / "trace").open("w+") as trace:
        wire.pgconn.trace(trace.fileno())
        do()
        wire.pgconn.untrace()
        trace.seek(0)
        return sum("\tSync" in line for line in trace)


def test_an_enqueue_takes_two_round_trips(store: PostgresStore, tmp_path: Path) -> None:
    jobs = [new_job(f"j{number}", tags=("x",)) for number in range(5)]
    assert round_trips(store, lambda: store.enqueue(jobs), tmp_path) == 2


def test_an_exchange_takes_one_round_trip_and_five_where_a_queue_is_limited(
    store: PostgresStore, home: Path, tmp_path: Path
) -> None:
    hands = Hands(store, home)
    store.enqueue([new_job() for _ in range(4)])
    assert round_trips(store, lambda: hands.claim(2), tmp_path) == 1
    store.queues.set_rules("default", {"concurrency": 9})
    hands.claim(0)
    assert round_trips(store, lambda: hands.claim(2), tmp_path) == 5
    hands.wakeup.close()


def test_statements_that_a_pooler_forgot_are_given_up(
    store: PostgresStore, server: postgres.Server, url: str, home: Path
) -> None:
    """Behind a pooler in transaction mode a prepared statement may be in another session, or be that of another client."""
    hands = Hands(store, home)
    for number in range(5):
        store.enqueue([new_job(f"a{number}")])
        hands.run()
    wire = store.db._session
    assert wire is not None
    wire.execute("deallocate all")
    store.enqueue([new_job("b")])
    assert hands.run().id == "b"
    assert store.count() == 6
    hands.wakeup.close()


def test_an_error_leaves_no_transaction_open(store: PostgresStore, server: postgres.Server, url: str) -> None:
    with pytest.raises(errors.JobNotFound):
        store.history("missing")
    with pytest.raises(errors.Unavailable):
        store.enqueue([new_job(priority=9_999_999)])
    idle = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'"
    assert server.execute(idle, url) == [(0,)]
    assert store.enqueue([new_job("a")]) == ["a"]


def lose_the_answer(proxy: Proxy, call: object) -> None:
    """Make a call whose answer never comes though the server has done it."""
    assert callable(call)
    proxy.swallow()
    threading.Thread(target=lambda: (proxy.answered.wait(20), proxy.cut()), daemon=True).start()
    with pytest.raises(errors.StoreUnreachable):
        call()


def test_an_exchange_whose_answer_was_lost_can_be_told_again(
    open_pg: Open, proxy: Proxy, store: PostgresStore, home: Path, clock: FakeClock
) -> None:
    worker = open_pg(clock, address=proxy.url)
    hands = Hands(worker, home)
    hands.wakeup.close()  # what it hears would be swallowed first
    store.enqueue([new_job("a"), new_job("b"), new_job("c")])
    claim = hands.claim_one()
    ends = [End(claim, settlement(claim), PID, 0, 0, 0, 0)]
    lose_the_answer(proxy, lambda: worker.claims.exchange("w1", ends=ends, claim=hands.request(1)))
    assert (store.get("a").state, store.get("b").state) == (State.COMPLETED, State.PROCESSING)
    again = worker.claims.exchange("w1", ends=ends, claim=hands.request(1))
    assert [(end.claim.id, written.ending) for end, written in again.settled] == [("a", Ending.COMPLETED)]
    assert again.lost == []
    assert [given.id for given in again.claims] == ["b"]  # claimed before, given now
    assert [run.outcome for run in store.history("a")] == [Ending.COMPLETED]
    assert worker.claims.exchange("w1", ends=ends).lost == ends  # the third time, its result is no longer known


def test_a_claim_whose_answer_was_lost_waits_for_a_slot(
    open_pg: Open, proxy: Proxy, store: PostgresStore, home: Path, clock: FakeClock
) -> None:
    worker = open_pg(clock, address=proxy.url)
    hands = Hands(worker, home)
    hands.wakeup.close()  # what it hears would be swallowed first
    store.enqueue([new_job("a"), new_job("b"), new_job("c")])
    lose_the_answer(proxy, lambda: hands.claim(2))
    assert hands.exchange().claims == []
    assert [claim.id for claim in hands.claim(1)] == ["a"]
    assert [claim.id for claim in hands.claim(5)] == ["b", "c"]


def test_an_end_that_was_lost_to_another_worker_stays_lost(
    open_pg: Open, proxy: Proxy, store: PostgresStore, home: Path, clock: FakeClock
) -> None:
    """The connection is cut before the server hears of the end, and the job passes to another meanwhile."""
    worker = open_pg(clock, address=proxy.url)
    hands = Hands(worker, home)
    hands.wakeup.close()  # what it hears would be swallowed first
    store.enqueue([new_job("a")])
    claim = hands.claim_one()
    ends = [End(claim, settlement(claim), PID, 0, 0, 0, 0)]
    proxy.cut()
    store.claims.rescue("w1", max_crashes=3)
    worker.claims._unknown.add(ends=[claim.token], offers=[])
    rescued = worker.claims.exchange("w1", ends=ends)
    # What the books have is the end that the rescuer wrote with this token, and not this one.
    assert (rescued.settled, rescued.lost) == ([], ends)


@pytest.mark.parametrize("jobs", [1, 3])
def test_jobs_whose_answer_was_lost_are_in_doubt_and_the_hint_says_how_to_find_them(
    open_pg: Open, proxy: Proxy, store: PostgresStore, jobs: int
) -> None:
    ours = open_pg(address=proxy.url)
    proxy.swallow()
    threading.Thread(target=lambda: (proxy.answered.wait(20), proxy.cut()), daemon=True).start()
    with pytest.raises(errors.StoreUnreachable) as raised:
        ours.enqueue([new_job() for _ in range(jobs)])
    assert raised.value.in_doubt
    assert "try again" not in raised.value.hint
    named = re.search(r"queuectl show (\w+)", raised.value.hint)
    assert named is not None
    # The line was cut at the first answer: whatever there is, it is all of it or nothing, and the name tells which.
    assert store.count() == (jobs if any(job.id == named[1] for job in store.jobs()) else 0)


@pytest.mark.timeout(60)
def test_a_line_that_swallows_everything_is_given_up_within_ten_seconds(open_pg: Open, proxy: Proxy) -> None:
    store = open_pg(address=proxy.url)
    proxy.swallow()
    before = store.tx.clock.monotonic()
    with pytest.raises(errors.StoreUnreachable, match="no answer"):
        store.enqueue([new_job()])
    assert store.tx.clock.monotonic() - before < 10
    proxy.cut()
    assert store.count() in {0, 1}


def test_a_list_goes_on_while_the_store_is_used(store: PostgresStore) -> None:
    store.enqueue([new_job() for _ in range(1200)])
    listing = store.jobs()
    next(listing)
    store.reset()
    assert sum(1 for _ in listing) == 1199
    assert store.count() == 0
