"""When the file cannot serve: locked, gone, full. A clear error, nothing lost, and on it goes when the cause is gone."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.jobs.states import State
from queuectl.store.open import open_store
from queuectl.store.sqlite.store import SqliteStore
from tests.clock import FakeClock
from tests.factories import new_job

ROOT = Path(__file__).parents[3]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[sqlite3.Connection]:
    """Another process is writing."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("begin immediate")
        yield db


class Patience(FakeClock):
    """The lock is released while the test waits."""

    def __init__(self) -> None:
        super().__init__()
        self.holder: sqlite3.Connection | None = None
        self.lets_go_after = 0.0

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.holder and self.monotonic() >= 1000 + self.lets_go_after:
            self.holder.rollback()


@pytest.fixture
def clock() -> Patience:
    return Patience()


# ── locked ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_locked_store_is_waited_for_and_then_named(home: Path, path: Path, clock: Patience) -> None:
    store = open_store(str(home), None, clock, patience=30)
    start = clock.monotonic()
    with locked(path), pytest.raises(errors.StoreBusy, match=r"waited 30 s"):
        store.enqueue([new_job("a")])
    assert clock.monotonic() - start == pytest.approx(30, abs=0.01)
    assert store.count() == 0
    store.enqueue([new_job("a")])
    assert store.count() == 1
    store.close()


def test_a_waiting_process_is_called_at_intervals_and_names_the_holder(home: Path, path: Path, clock: Patience) -> None:
    calls: list[float] = []

    def on_wait(locked: str, waited: float, stored: Callable[[], Mapping[str, str]]) -> str:
        assert (locked, stored()) == (str(path), {"lease": "1m"})
        calls.append(waited)
        return "process 1 (cat) uses it"

    store = open_store(str(home), None, clock, patience=30, on_wait=on_wait)
    store.set_config({"lease": "1m"})
    with locked(path), pytest.raises(errors.StoreBusy) as refused:
        store.enqueue([new_job("a")])
    assert refused.value.hint == "process 1 (cat) uses it"
    assert calls[:3] == [pytest.approx(0.2, abs=0.01), pytest.approx(1.2, abs=0.01), pytest.approx(2.2, abs=0.01)]
    store.close()


@pytest.mark.parametrize("lets_go_after", [0.5, 10])
def test_work_goes_on_by_itself_once_the_lock_is_gone(
    home: Path, path: Path, clock: Patience, lets_go_after: float
) -> None:
    store = open_store(str(home), None, clock)
    with locked(path) as clock.holder:
        clock.lets_go_after = lets_go_after
        store.enqueue([new_job("a")])
    assert clock.monotonic() - 1000 == pytest.approx(lets_go_after, abs=0.01)  # not a whole patience later
    assert store.get("a").state is State.PENDING
    store.close()


def test_a_worker_need_not_wait_at_all(home: Path, path: Path, clock: Patience) -> None:
    store = open_store(str(home), None, clock, patience=0)
    with locked(path), pytest.raises(errors.StoreBusy):
        store.claims.heartbeat("w1", slots=1, stopping=False)
    assert clock.monotonic() == 1000
    store.close()


def test_looking_waits_for_no_writer(store: SqliteStore, path: Path, clock: Patience) -> None:
    store.enqueue([new_job("a") if n == 0 else new_job() for n in range(600)])
    with locked(path) as writer:
        writer.execute("delete from jobs")
        assert store.get("a").id == "a"
        assert len(list(store.jobs())) == 600
        assert store.tally()["default"][State.PENDING] == 600
    assert clock.monotonic() == 1000


def test_opening_waits_for_an_exclusive_lock(home: Path, path: Path, clock: Patience) -> None:
    open_store(str(home), None, clock).close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("pragma locking_mode = exclusive")
        db.execute("begin exclusive")
        with pytest.raises(errors.StoreBusy, match="waited 30 s"):
            open_store(str(home), None, clock)
    open_store(str(home), None, clock).close()


# ── gone ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_removed_store_is_missed_and_never_replaced(store: SqliteStore, path: Path) -> None:
    store.enqueue([new_job("a")])
    path.unlink()
    for write in (
        lambda: store.enqueue([new_job()]),
        lambda: store.cancel(["a"]),
        lambda: store.claims.heartbeat("w1", slots=1, stopping=False),
        lambda: store.set_config({"lease": "1m"}),
        lambda: store.claims.exchange("w1"),
    ):
        with pytest.raises(errors.StoreGone):
            write()
    assert not path.exists()


def test_waiting_for_a_change_fails_if_the_file_was_removed(store: SqliteStore, path: Path) -> None:
    store.changed()
    path.unlink()
    with pytest.raises(errors.StoreGone):
        store.changed()


