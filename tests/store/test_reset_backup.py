"""reset and backup: an end, and a copy before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from queuectl import errors
from queuectl.jobs.states import State
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.store.backends import Backend
from tests.store.hands import BAD, Hands


def fill(store: Store, worker: Hands) -> None:
    store.enqueue([new_job("a", tags=("t",)), new_job("b", max_retries=1), new_job("c", queue="q"), new_job("d")])
    worker.run()
    worker.run(BAD)


def test_reset_removes_every_job_and_all_history(store: Store, worker: Hands, backend: Backend) -> None:
    fill(store, worker)
    assert store.reset() == 4
    assert list(store.jobs()) == []
    assert [backend.rows(table) for table in ("jobs", "runs", "job_tags")] == [[], [], []]
    assert {state: jobs for states in store.tally().values() for state, jobs in states.items()} == dict.fromkeys(
        State, 0
    )


def test_reset_keeps_the_settings_and_the_totals(store: Store, worker: Hands) -> None:
    store.set_config({"lease": "1m"})
    fill(store, worker)
    totals = store.totals()
    store.reset()
    assert store.config() == {"lease": "1m"}
    assert store.totals() == totals


def test_reset_of_an_empty_store_finds_nothing(store: Store) -> None:
    assert store.reset() == 0


def test_the_store_works_on_after_a_reset(store: Store, worker: Hands) -> None:
    fill(store, worker)
    store.reset()
    store.enqueue([new_job("a")])
    assert worker.claim_one().run == 1


def test_a_backup_holds_all_there_was(
    store: Store, worker: Hands, backend: Backend, clock: FakeClock, tmp_path: Path
) -> None:
    store.set_config({"lease": "1m"})
    fill(store, worker)
    copy = tmp_path / "copy.db"
    store.backup(str(copy))
    store.reset()
    kept = backend.open_copy(copy, clock)
    assert [job.id for job in kept.jobs()] == ["d", "c", "b", "a"]
    assert (kept.config(), len(kept.history("b")), kept.get("a").tags) == ({"lease": "1m"}, 1, ("t",))
    kept.close()


def test_a_backup_is_private(store: Store, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    store.backup(str(copy))
    assert copy.stat().st_mode & 0o777 == 0o600


def test_a_backup_never_replaces_a_file(store: Store, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.write_text("precious")
    with pytest.raises(errors.Unavailable):
        store.backup(str(there))
    assert there.read_text() == "precious"


def test_a_backup_into_no_directory_is_refused_in_our_words(store: Store, tmp_path: Path) -> None:
    with pytest.raises(errors.Unavailable):
        store.backup(str(tmp_path / "nowhere" / "copy.db"))
