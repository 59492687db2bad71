from __future__ import annotations

import stat
from pathlib import Path

import pytest

from queuectl.errors import WorkersAlive
from queuectl.operations.backup import reset_store
from queuectl.store.open import open_reads
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.operations.life import enqueue, register, run


def test_reset_removes_jobs_and_logs_and_keeps_settings_and_a_copy(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home)
    enqueue(store, "a")
    enqueue(store, "b")
    run(store, home)
    store.set_config({"max-retries": "7"})
    (home / "logs" / "a.log").write_bytes(b"x")
    made = reset_store(store, clock, home=str(home), is_alive=lambda _: False)
    assert made.jobs == 2
    assert list(store.jobs()) == []
    assert store.config()["max-retries"] == "7"
    assert list((home / "logs").iterdir()) == []
    copy = Path(made.backup)
    assert copy.parent == home / "backups"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    kept = open_reads(str(home), str(copy), clock)
    assert {job.id for job in kept.jobs()} == {"a", "b"}
    kept.close()


def test_reset_is_refused_while_a_worker_is_alive(store: Store, home: Path, clock: FakeClock) -> None:
    register(store, home, name="busy-bee")
    enqueue(store, "a")
    with pytest.raises(WorkersAlive, match="busy-bee"):
        reset_store(store, clock, home=str(home), is_alive=lambda _: True)
    assert store.count() == 1
    assert not (home / "backups").exists()
