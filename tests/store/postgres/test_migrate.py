"""The schema: created by the first client, by one of any number at once, and never over other tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl import errors
from queuectl.clock import SystemClock
from queuectl.store.address import PostgresUrl
from queuectl.store.open import open_reads, open_store, store_exists
from queuectl.store.postgres import migrate
from queuectl.store.postgres.store import PostgresStore
from queuectl.store.sqlite.store import SqliteStore
from queuectl.store.statements import LATEST, Migration, migrations_of
from tests import postgres
from tests.factories import new_job
from tests.store.crowd import at_once
from tests.store.postgres.conftest import Open


def test_the_latest_migration_is_the_one_written_down() -> None:
    assert [migration.version for migration in migrations_of(migrate.__file__)] == list(range(1, LATEST + 1))


def test_all_who_start_at_once_on_an_empty_database_succeed(home: Path, empty: str) -> None:
    ids: list[str] = []

    def start() -> None:
        store = open_store(str(home), empty)
        ids.extend(store.enqueue([new_job()]))
        store.close()

    at_once(*[start] * 6)
    store = open_reads(str(home), empty)
    assert sorted(job.id for job in store.jobs()) == sorted(ids)
    store.close()


def test_looking_into_an_empty_database_makes_nothing(home: Path, empty: str, server: postgres.Server) -> None:
    assert not store_exists(str(home), empty)
    reads = open_reads(str(home), empty)
    assert isinstance(reads, SqliteStore)
    assert (list(reads.jobs()), reads.tally(), reads.workers()) == ([], {}, [])
    reads.close()
    assert server.execute("select 1 from pg_namespace where nspname = 'queuectl'", empty) == []
    assert not home.exists()


def test_a_store_that_does_not_say_its_version_is_damaged(home: Path, url: str, server: postgres.Server) -> None:
    server.execute("delete from queuectl.meta", url)
    for opener in (open_store, open_reads):
        with pytest.raises(errors.StoreDamaged, match="meta"):
            opener(str(home), url)


def test_a_schema_of_a_newer_version_is_refused(home: Path, url: str, server: postgres.Server) -> None:
    server.execute("update queuectl.meta set version = 99", url)
    for opener in (open_store, open_reads):
        with pytest.raises(errors.StoreTooNew, match="99"):
            opener(str(home), url)


def test_other_tables_are_not_changed(home: Path, empty: str, server: postgres.Server) -> None:
    server.execute("create schema queuectl; create table queuectl.jobs (mine text)", empty)
    with pytest.raises(errors.StoreForeign):
        open_store(str(home), empty)
    assert server.execute(
        "select table_name from information_schema.tables where table_schema = 'queuectl'", empty
    ) == [("jobs",)]


def test_an_empty_schema_that_exists_is_used(home: Path, empty: str, server: postgres.Server) -> None:
    """The role may make tables in it, and no schema."""
    role = f"plain_{empty.partition('?')[0].rpartition('/')[2]}"
    server.execute(f"create role {role} login; create schema queuectl authorization {role}", empty)
    try:
        store = open_store(str(home), empty.replace("//postgres@", f"//{role}@"))
        store.enqueue([new_job("a")])
        assert store.get("a").id == "a"
        store.close()
    finally:
        server.execute(f"drop owned by {role} cascade; drop role {role}", empty)


def test_a_dropped_store_is_gone_and_not_created_again(store: PostgresStore, url: str, server: postgres.Server) -> None:
    store.changed()
    server.execute("drop schema queuectl cascade", url)
    with pytest.raises(errors.StoreGone):
        store.changed()
    store.db.close()
    with pytest.raises(errors.StoreGone):
        store.tally()
    assert server.execute("select 1 from pg_namespace where nspname = 'queuectl'", url) == []


def test_another_store_in_its_place_is_not_taken_for_it(
    store: PostgresStore, url: str, home: Path, server: postgres.Server
) -> None:
    store.changed()
    server.execute("drop schema queuectl cascade", url)
    open_store(str(home), url).close()
    with pytest.raises(errors.StoreGone):
        store.changed()


def test_the_database_must_speak_utf8(home: Path, server: postgres.Server) -> None:
    name = f"{server.create()}_latin"
    server.execute(f"create database {name} template template0 encoding 'LATIN1' locale 'C'")
    try:
        with pytest.raises(errors.StoreRefused, match="UTF8"):
            open_store(str(home), server.database(name))
    finally:
        server.drop(name)
        server.drop(name.removesuffix("_latin"))


def test_the_clock_of_this_machine_is_not_the_stores(open_pg: Open) -> None:
    """What commands pass along is the system's clock; the database's rules all the same."""
    store = open_pg(SystemClock())
    assert not isinstance(store.tx.clock, SystemClock)


def test_a_migration_is_applied_once_and_keeps_the_jobs(
    home: Path, empty: str, server: postgres.Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_store(str(home), empty)
    store.enqueue([new_job("a")])
    store.close()
    second = tmp_path / "0002_colors.sql"
    second.write_text("create table queuectl.colors (name text);\ninsert into queuectl.colors values ('red');\n")
    files = [*migrations_of(migrate.__file__), Migration(LATEST + 1, str(second))]
    monkeypatch.setattr(migrate, "migrations_of", lambda _: files)
    monkeypatch.setattr(migrate, "LATEST", LATEST + 1)
    for _ in range(2):
        store = open_store(str(home), empty)
        assert store.get("a").id == "a"
        store.close()
    assert server.execute("select name from queuectl.colors", empty) == [("red",)]
    assert server.execute("select version from queuectl.meta", empty) == [(LATEST + 1,)]


def test_connecting_again_does_not_migrate_again(url: str) -> None:
    first, second = migrate.connect(PostgresUrl(url)), migrate.connect(PostgresUrl(url))
    assert first is not None
    assert second is not None
    first.close()
    second.close()
