"""Databases that are used by one test after the other: no test sees what another has done."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from queuectl.store.open import open_store
from queuectl.store.types import Filter
from tests.factories import new_job
from tests.postgres import Server


def test_a_store_that_is_given_back_is_as_new(server: Server, home: Path) -> None:
    name = server.take()
    for _ in range(2):
        with closing(open_store(str(home), server.database(name))) as store:
            assert store.count(Filter()) == 0
            store.enqueue([new_job("a"), new_job("b")])
            store.set_config({"ageing": "off"})
            assert {job.seq for job in store.jobs(Filter())} == {1, 2}
            assert store.config() == {"ageing": "off"}
        server.give_back(name)
        assert server.take() == name
    server.drop(name)


@pytest.mark.parametrize(
    "statement",
    [
        "alter table queuectl.jobs add column mine text",
        "create index mine on queuectl.jobs (command)",
        "grant select on queuectl.jobs to public",
        "update queuectl.meta set version = 99",
        "analyze queuectl.jobs",
        "drop schema queuectl cascade",
    ],
)
def test_a_store_that_was_changed_is_not_given_out_again(server: Server, statement: str) -> None:
    name = server.take()
    server.execute(statement, server.database(name))
    server.give_back(name)
    assert not server.execute(f"select 1 from pg_database where datname = '{name}'")
