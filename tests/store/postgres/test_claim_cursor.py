"""The claim cursor: it spares a claim the dead rows of earlier claims, and never hides a job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from queuectl.jobs.outcome import Released
from queuectl.jobs.states import State
from queuectl.store.postgres.claim_cursor import NEEDED_SECONDS, SLOW_CLAIM_MS, ClaimCursor
from queuectl.store.postgres.claims import ClaimOrder
from queuectl.store.postgres.store import PostgresStore
from queuectl.store.types import ClaimRequest
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.hands import Hands
from tests.store.postgres.conftest import Open


@pytest.fixture
def store(open_pg: Open, clock: FakeClock) -> PostgresStore:
    """As after a slow claim: cursors are in use."""
    made = open_pg(clock)
    made.claims.cursor.note_claim(SLOW_CLAIM_MS + 1)
    return made


@pytest.fixture(params=[None, ("q",)], ids=["any-queue", "named-queue"])
def hands(request: pytest.FixtureRequest, store: PostgresStore, home: Path) -> Iterator[Hands]:
    made = Hands(store, home, queues=request.param)
    yield made
    made.wakeup.close()


def ids(hands: Hands, limit: int) -> list[str]:
    return [claim.id for claim in hands.claim(limit)]


def test_who_comes_later_with_a_higher_priority_goes_first(store: PostgresStore, open_pg: Open, hands: Hands) -> None:
    store.enqueue([new_job(f"low{number}", queue="q") for number in range(6)])
    assert ids(hands, 2) == ["low0", "low1"]
    open_pg(store.tx.clock).enqueue([new_job("high", queue="q", priority=1)])
    assert ids(hands, 2) == ["high", "low2"]
    assert ids(hands, 2) == ["low3", "low4"]


def test_a_requeued_job_is_found_again(store: PostgresStore, hands: Hands) -> None:
    store.enqueue([new_job(f"j{number}", queue="q") for number in range(6)])
    first, _ = hands.claim(2)
    hands.end(first, Released(None))
    assert ids(hands, 2) == ["j0", "j2"]
    store.cancel(["j4"])
    store.retry(["j4"], states=frozenset(State))
    assert ids(hands, 2) == ["j3", "j4"]


def test_who_is_committed_late_is_found_though_others_were_before(store: PostgresStore, url: str, hands: Hands) -> None:
    """Its number is the lowest of all, and it was not visible when the cursor was set."""
    store.enqueue([new_job(f"j{number}", queue="q", priority=-1) for number in range(6)])
    with psycopg.connect(url) as slow:
        slow.execute(
            "insert into queuectl.jobs (id, command, queue, ready, priority, rank, eligible_at, run_at, max_retries,"
            " first_is_free, backoff_base, cwd, created_at, updated_at)"
            " select 'slow', command, queue, true, 0, 0, eligible_at, run_at, max_retries, first_is_free, backoff_base, cwd,"
            " created_at, updated_at from queuectl.jobs where id = 'j5'"
        )
        assert ids(hands, 2) == ["j0", "j1"]
        assert ids(hands, 1) == ["j2"]
        slow.commit()
        assert ids(hands, 2) == ["slow", "j3"]


def test_who_comes_to_a_queue_that_was_not_looked_at_is_found(store: PostgresStore, home: Path) -> None:
    hands = Hands(store, home, queues=("a", "b"))
    store.enqueue([new_job(f"{queue}{number}", queue=queue) for queue in "ab" for number in range(4)])
    assert ids(hands, 6) == ["a0", "a1", "a2", "a3", "b0", "b1"]
    store.enqueue([new_job("high", queue="b", priority=1), new_job("a4", queue="a"), new_job("a5", queue="a")])
    assert ids(hands, 2) == ["a4", "a5"]  # content with the first queue
    assert ids(hands, 2) == ["high", "b2"]
    hands.wakeup.close()


def test_a_floor_is_not_laid_by_who_may_not_claim(store: PostgresStore, home: Path) -> None:
    hands = Hands(store, home)
    store.enqueue([new_job(f"j{number}") for number in range(4)])
    assert ids(hands, 2) == ["j0", "j1"]
    store.claims.fence("w1")
    store.enqueue([new_job("high", priority=1)])
    assert ids(hands, 2) == []
    again = Hands(store, home)
    assert ids(again, 2) == ["high", "j2"]
    for one in (hands, again):
        one.wakeup.close()


def test_a_crowd_of_newcomers_is_not_looked_through_one_by_one(store: PostgresStore, hands: Hands) -> None:
    store.enqueue([new_job(f"j{number}", queue="q") for number in range(4)])
    assert ids(hands, 2) == ["j0", "j1"]
    store.enqueue([new_job(queue="q") for _ in range(2100)] + [new_job("high", queue="q", priority=1)])
    assert ids(hands, 2) == ["high", "j2"]


def test_while_a_transaction_is_held_open_a_claim_does_not_step_over_all_that_was_claimed(
    store: PostgresStore, url: str, hands: Hands
) -> None:
    with psycopg.connect(url) as blocker:
        blocker.execute("set transaction isolation level repeatable read")
        blocker.execute("select pg_current_xact_id()")
        store.enqueue([new_job(queue="q") for _ in range(3000)])
        for _ in range(28):
            for claim in hands.claim(100):
                assert claim.queue == "q"
        touched = _pages_of(store, hands)
        assert touched < 30, touched


def test_while_a_transaction_is_held_open_a_look_that_finds_nothing_does_not_step_over_all_that_was_claimed(
    store: PostgresStore, url: str, hands: Hands
) -> None:
    with psycopg.connect(url) as blocker:
        blocker.execute("set transaction isolation level repeatable read")
        blocker.execute("select pg_current_xact_id()")
        store.enqueue([new_job(queue="q") for _ in range(3000)])
        while hands.claim(100):
            pass
        store.claims.cursor._taken.clear()  # as after a second
        store.claims.cursor._heads.clear()  # if a second passed meanwhile, a claim has looked
        assert _pages_of(store, hands) > 50
        assert not hands.claim(1)
        touched = _pages_of(store, hands)
        assert touched < 30, touched


def test_a_job_that_was_skipped_because_it_was_locked_is_found(store: PostgresStore, url: str, hands: Hands) -> None:
    store.enqueue([new_job(f"j{number}", queue="q") for number in range(4)])
    with psycopg.connect(url) as blocker:
        blocker.execute("select 1 from queuectl.jobs where id in ('j1', 'j3') for update")
        assert ids(hands, 4) == ["j0", "j2"]
        store.claims.cursor._taken.clear()  # as after a second
        assert ids(hands, 4) == []
    assert ids(hands, 4) == ["j1", "j3"]


def test_another_session_may_be_with_another_server_and_knows_no_floors(
    store: PostgresStore, url: str, hands: Hands
) -> None:
    store.enqueue([new_job(f"j{number}", queue="q") for number in range(2)])
    assert ids(hands, 4) == ["j0", "j1"]
    assert ids(hands, 4) == []
    with psycopg.connect(url) as blocker:
        # As from a server that has lost the last transactions, and gives their numbers again.
        blocker.execute("update queuectl.jobs set state = 'pending', token = null, ready = true, ready_since = '3'")
    assert ids(hands, 4) == []
    store.db.close()
    hands.claim(0)
    assert ids(hands, 4) == ["j0", "j1"]


def test_cursors_are_used_once_a_claim_was_slow(open_pg: Open, home: Path, clock: FakeClock) -> None:
    store = open_pg(clock)
    hands = Hands(store, home)
    store.enqueue([new_job(f"j{number}") for number in range(4)])
    assert ids(hands, 1) == ["j0"]
    assert not store.claims.cursor._taken
    store.claims.cursor.note_claim(SLOW_CLAIM_MS + 1)
    assert ids(hands, 1) == ["j1"]
    assert ids(hands, 1) == ["j2"]
    assert store.claims.cursor._taken
    hands.wakeup.close()


def test_cursors_are_given_up_after_a_while_so_that_a_claim_finds_out_whether_they_are_needed() -> None:
    cursor = ClaimCursor()
    cursor.note_claim(SLOW_CLAIM_MS - 1)
    assert not cursor.is_needed
    cursor.note_claim(SLOW_CLAIM_MS + 1)
    assert cursor.is_needed
    cursor._needed_until -= NEEDED_SECONDS
    assert not cursor.is_needed


def _pages_of(store: PostgresStore, hands: Hands) -> int:
    """How many pages the next claim touches to find its jobs."""
    request = ClaimRequest(5, hands.queues, "here", "/logs")
    order = ClaimOrder("w1", request, ["x"] * 5, store.tx.clock.now_ms())
    text, values = order.queries(store.claims.cursor, session=store.db.session_number)["claim"]
    with store.db.transaction():
        plan = "\n".join(
            row[0] for row in store.db.all(f"explain (analyze, buffers, costs off, timing off) {text}", values)
        )
    scans = re.findall(r"Index Scan using jobs_(?:by_rank|ready) .*(?:\n.*?){0,6}?Buffers: shared hit=(\d+)", plan)
    assert scans, plan
    return sum(map(int, scans))
