"""Making a file ours, or refusing it: never damaging what is not ours, is newer, or cannot be read."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from queuectl import errors
from queuectl.jobs.model import Job
from queuectl.store import sqlite as package
from queuectl.store.open import open_enqueuer, open_reads, open_store
from queuectl.store.sqlite import connection, migrate
from queuectl.store.sqlite.connection import APPLICATION_ID, Connection
from queuectl.store.sqlite.migrate import _statements
from queuectl.store.statements import LATEST, Migration, migrations_of
from queuectl.store.store import Store
from tests.clock import FakeClock
from tests.factories import new_job
from tests.needs import require

ROOT = Path(__file__).parents[3]

Opener = Callable[..., Store]

OPEN_AND_ENQUEUE = """
import sys
from queuectl.store.open import open_store
from tests.factories import new_job
print("ready", flush=True)
sys.stdin.readline()
for home in sys.argv[1:]:
    store = open_store(home)
    store.enqueue([new_job()])
    store.close()
"""

# Root may write any file: give that up, so that modes mean something.
WITHOUT_PRIVILEGES = """
import ctypes, os, sys
from queuectl.store.open import open_store
from tests.factories import new_job
if os.geteuid() == 0:
    version_3 = (ctypes.c_uint32 * 2)(0x20080522, 0)
    assert ctypes.CDLL(None).capset(version_3, (ctypes.c_uint32 * 6)()) == 0
try:
    open_store(sys.argv[1], patience=1).enqueue([new_job()])
except Exception as error:
    print(type(error).__name__)
