"""One connection to a SQLite file: opening, waiting for the write lock, transactions.

SQLite's own busy handler sleeps in steps that grow to 100 ms and favour newcomers. This one asks again every 2 ms.
"""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any, Final

from queuectl import errors
from queuectl.clock import Clock
from queuectl.store.sqlite.files import MEMORY as MEMORY
from queuectl.store.sqlite.files import inode_of, is_sealed, sealed, status_of
from queuectl.store.sqlite.trouble import is_busy, translate
from queuectl.store.statements import Statements

OLDEST_SQLITE: Final = (3, 37, 0)  # STRICT tables
APPLICATION_ID: Final = 0x51756374  # "Quct": tells our files from everybody else's

EMPTY: Final = "it is empty, 0 bytes"
RETRY_EVERY: Final = 0.002
# How long to wait for the lock before its holder is looked up, how often after that, and for how much longer a command waits if the
# holder is known: a stopped one is killed after a lease, which may be as long as the patience of a command.
LOOK_AFTER: Final = 0.2
LOOK_EVERY: Final = 1.0
EXTRA_PATIENCE: Final = 1.0

SQL: Final = Statements(__file__)

Row = tuple[Any, ...]
# Called again and again while the file is locked: its path, the seconds waited, the stored settings. Returns a hint about the holder.
OnWait = Callable[[str, float, Callable[[], Mapping[str, str]]], str | None]


