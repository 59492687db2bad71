"""Chains of jobs of which each waits for the one before: what becomes of the first becomes of all, in few round trips."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from queuectl.jobs.dependencies import Dependency, Need
from queuectl.jobs.states import State
from queuectl.store.postgres.store import PostgresStore
from tests.factories import new_job
from tests.store.postgres.conftest import Open
from tests.store.postgres.proxy import Proxy
from tests.wait import wait_until

SHORT, LONG = 20, 600


def add_chain(store: PostgresStore, name: str, length: int) -> str:
    """Returns the ID of its first job."""
    jobs = [new_job(f"{name}0")]
    jobs += [new_job(f"{name}{at}", depends_on=(Dependency(f"{name}{at - 1}"),)) for at in range(1, length)]
    store.enqueue(jobs)
    return f"{name}0"


def states(store: PostgresStore) -> dict[State, int]:
    counts: dict[State, int] = {}
    for job in store.jobs():
        counts[job.state] = counts.get(job.state, 0) + 1
    return counts


def round_trips(proxy: Proxy, act: Callable[[], object]) -> int:
    before = proxy.round_trips
    act()
    return proxy.round_trips - before


def test_the_round_trips_of_a_cancel_do_not_grow_with_the_chain(open_pg: Open, proxy: Proxy) -> None:
    store = open_pg(address=proxy.url)
    short, long = add_chain(store, "s", SHORT), add_chain(store, "l", LONG)
    few = round_trips(proxy, lambda: store.cancel([short]))
    many = round_trips(proxy, lambda: store.cancel([long]))
    assert states(store) == {State.CANCELLED: SHORT + LONG}
    assert many <= few + 10


def test_the_round_trips_of_a_retry_do_not_grow_with_the_chain(open_pg: Open, proxy: Proxy) -> None:
    store = open_pg(address=proxy.url)
    short, long = add_chain(store, "s", SHORT), add_chain(store, "l", LONG)
    store.cancel([short, long])
    cancelled = frozenset({State.CANCELLED})
    few = round_trips(proxy, lambda: store.retry([short], states=cancelled))
    many = round_trips(proxy, lambda: store.retry([long], states=cancelled))
    assert states(store) == {State.PENDING: 2, State.BLOCKED: SHORT + LONG - 2}
    assert many <= few + 10


@pytest.mark.parametrize("length", [2, 5, LONG])
def test_what_needs_only_an_end_behind_a_cancelled_chain_runs(open_pg: Open, length: int) -> None:
    store = open_pg()
    first = add_chain(store, "c", length)
    last = Dependency(f"c{length - 1}", when=Need.ENDED)
    store.enqueue([new_job("after", depends_on=(last,)), new_job("behind", depends_on=(Dependency("after"),))])
    store.cancel([first])
    assert store.get("after").state is State.PENDING
    assert store.get("behind").state is State.BLOCKED


def test_each_job_of_a_chain_says_which_one_it_waited_for(open_pg: Open) -> None:
    store = open_pg()
    store.cancel([add_chain(store, "c", 4)])
    errors = [store.get(f"c{at}").error for at in range(1, 4)]
    assert errors == [f"cancelled: c{at}, for which it waited, is cancelled" for at in range(3)]


def test_a_part_of_a_chain_that_another_transaction_holds_follows_later(open_pg: Open) -> None:
    store, other, looking = open_pg(), open_pg(), open_pg()
    first = add_chain(store, "c", 30)
    cancelling = threading.Thread(target=lambda: store.cancel([first]))
    with other.db.transaction():
        other.db.all("select seq from queuectl.jobs where id = 'c10' for update")
        cancelling.start()
        wait_until(lambda: states(looking) == {State.CANCELLED: 10, State.BLOCKED: 20}, what="those before it")
    cancelling.join(20)
    assert states(looking) == {State.CANCELLED: 30}