"""


def content(path: Path) -> bytes:
    return path.read_bytes()


@contextlib.contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        yield db


def make_store(home: Path, clock: FakeClock, *, jobs: int = 0) -> None:
    store = open_store(str(home), None, clock)
    store.enqueue([new_job() for _ in range(jobs)])
    store.close()


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_migrations_are_numbered_without_gaps_up_to_the_latest() -> None:
    assert package.__file__ is not None
    versions = [migration.version for migration in migrations_of(package.__file__)]
    assert versions == list(range(1, LATEST + 1))


def test_a_script_is_cut_into_whole_statements() -> None:
    script = (
        "create table a (x); -- one;\ncreate trigger t after insert on a begin\n delete from a;\nend;\nselect ';';\n"
    )
    assert [re.sub(r"\s+", " ", statement).strip() for statement in _statements(script)] == [
        "create table a (x); -- one;",
        "create trigger t after insert on a begin delete from a; end;",
        "select ';';",
    ]


def test_a_new_store_says_whose_it_is_and_of_which_version(home: Path, path: Path, clock: FakeClock) -> None:
    make_store(home, clock)
    with raw(path) as db:
        assert db.execute("pragma user_version").fetchone() == (LATEST,)
        assert db.execute("pragma application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("pragma integrity_check").fetchone() == ("ok",)


def test_opening_again_changes_nothing(home: Path, path: Path, clock: FakeClock) -> None:
    make_store(home, clock, jobs=3)
    before = content(path)
    open_store(str(home), None, clock).close()
    assert content(path) == before


def test_a_migration_is_applied_once_and_keeps_the_jobs(
    home: Path, path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_store(home, clock, jobs=3)
    second = tmp_path / "0002_colors.sql"
    second.write_text("create table colors (name text) strict;\ninsert into colors values ('red');\n")
    files = [*migrations_of(migrate.__file__), Migration(LATEST + 1, str(second))]
    monkeypatch.setattr(migrate, "migrations_of", lambda _: files)
    monkeypatch.setattr(connection, "LATEST", LATEST + 1)
    for _ in range(2):
        store = open_store(str(home), None, clock)
        assert store.count() == 3
        store.close()
    with raw(path) as db:
        assert db.execute("select name from colors").fetchall() == [("red",)]
        assert db.execute("pragma user_version").fetchone() == (LATEST + 1,)


def test_a_migration_that_fails_changes_nothing(
    home: Path, path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_store(home, clock, jobs=3)
    second = tmp_path / "0002_colors.sql"
    second.write_text("create table colors (name text) strict;\ninsert into nowhere values ('red');\n")
    files = [*migrations_of(migrate.__file__), Migration(LATEST + 1, str(second))]
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations_of", lambda _: files)
        patch.setattr(connection, "LATEST", LATEST + 1)
        with pytest.raises(errors.QueuectlError):
            open_store(str(home), None, clock)
    with raw(path) as db:
        assert db.execute("select 1 from sqlite_master where name = 'colors'").fetchall() == []
        assert db.execute("pragma user_version").fetchone() == (LATEST,)


# ── at once ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("processes", [2, 8])
def test_any_number_of_processes_may_be_first(home: Path, processes: int, clock: FakeClock) -> None:
    homes = [str(home.with_name(f"home-{number}")) for number in range(12)]
    command = [sys.executable, "-c", OPEN_AND_ENQUEUE, *homes]
    with contextlib.ExitStack() as stack:
        rivals = [
            stack.enter_context(
                subprocess.Popen(
                    command,
                    cwd=ROOT,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(processes)
        ]
        for rival in rivals:
            assert rival.stdout is not None
            assert rival.stdout.readline() == "ready\n"
        for rival in rivals:
            assert rival.stdin is not None
            rival.stdin.write("go\n")
            rival.stdin.flush()
        problems = [rival.communicate()[1] for rival in rivals]
    assert problems == [""] * processes
    for one in homes:
        store = open_reads(one, None, clock)
        assert store.count() == processes
        store.close()


# ── not ours ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("opener", [open_store, open_reads])
class TestWhatIsNotOurs:
    def test_a_newer_store_is_refused_and_unchanged(
        self, home: Path, path: Path, clock: FakeClock, opener: Opener
    ) -> None:
        make_store(home, clock, jobs=3)
        with raw(path) as db:
            db.execute(f"pragma user_version = {LATEST + 1}")
        before = content(path)
        with pytest.raises(errors.StoreTooNew, match=f"version {LATEST + 1}"):
            opener(str(home), None, clock)
        assert content(path) == before

    def test_a_foreign_database_is_refused_and_unchanged(
        self, home: Path, path: Path, clock: FakeClock, opener: Opener
    ) -> None:
        home.mkdir()
        with raw(path) as db:
            db.execute("create table precious (x)")
        before = content(path)
        with pytest.raises(errors.StoreForeign):
            opener(str(home), None, clock)
        assert content(path) == before

    @pytest.mark.parametrize("pragma", ["user_version = 1", "application_id = 77"])
    def test_an_empty_database_with_a_foreign_application_id_is_refused(
        self, home: Path, path: Path, clock: FakeClock, opener: Opener, pragma: str
    ) -> None:
        home.mkdir()
        with raw(path) as db:
            db.execute(f"pragma {pragma}")
        before = content(path)
        with pytest.raises(errors.StoreForeign):
            opener(str(home), None, clock)
        assert content(path) == before

    @pytest.mark.parametrize("text", ["x", "precious\n" * 3, "precious\n" * 3000], ids=["byte", "lines", "pages"])
    def test_a_file_that_is_no_database_is_refused_and_unchanged(
        self, home: Path, path: Path, clock: FakeClock, opener: Opener, text: str
    ) -> None:
        home.mkdir()
        path.write_text(text)
        with pytest.raises(errors.StoreForeign):
            opener(str(home), None, clock)
        assert path.read_text() == text
        assert sorted(found.name for found in home.iterdir() if found.is_file()) == ["queue.db"]

    def test_a_directory_in_its_place_is_refused(
        self, home: Path, path: Path, clock: FakeClock, opener: Opener
    ) -> None:
        path.mkdir(parents=True)
        with pytest.raises(errors.StoreFailed, match="it is a directory"):
            opener(str(home), None, clock)
        assert list(path.iterdir()) == []

    def test_a_store_whose_schema_is_garbage_is_refused_and_unchanged(
        self, home: Path, path: Path, clock: FakeClock, opener: Opener
    ) -> None:
        make_store(home, clock, jobs=3)
        overwrite(path, at=100, size=2000)
        before = content(path)
        with pytest.raises(errors.StoreDamaged):
            opener(str(home), None, clock)
        assert content(path) == before


def overwrite(path: Path, *, at: int, size: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xfe\xed" * (size // 2))


def page(store: Store, offset: int) -> list[Job]:
    try:
        return list(store.jobs(limit=250, offset=offset, descending=False))
    except errors.StoreDamaged:
        return []


def test_a_damaged_page_is_told_when_it_is_met_and_nothing_is_changed(home: Path, path: Path, clock: FakeClock) -> None:
    make_store(home, clock, jobs=3000)
    size = path.stat().st_size
    overwrite(path, at=size // 2, size=size // 4)
    before = content(path)
    store = open_store(str(home), None, clock)
    with pytest.raises(errors.StoreDamaged):
        list(store.jobs())
    pages = [page(store, offset) for offset in range(0, 3000, 250)]
    assert len(pages[0]) == 250  # what is whole can still be read
    assert [] in pages
    with pytest.raises(errors.StoreDamaged):
        store.set_config({"ageing": "enqueues"})  # walks through all that waits
    store.close()
    assert content(path) == before


def test_an_empty_file_beside_its_mark_is_a_store_that_is_being_created(
    home: Path, path: Path, clock: FakeClock
) -> None:
    """What a process leaves that was killed between making the file and its first migration."""
    home.mkdir()
    path.touch()
    (home / "queue.db-new").touch()
    store = open_store(str(home), None, clock)
    store.enqueue([new_job("a")])
    assert store.get("a").id == "a"
    store.close()
    assert not (home / "queue.db-new").exists()


@pytest.mark.parametrize("opener", [open_store, open_reads, open_enqueuer])
def test_a_store_that_was_cut_to_nothing_is_refused_and_keeps_its_log(
    home: Path, path: Path, clock: FakeClock, opener: Callable[..., object]
) -> None:
    store = open_store(str(home), None, clock)
    store.enqueue([new_job("a")])  # and all of it is in the log, which SQLite removes if it may open the file
    log = (home / "queue.db-wal").read_bytes()
    os.truncate(path, 0)
    with pytest.raises(errors.StoreDamaged, match="0 bytes"):
        opener(str(home), None, clock)
    with pytest.raises(errors.StoreDamaged, match="0 bytes"):
        store.enqueue([new_job("b")])
    assert path.stat().st_size == 0
    assert (home / "queue.db-wal").read_bytes() == log
    store.close()


def test_a_mark_that_was_left_behind_goes_with_the_next_who_opens_the_store(
    home: Path, path: Path, clock: FakeClock
) -> None:
    make_store(home, clock, jobs=1)
    (home / "queue.db-new").touch()
    open_reads(str(home), None, clock).close()
    assert not (home / "queue.db-new").exists()


def test_a_home_that_cannot_be_made_is_refused(home: Path, clock: FakeClock) -> None:
    home.write_text("a file")
    with pytest.raises(errors.HomeUnusable):
        open_store(str(home / "below"), None, clock)


def test_a_database_that_is_a_link_is_refused_and_not_followed(home: Path, path: Path, clock: FakeClock) -> None:
    home.mkdir()
    path.symlink_to(home / "nowhere.db")
    with pytest.raises(errors.HomeUnusable, match=r"queue\.db in it is a symbolic link"):
        open_store(str(home), None, clock)
    assert not (home / "nowhere.db").exists()


def test_a_connection_alone_makes_no_directory(home: Path, path: Path, clock: FakeClock) -> None:
    with pytest.raises(errors.StoreFailed, match="its directory does not exist"):
        Connection(str(path), clock=clock).execute("pragma user_version")
    assert not home.exists()


def test_a_sqlite_without_strict_tables_is_named_and_refused(
    home: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(errors.SqliteTooOld, match=r"3\.37\.0 or newer"):
        open_store(str(home), None, clock)


def test_a_store_in_no_directory_is_refused(home: Path, clock: FakeClock) -> None:
    with pytest.raises(errors.StoreFailed):
        open_store(str(home), str(home / "nowhere" / "queue.db"), clock)


@pytest.mark.parametrize("case", ["file", "folder", "no store yet"])
def test_a_store_that_may_not_be_written_is_refused_and_unchanged(
    home: Path, path: Path, clock: FakeClock, case: str
) -> None:
    require("Linux", os.geteuid() != 0 or sys.platform == "linux", "root gives up its privileges by capset")
    make_store(home, clock, jobs=3)
    if case == "no store yet":
        path.unlink()
    before = content(path) if path.exists() else None
    if case == "file":
        path.chmod(0o400)
    else:
        home.chmod(0o500)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PRIVILEGES, str(home)], cwd=ROOT, capture_output=True, text=True
    )
    home.chmod(0o700)
    assert done.stderr == ""
    assert done.stdout.strip() in {"StoreReadOnly", "StoreFailed", "HomeUnusable"}
    assert (content(path) if path.exists() else None) == before


# ── private ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_we_make_is_private_whatever_the_umask(home: Path, clock: FakeClock, umask: int) -> None:
    before = os.umask(umask)
    try:
        store = open_store(str(home), None, clock)
        store.enqueue([new_job()])
    finally:
        os.umask(before)
    modes = {found.name: found.stat().st_mode & 0o777 for found in [home, *home.iterdir()]}
    store.close()
    directories = dict.fromkeys([home.name, "logs", "workers"], 0o700)
    assert modes == directories | dict.fromkeys(["queue.db", "queue.db-wal", "queue.db-shm"], 0o600)


def test_a_directory_that_we_did_not_make_is_left_as_it_is(home: Path, clock: FakeClock) -> None:
    home.mkdir()
    home.chmod(0o755)
    open_store(str(home), None, clock).close()
    assert home.stat().st_mode & 0o777 == 0o755
