"""Opening a store: durable, where it was asked for, and never by accident."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.jobs.states import State
from queuectl.store.open import open_enqueuer, open_reads, open_store, store_exists, store_path
from queuectl.store.sqlite.store import SqliteStore
from queuectl.store.types import NewWorker
from tests.clock import FakeClock
from tests.factories import new_job


def test_a_commit_is_on_the_disk_when_it_returns(store: SqliteStore) -> None:
    assert store.db.value("pragma synchronous") == 2
    assert store.db.value("pragma journal_mode") == "wal"


def test_the_connection_of_a_long_list_is_as_durable_and_guarded_as_any(store: SqliteStore) -> None:
    beside = store.db.duplicate()
    assert [beside.value(f"pragma {name}") for name in ("synchronous", "journal_mode", "foreign_keys")] == [2, "wal", 1]
    beside.close()


def test_history_goes_with_its_job(store: SqliteStore) -> None:
    assert store.db.value("pragma foreign_keys") == 1


def test_an_inbox_is_the_same_store(home: Path, clock: FakeClock, store: SqliteStore) -> None:
    store.set_config({"lease": "1m"})
    inbox = open_enqueuer(str(home), None, clock)
    inbox.enqueue([new_job("a", tags=("t",), env={"K": "V"})])
    assert inbox.config() == {"lease": "1m"}
    inbox.close()
    job = store.get("a")
    assert (job.state, job.tags, job.env) == (State.PENDING, ("t",), {"K": "V"})


def test_an_inbox_makes_the_store_if_there_is_none(home: Path, clock: FakeClock) -> None:
    open_enqueuer(str(home), None, clock).close()
    assert store_exists(str(home))


# ── looking only ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_looking_where_there_is_nothing_finds_nothing_and_makes_nothing(home: Path, clock: FakeClock) -> None:
    assert not store_exists(str(home))
    reads = open_reads(str(home), None, clock)
    assert (list(reads.jobs()), reads.tally(), reads.workers(), reads.config()) == ([], {}, [], {})
    assert reads.is_drained(None)
    reads.changed()
    with pytest.raises(errors.JobNotFound):
        reads.resolve("last")
    reads.close()
    assert not home.exists()


def test_the_empty_stand_in_is_a_whole_store(home: Path, clock: FakeClock) -> None:
    stand_in = open_reads(str(home), None, clock)
    stand_in.enqueue([new_job("a")])
    bell = stand_in.claims.register(NewWorker("w1", "here", 1, str(home), 1, None))
    stand_in.enqueue([new_job("b")])
    assert [job.id for job in stand_in.jobs()] == ["b", "a"]
    assert bell.fileno() >= 0
    assert not bell.drain()
    bell.close()
    stand_in.close()
    assert not home.exists()


def test_looking_where_there_is_a_store_sees_it(home: Path, clock: FakeClock, store: SqliteStore) -> None:
    store.enqueue([new_job("a")])
    reads = open_reads(str(home), None, clock)
    assert reads.get("a").id == "a"
    reads.close()


@pytest.mark.parametrize("opener", [open_store, open_reads, open_enqueuer])
def test_a_home_that_is_a_file_is_refused(home: Path, clock: FakeClock, opener: Callable[..., object]) -> None:
    home.write_text("precious")
    with pytest.raises(errors.HomeUnusable):
        opener(str(home), None, clock)
    assert home.read_text() == "precious"


# ── where ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("db", ["{}/other.db", "sqlite:///{}/other.db"])
def test_a_path_and_a_url_name_the_same_store(home: Path, tmp_path: Path, clock: FakeClock, db: str) -> None:
    store = open_store(str(home), db.format(tmp_path), clock)
    store.enqueue([new_job("a")])
    store.close()
    assert (tmp_path / "other.db").exists()
    assert not (home / "queue.db").exists()
    assert store_path(str(home), db.format(tmp_path)) == str(tmp_path / "other.db")


def test_a_relative_path_is_made_absolute(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert store_path(str(home), "here.db") == store_path(str(home), "sqlite:///here.db") == str(tmp_path / "here.db")


def test_a_kind_of_store_that_we_do_not_know_is_refused(home: Path, clock: FakeClock) -> None:
    with pytest.raises(errors.StoreUnsupported, match="redis"):
        open_reads(str(home), "redis://localhost", clock)
    assert not home.exists()


@pytest.mark.parametrize("name", ["with space", "ünïcödé", "per%20cent?and#hash", "'quote'", "x" * 200])
def test_any_name_of_a_home_will_do(home: Path, clock: FakeClock, name: str) -> None:
    place = home.parent / name
    store = open_store(str(place), None, clock)
    bell = store.claims.register(NewWorker("w1", "here", 1, str(place), 1, None))
    store.enqueue([new_job() for _ in range(600)])
    assert bell.drain()
    assert len(list(store.jobs())) == 600
    bell.close()
    store.close()
    assert sorted(path.name for path in place.iterdir()) == ["logs", "queue.db", "workers"]


@pytest.mark.parametrize("opener", [open_store, open_enqueuer, open_reads, store_exists])
def test_a_directory_is_not_taken_for_a_store(home: Path, tmp_path: Path, opener: Callable[..., object]) -> None:
    with pytest.raises(errors.StoreFailed, match="it is a directory") as raised:
        opener(str(home), str(tmp_path))
    assert raised.value.hint == f"name the file in it: {tmp_path}/queue.db"
    assert not home.exists()


def test_a_home_that_is_a_file_is_said_to_be_no_directory(home: Path) -> None:
    home.write_text("")
    with pytest.raises(errors.HomeUnusable, match="it is not a directory"):
        open_store(str(home))
