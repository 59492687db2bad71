"""How transactions exclude each other: by rows of queuectl.locks, and by that table for the ageing rule."""

from __future__ import annotations

import threading

import pytest

from queuectl.store.postgres.connection import SQL
from queuectl.store.transactions import Query
from tests import postgres
from tests.factories import new_job
from tests.store.postgres.conftest import Open
from tests.wait import wait_until

WAITING = "select count(*) from pg_locks where not granted"


def test_no_statement_takes_an_advisory_lock() -> None:
    assert [name for name in SQL.names() if "advisory" in SQL[name]] == []


@pytest.mark.parametrize("times", [1, 10], ids=["planned", "prepared"])
def test_the_ageing_rule_does_not_change_while_a_transaction_ranks_by_it(
    open_pg: Open, url: str, server: postgres.Server, times: int
) -> None:
    """Also once the server keeps the statement: what it does not read it locks all the same."""
    ranking, changing = open_pg(), open_pg()
    for _ in range(times):
        ranking.db.write([Query(SQL["hold_ageing"])])
    changed = threading.Thread(target=lambda: changing.set_config({"ageing": "1m"}))
    with ranking.db.transaction(Query(SQL["hold_ageing"])):
        changed.start()
        wait_until(lambda: server.execute(WAITING, url) == [(1,)], what="the change to wait")
        assert "ageing" not in ranking.config()
    changed.join(20)
    assert ranking.config()["ageing"] == "1m"


def test_many_unique_keys_are_taken_at_once(open_pg: Open) -> None:
    """More than the server has room for in its table of locks."""
    store = open_pg()
    jobs = [new_job(f"j{number}", unique_key=f"k{number}") for number in range(20_000)]
    assert len(store.enqueue(jobs)) == len(jobs)
