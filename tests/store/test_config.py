"""config and set_config: stored settings, and the one that re-ranks what waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.jobs.priority import Ageing, ByEnqueues, ByTime, Standing, Strict, format_ageing, rank
from queuectl.jobs.states import State
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import BACKENDS
from tests.store.hands import BAD, Hands
from tests.swift import swift_folder

CENTURY_MS = 100 * 365 * 86_400_000


def test_a_new_store_has_no_settings(store: Store) -> None:
    assert store.config() == {}


def test_settings_come_back_as_they_were_written(store: Store, other: Store) -> None:
    store.set_config({"max-retries": "5", "lease": " 1M "})
    store.set_config({"max-retries": "7"})
    assert other.config() == {"max-retries": "7", "lease": " 1M "}


def test_none_removes_a_setting_and_only_that_one(store: Store) -> None:
    store.set_config({"a": "1", "b": "2"})
    store.set_config({"a": None, "c": "3", "never-there": None})
    assert store.config() == {"b": "2", "c": "3"}


def test_no_change_at_all_is_no_error(store: Store) -> None:
    store.set_config({})
    assert store.config() == {}


def test_one_bad_setting_refuses_them_all(store: Store) -> None:
    store.set_config({"lease": "1m"})
    with pytest.raises(InvalidInput):
        store.set_config({"lease": "2m", "ageing": "sometimes"})
    assert store.config() == {"lease": "1m"}


# ── ageing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "before, now, order",
    [
        (None, "enqueues", ["old", "one", "two", "new"]),
        ("enqueues", "off", ["two", "one", "old", "new"]),
        ("enqueues", None, ["two", "one", "old", "new"]),
        ("enqueues", "1s", ["old", "two", "one", "new"]),
        ("1s", "off", ["two", "one", "old", "new"]),
        ("1s", "1m", ["two", "one", "old", "new"]),
        ("1m", "enqueues", ["old", "one", "two", "new"]),
        ("off", "ENQUEUES", ["old", "one", "two", "new"]),
    ],
)
def test_a_change_of_ageing_updates_the_rank_of_waiting_jobs(
    store: Store, worker: Hands, clock: FakeClock, before: str | None, now: str | None, order: list[str]
) -> None:
    store.set_config({"ageing": before})
    store.enqueue([new_job("old")])
    clock.advance(10)
    store.enqueue([new_job("one", priority=1), new_job("two", priority=2), new_job("new")])
    store.set_config({"ageing": now})
    assert [claim.id for claim in worker.claim(9)] == order


def test_a_change_of_ageing_counts_for_what_runs_and_comes_back(store: Store, worker: Hands, clock: FakeClock) -> None:
    store.enqueue([new_job("a", backoff_base=1.0)])
    claim = worker.claim_one()
    store.enqueue([new_job("b", priority=1)])
    store.set_config({"ageing": "1s"})
    clock.advance(5)
    worker.end(claim, BAD)
    clock.advance(1)
    store.enqueue([new_job("c", priority=3)])
    assert [job.id for job in worker.claim(9)] == ["b", "a", "c"]


def test_another_setting_leaves_the_ranks_alone(store: Store, worker: Hands) -> None:
    store.set_config({"ageing": "enqueues"})
    store.enqueue([new_job("a"), new_job("b", priority=1)])
    store.set_config({"lease": "1m", "ageing": "enqueues"})
    assert [claim.id for claim in worker.claim(2)] == ["a", "b"]


@pytest.mark.parametrize("backend_name", BACKENDS)
@settings(max_examples=25)
@given(
    jobs=st.lists(
        st.tuples(
            st.sampled_from([-1_000_000, -1, 0, 1, 1_000_000]) | st.integers(-1_000_000, 1_000_000),
            st.sampled_from([0, 1, CENTURY_MS]) | st.integers(0, CENTURY_MS),
        ),
        min_size=1,
        max_size=8,
    ),
    ran=st.integers(0, 3),
    ageing=st.sampled_from([Strict(), ByEnqueues(), ByTime(1), ByTime(CENTURY_MS)]) | st.integers(1).map(ByTime),
)
def test_the_rank_in_the_store_is_the_rank_of_the_rules(
    backend_name: str, jobs: list[tuple[int, int]], ran: int, ageing: Ageing
) -> None:
    ageing = ByTime(min(ageing.step_ms, CENTURY_MS)) if isinstance(ageing, ByTime) else ageing
    with swift_folder() as folder:
        backend, clock = BACKENDS[backend_name](Path(folder)), FakeClock()
        store = backend.open(clock)
        worker = Hands(store, backend.home)
        store.enqueue([new_job(priority=priority, delay_ms=delay) for priority, delay in jobs])
        for claim in worker.claim(ran):  # so that some have missed enqueues
            store.enqueue([new_job()])
            worker.end(claim, BAD)
        store.set_config({"ageing": format_ageing(ageing)})
        for row in backend.rows():
            standing = Standing(row["priority"], row["seq"], row["eligible_at"], row["missed"])
            assert row["rank"] == rank(ageing, standing)
        assert store.count() == len(backend.rows())
        worker.wakeup.close()
        store.close()
        backend.close()


def test_what_has_ended_is_ranked_when_it_waits_again(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", max_retries=1), new_job("b", priority=1, queue="q")])
    store.set_config({"ageing": "enqueues"})
    assert worker.run(BAD).id == "a"
    store.set_config({"ageing": "off"})
    store.retry(["a"], states=frozenset({State.DEAD}))
    assert [claim.id for claim in worker.claim(2)] == ["b", "a"]