class Connection:
    """A connection with our settings. `patience` is how many seconds to wait for another writer before StoreBusy."""

    def __init__(self, path: str, *, clock: Clock, patience: float = 30.0, on_wait: OnWait | None = None) -> None:
        if sqlite3.sqlite_version_info < OLDEST_SQLITE:
            raise errors.SqliteTooOld(sqlite3.sqlite_version, ".".join(map(str, OLDEST_SQLITE)))
        self.path = path
        self.patience = patience
        self._on_wait = on_wait
        self._look_at = 0.0
        self._clock = clock
        self._inode = inode_of(path)
        self._was_filled = False
        try:
            name = sealed(path) if is_sealed(path) else path
            self._db = sqlite3.connect(name, timeout=0, isolation_level=None, cached_statements=256, uri=name != path)
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc
        try:
            self._configure()
        except BaseException:
            self._db.close()
            raise

    def _configure(self) -> None:
        # FULL: a commit is on the disk when it returns. Foreign keys: history goes with its job.
        for pragma in (
            "synchronous = full",
            "foreign_keys = on",
            "cache_size = -8000",
            "journal_size_limit = 67108864",
        ):
            self.execute(f"pragma {pragma}")

    def close(self) -> None:
        self._db.close()

    # ── statements ──────────────────────────────────────────────────────────────────────────────────────────────────

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Run one statement; wait while the file is locked, raise our errors."""
        try:
            return self._db.execute(sql, parameters)
        except sqlite3.Error as exc:
            if not is_busy(exc):
                raise self._translate(exc) from exc
        return self._persist(lambda: self._db.execute(sql, parameters))

    def executemany(self, sql: str, rows: Iterable[Row | Mapping[str, Any]]) -> None:
        try:
            self._db.executemany(sql, rows)
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc

    def one(self, sql: str, parameters: Any = ()) -> Row | None:
        try:
            row: Row | None = self.execute(sql, parameters).fetchone()
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc
        return row

    def all(self, sql: str, parameters: Any = ()) -> list[Row]:
        try:
            return self.execute(sql, parameters).fetchall()
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc

    def integers(self, sql: str, parameters: Any = ()) -> array[int]:
        """The first column of all rows."""
        try:
            return array("q", (row[0] for row in self.execute(sql, parameters)))
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc

    def pages(self, sql: str, parameters: Any = (), *, size: int) -> Iterator[list[Row]]:
        """All rows, `size` at a time, as they were when the first was read."""
        cursor = self.execute(sql, parameters)
        try:
            while page := cursor.fetchmany(size):
                yield page
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc

    def value(self, sql: str, parameters: Any = ()) -> Any:
        """The first column of the first row, None if there is none."""
        row = self.one(sql, parameters)
        return None if row is None else row[0]

    # ── transactions ────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A write: takes the write lock at once, commits at the end, rolls back on any exception."""
        self.check_in_place()
        self.execute("begin immediate")
        try:
            yield
            self.execute("commit")
        except BaseException:
            if self._db.in_transaction:
                with suppress(sqlite3.Error):  # nothing is committed either way, and what went wrong first is the news
                    self._db.rollback()
            raise

    @contextmanager
    def synced_apart(self) -> Iterator[None]:
        """Transactions that let go of the write lock before they wait for the disk, which now and then takes a hundred
        milliseconds for a sync. They are on the disk when this ends, as ever."""
        self.execute("pragma synchronous = normal")
        try:
            yield
        finally:
            self.execute("pragma synchronous = full")
        self._sync_log()

    @contextmanager
    def undone_from_memory(self) -> Iterator[None]:
        """Transactions whose statements keep in memory what they would have to undo. Else one of fifty rows writes it to a file
        in /var/tmp, page by page: 500 MB for 100,000 jobs. Not always: what has to be sorted would be in memory, too."""
        self.execute("pragma temp_store = memory")
        try:
            yield
        finally:
            self.execute("pragma temp_store = default")

    def _sync_log(self) -> None:
        if self.path == MEMORY:
            return
        try:
            # SQLite keeps no lock on this one, so that it may be closed again. What has left it already was synced before.
            fd = os.open(f"{self.path}-wal", os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as exc:
            raise errors.StoreFailed(self.path, exc.strerror or str(exc)) from exc

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several reads that see one state of the store."""
        self.check_in_place()
        self.execute("begin deferred")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._db.rollback()

    def check_in_place(self) -> None:
        """Raise StoreGone if the file was removed or replaced: writes would go into a file that nobody can find. Raise
        StoreDamaged if it was cut to nothing: SQLite would take it for a new one, and throw away its log. Raise StoreFailed if
        the file cannot be examined (EACCES, EIO, ESTALE …): that passes, and says nothing about the file."""
        if self.path == MEMORY:
            return
        try:
            found = status_of(self.path)
        except OSError as exc:
            raise errors.StoreFailed(
                self.path, exc.strerror or str(exc), hint="check who may enter its directory"
            ) from exc
        if found is None or (found.st_dev, found.st_ino) != self._inode:
            raise errors.StoreGone(self.path)
        if found.st_size:
            self._was_filled = True
        elif self._was_filled:
            raise errors.StoreDamaged(self.path, EMPTY)

    def identity(self) -> str:
        """The file itself, by whatever name."""
        return self.path if self._inode is None else ":".join(map(str, self._inode))

    def beside(self) -> Connection:
        """Another connection to the same file, for a read that goes on while this one is used: as long as a statement of a
        connection has rows to give, all of that connection sees the past and cannot write."""
        self.check_in_place()
        return Connection(self.path, clock=self._clock, patience=self.patience, on_wait=self._on_wait)

    def backup(self, path: str) -> None:
        try:
            # Made here, and private: SQLite would make it by the umask, and would add to one that is there.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as exc:
            raise errors.StoreFailed(path, exc.strerror or str(exc)) from exc
        try:
            with closing(sqlite3.connect(path)) as target:
                # In one step: it keeps nobody from writing, while a copy in several steps begins anew after each write.
                self._db.backup(target)
        except BaseException as exc:
            os.unlink(path)
            if isinstance(exc, sqlite3.Error):
                raise translate(exc, path) from exc
            raise

    def fold_log(self) -> None:
        """Take over what is in the write-ahead log into the file, and make the log short again, as far as nobody reads."""
        # First without keeping anybody from writing; then there is next to nothing left to do under the lock.
        for mode in ("passive", "truncate"):
            self.all(f"pragma wal_checkpoint({mode})")

    # ── trouble ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _persist(self, attempt: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        start = self._clock.monotonic()
        hint: str | None = None
        while True:
            now = self._clock.monotonic()
            waited = now - start
            if self._on_wait and waited >= LOOK_AFTER and now >= self._look_at:
                self._look_at = now + LOOK_EVERY
                hint = self._on_wait(self.path, waited, self._stored_settings)
            if waited >= self.patience + (EXTRA_PATIENCE if hint and self.patience > EXTRA_PATIENCE else 0):
                raise errors.StoreBusy(self.path, waited, hint=hint)
            self._clock.sleep(RETRY_EVERY)
            try:
                return attempt()
            except sqlite3.Error as exc:
                if not is_busy(exc):
                    raise self._translate(exc) from exc

    def _stored_settings(self) -> dict[str, str]:
        """Empty if they cannot be read now: the caller must not wait for the lock again."""
        try:
            return dict(self._db.execute(SQL["config"]).fetchall())
        except sqlite3.Error:
            return {}

    def _translate(self, exc: sqlite3.Error) -> errors.QueuectlError:
        return translate(exc, self.path)
