"""The file gets smaller after a prune, in small steps."""

from __future__ import annotations

import os

import pytest

from queuectl.store.open import open_store
from queuectl.store.sqlite.store import MAX_FREED_PAGES, MAX_LOCK_SECONDS, SPARE_PAGES, SqliteStore
from tests.clock import FakeClock
from tests.factories import new_job

PAGE = 4096


def free_pages(store: SqliteStore) -> int:
    return int(store.db.value("pragma freelist_count"))


def test_the_file_shrinks_in_small_steps_down_to_some_spare_room(store: SqliteStore) -> None:
    path = store.db.path
    ids = store.enqueue([new_job(command="x" * 100_000) for _ in range(100)])
    for job_id in ids:
        store.cancel([job_id])
    store.db.checkpoint()
    full = os.path.getsize(path)
    assert len(store.prune(ids, before_ms=store.now_ms())) == 100
    steps, free = 0, free_pages(store)
    assert free > 2 * MAX_FREED_PAGES + SPARE_PAGES
    while store.shrink():
        assert free - free_pages(store) == MAX_FREED_PAGES
        steps, free = steps + 1, free_pages(store)
    assert steps > 1
    assert free_pages(store) == SPARE_PAGES
    assert os.path.getsize(path) < full - (steps - 1) * MAX_FREED_PAGES * PAGE
    assert os.path.getsize(f"{path}-wal") == 0
    assert store.db.value("pragma integrity_check") == "ok"


class SlowClock(FakeClock):
    def monotonic(self) -> float:
        self.advance(0.001)
        return super().monotonic()


def test_where_it_takes_long_the_file_shrinks_in_smaller_steps(store: SqliteStore) -> None:
    ids = store.enqueue([new_job(command="x" * 100_000) for _ in range(40)])
    store.cancel(ids)
    store.prune(ids, before_ms=store.now_ms())
    slow = open_store(os.path.dirname(store.db.path), None, SlowClock())
    assert isinstance(slow, SqliteStore)
    free, steps = free_pages(store), 0
    while slow.shrink():
        assert 1 <= free - free_pages(store) <= MAX_LOCK_SECONDS * 1000 + 1
        free, steps = free_pages(store), steps + 1
    slow.close()
    assert steps > (len(ids) * 25 - SPARE_PAGES) / (MAX_LOCK_SECONDS * 1000 + 1) - 1
    assert free_pages(store) == SPARE_PAGES


def test_the_log_is_checkpointed_while_a_reader_is_active(store: SqliteStore) -> None:
    """It cannot be truncated then, and the call does not wait for that."""
    store.enqueue([new_job(command="x" * 100_000) for _ in range(100)])
    reader = store.db.duplicate()
    with reader.snapshot():
        assert reader.value("select count(*) from jobs") == 100
        for job_id in [job.id for job in store.jobs()]:
            store.cancel([job_id])
        store.prune([job.id for job in store.jobs()], before_ms=store.now_ms())
        while store.shrink():
            pass
        assert reader.value("select count(*) from jobs") == 100
    reader.close()
    store.db.checkpoint()
    assert os.path.getsize(f"{store.db.path}-wal") == 0


def test_what_syncs_apart_leaves_the_others_as_careful_as_before(store: SqliteStore) -> None:
    full = 2
    with pytest.raises(RuntimeError), store.db.synced_after_commit(), store.db.transaction():
        raise RuntimeError
    assert store.db.value("pragma synchronous") == full
    ids = store.enqueue([new_job()])
    store.cancel(ids)
    store.prune(ids, before_ms=store.now_ms())
    assert store.db.value("pragma synchronous") == full


def test_what_was_pruned_is_synced_without_the_write_lock(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk may take a hundred milliseconds for it, and retention promises fifty."""
    ids = store.enqueue([new_job()])
    store.cancel(ids)
    other, synced = store.db.duplicate(), []

    def sync(fd: int) -> None:
        with other.transaction():
            synced.append(os.path.samestat(os.fstat(fd), os.stat(f"{other.path}-wal")))

    monkeypatch.setattr(os, "fsync", sync)
    store.prune(ids, before_ms=store.now_ms())
    other.close()
    assert synced == [True]