def test_a_long_list_does_not_make_a_new_file_in_the_place_of_a_removed_one(store: SqliteStore, path: Path) -> None:
    store.enqueue([new_job()])
    path.unlink()
    with pytest.raises(errors.StoreGone):
        list(store.jobs())
    assert not path.exists()


def test_a_home_that_was_removed_is_missed_too(store: SqliteStore, home: Path) -> None:
    shutil.rmtree(home)
    with pytest.raises(errors.StoreGone):
        store.enqueue([new_job()])
    assert not home.exists()


def test_a_replaced_store_is_not_written_to(store: SqliteStore, home: Path, path: Path, clock: Patience) -> None:
    store.enqueue([new_job("old")])
    path.rename(home / "moved.db")
    shutil.copy(home / "moved.db", path)
    before = path.read_bytes()
    with pytest.raises(errors.StoreGone):
        store.enqueue([new_job("new")])
    assert path.read_bytes() == before


def test_a_store_that_is_put_back_goes_on(store: SqliteStore, home: Path, path: Path) -> None:
    path.rename(home / "moved.db")
    with pytest.raises(errors.StoreGone):
        store.enqueue([new_job("a")])
    (home / "moved.db").rename(path)
    store.enqueue([new_job("a")])
    assert store.get("a").id == "a"


# ── full ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_full_store_changes_nothing_and_goes_on_when_there_is_room(store: SqliteStore) -> None:
    store.enqueue([new_job("a")])
    pages = store.db.value("pragma page_count")
    store.db.execute(f"pragma max_page_count = {pages + 2}")
    with pytest.raises(errors.StoreFull):
        store.enqueue([new_job(command="x" * 100_000) for _ in range(10)])
    assert [job.id for job in store.jobs()] == ["a"]
    assert store.tally()["default"][State.PENDING] == 1
    store.db.execute("pragma max_page_count = 1000000")
    store.enqueue([new_job(command="x" * 100_000) for _ in range(10)])
    assert store.count() == 11


ON_A_SMALL_DISK = """
import resource, sys
from queuectl import errors
from queuectl.store.open import open_store
from tests.factories import new_job
store = open_store(sys.argv[1])
store.enqueue([new_job("before")])
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
refused = 0
for number in range(5):
    try:
        store.enqueue([new_job(f"big-{number}", command="x" * 100_000) for number in range(10)])
    except errors.Unavailable as error:
        refused += 1
assert refused == 5, refused
assert store.count() == 1 == len(list(store.jobs()))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.enqueue([new_job("after")])
assert [job.id for job in store.jobs()] == ["after", "before"]
store.close()
"""


def test_a_write_that_the_disk_refuses_is_an_error_of_ours_and_passes(home: Path, clock: Patience) -> None:
    done = subprocess.run([sys.executable, "-c", ON_A_SMALL_DISK, str(home)], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    store = open_store(str(home), None, clock)
    assert [job.id for job in store.jobs()] == ["after", "before"]
    store.close()


def test_a_backup_that_does_not_fit_leaves_no_half_of_itself(home: Path) -> None:
    script = """
import os, resource, sys
from queuectl import errors
from queuectl.store.open import open_store
from tests.factories import new_job
store = open_store(sys.argv[1])
store.enqueue([new_job(command="x" * 100_000) for _ in range(10)])
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
try:
    store.backup(sys.argv[1] + "/copy.db")
except errors.Unavailable:
    print(sorted(name for name in os.listdir(sys.argv[1]) if name.startswith("copy")))
"""
    done = subprocess.run([sys.executable, "-c", script, str(home)], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_a_store_that_may_only_be_read_says_so(store: SqliteStore) -> None:
    store.enqueue([new_job("a")])
    store.db.execute("pragma query_only = on")
    with pytest.raises(errors.StoreReadOnly):
        store.cancel(["a"])
    assert store.get("a").state is State.PENDING


# ── others work on ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_backup_is_one_moment_and_ends_however_busy_the_others_are(
    store: SqliteStore, home: Path, tmp_path: Path, clock: Patience
) -> None:
    store.enqueue([new_job(command="x" * 50_000) for _ in range(200)])
    busy = subprocess.Popen(
        [sys.executable, "-c", WRITE_ON_AND_ON, str(home)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with busy:
        assert busy.stdout is not None
        assert busy.stdout.readline()
        store.backup(str(tmp_path / "copy.db"))
        busy.communicate()  # the end of its stdin is its end
    copy = open_store(str(home), str(tmp_path / "copy.db"), clock)
    assert copy.count() == len(list(copy.jobs())) >= 200
    copy.close()


WRITE_ON_AND_ON = """
import select, sys
from queuectl.store.open import open_store
store = open_store(sys.argv[1])
beats = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    store.set_config({"beats": str(beats)})
    beats += 1
    if beats == 10:
        print("busy", flush=True)
store.close()
"""
