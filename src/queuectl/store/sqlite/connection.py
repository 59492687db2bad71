"""A connection to a SQLite file: opening it, pragmas, waiting for the write lock, transactions, and the file itself. Files of other
programs and of newer versions are refused unchanged.

The busy handler of SQLite sleeps in steps that grow to 100 ms and favor newcomers. This one tries again every 2 ms.
"""

from __future__ import annotations

import os
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any, Final

from queuectl import errors
from queuectl.clock import Clock
from queuectl.store.sqlite.errors import is_busy, translate
from queuectl.store.statements import LATEST, Statements, without_schema
from queuectl.store.transactions import Keys, Parameters, Query, Transactions, Transitions
from queuectl.store.types import Row

OLDEST_SQLITE: Final = (3, 37, 0)  # STRICT tables
APPLICATION_ID: Final = 0x51756374  # "Quct"

MEMORY: Final = ":memory:"
EMPTY: Final = "it is empty, 0 bytes"
_COMPANIONS: Final = ("-wal", "-shm", "-journal")  # files that SQLite creates and opens by itself
RETRY_EVERY: Final = 0.002
# Seconds until the holder of the lock is looked up, and between such lookups; and how much longer a command waits if the holder is
# known: a stopped one is killed after a lease, which may be as long as the patience of a command.
LOOK_UP_AFTER: Final = 0.2
LOOK_UP_EVERY: Final = 1.0
EXTRA_PATIENCE: Final = 1.0

SQL: Final = Statements(__file__, adapt=without_schema)

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
        self._look_up_at = 0.0
        self._clock = clock
        self._inode = inode_of(path)
        self._was_filled = False
        try:
            name = read_only_uri(path) if is_read_only(path) else path
            self._db = sqlite3.connect(name, timeout=0, isolation_level=None, cached_statements=256, uri=name != path)
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc
        try:
            self._configure()
        except BaseException:
            self._db.close()
            raise

    def _configure(self) -> None:
        # FULL: a commit is on the disk when it returns. Foreign keys: deleting a job deletes its history.
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

    def execute(self, sql: str, parameters: Any = ()) -> int:
        """Run one statement, and return the number of changed rows."""
        return self._execute(sql, parameters).rowcount

    def _execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Run one statement; wait while the file is locked, raise our errors."""
        try:
            return self._db.execute(sql, parameters)
        except sqlite3.Error as exc:
            if not is_busy(exc):
                raise self._translate(exc) from exc
        return self._persist(lambda: self._db.execute(sql, parameters))

    def executemany(self, sql: str, rows: Iterable[Parameters]) -> None:
        try:
            self._db.executemany(sql, rows)
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc

    def one(self, sql: str, parameters: Any = ()) -> Row | None:
        try:
            row: Row | None = self._execute(sql, parameters).fetchone()
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc
        return row

    def all(self, sql: str, parameters: Any = ()) -> list[Row]:
        try:
            return self._execute(sql, parameters).fetchall()
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc

    def integers(self, sql: str, parameters: Any = ()) -> array[int]:
        """The first column of all rows."""
        try:
            return array("q", (row[0] for row in self._execute(sql, parameters)))
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc

    def pages(self, sql: str, parameters: Any = (), *, size: int) -> Iterator[list[Row]]:
        """All rows, `size` at a time, as they were when the first was read."""
        cursor = self._execute(sql, parameters)
        try:
            while page := cursor.fetchmany(size):
                yield page
        except sqlite3.Error as exc:
            raise self._translate(exc) from exc

    def value(self, sql: str, parameters: Any = ()) -> Any:
        """The first column of the first row, None if there is none."""
        row = self.one(sql, parameters)
        return None if row is None else row[0]

    def query(self, *queries: Query, plan_freely: bool = False) -> list[list[Row]]:  # noqa: ARG002 # for PostgreSQL
        """The rows of some reads, all as of one moment."""
        if len(queries) == 1 or self._is_inside():
            return [self.all(*query) for query in queries]
        with self.snapshot():
            return [self.all(*query) for query in queries]

    def defer(self, sql: str, parameters: Parameters = ()) -> None:
        """Run a statement without a result. (PostgreSQL sends it with the commit.)"""
        self._execute(sql, parameters)

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
                with suppress(sqlite3.Error):  # nothing is committed either way; the first error matters
                    self._db.rollback()
            raise

    @contextmanager
    def synced_after_commit(self) -> Iterator[None]:
        """Transactions that release the write lock before they wait for the disk, where a sync may take a hundred milliseconds. They are
        on the disk when this ends."""
        self.execute("pragma synchronous = normal")
        try:
            yield
        finally:
            self.execute("pragma synchronous = full")
        self._sync_log()

    @contextmanager
    def journal_in_memory(self) -> Iterator[None]:
        """Transactions whose statement journals are in memory. Else a statement with fifty rows writes its journal to a file in /var/tmp:
        500 MB for 100,000 jobs. Not for all transactions: large sorts would be in memory, too."""
        self.execute("pragma temp_store = memory")
        try:
            yield
        finally:
            self.execute("pragma temp_store = default")

    def _sync_log(self) -> None:
        if self.path == MEMORY:
            return
        try:
            # SQLite holds no lock on the log, so closing it is safe. Checkpointed pages were synced before.
            fd = os.open(f"{self.path}-wal", os.O_RDONLY)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as exc:
            raise errors.StoreFailed(self.path, exc.strerror or str(exc)) from exc

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several reads as of one moment."""
        if self._is_inside():
            yield
            return
        self.check_in_place()
        self.execute("begin deferred")
        try:
            yield
        finally:
            if self._is_inside():
                self._db.rollback()

    def _is_inside(self) -> bool:
        return self._db.in_transaction

    def check_in_place(self) -> None:
        """Raise StoreGone if the file was removed or replaced: writes would go into a deleted file. Raise StoreDamaged if it was
        truncated to nothing: SQLite would take it for a new one, and discard its log. Raise StoreFailed if the file cannot be
        examined (EACCES, EIO, ESTALE …), which may be temporary."""
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
        """The file itself, whatever its path is."""
        return self.path if self._inode is None else ":".join(map(str, self._inode))

    def duplicate(self) -> Connection:
        """Another connection to the same file, for a long read while this one is used: while a statement has rows left, its whole
        connection sees the past and cannot write."""
        self.check_in_place()
        return Connection(self.path, clock=self._clock, patience=self.patience, on_wait=self._on_wait)

    def backup(self, path: str) -> None:
        try:
            # Created here, private and new: SQLite would use the umask, and would write into an existing file.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError as exc:
            raise errors.StoreFailed(path, exc.strerror or str(exc)) from exc
        try:
            with closing(sqlite3.connect(path)) as target:
                # In one step, which blocks no writer; a copy in several steps starts over after each write.
                self._db.backup(target)
        except BaseException as exc:
            os.unlink(path)
            if isinstance(exc, sqlite3.Error):
                raise translate(exc, path) from exc
            raise

    def checkpoint(self) -> None:
        """Move the write-ahead log into the file and truncate it, as far as no reader needs it."""
        # First without blocking writers; then little is left to do under the lock.
        for mode in ("passive", "truncate"):
            self.all(f"pragma wal_checkpoint({mode})")

    # ── waiting and errors ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _persist(self, attempt: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        start = self._clock.monotonic()
        hint: str | None = None
        while True:
            now = self._clock.monotonic()
            waited = now - start
            if self._on_wait and waited >= LOOK_UP_AFTER and now >= self._look_up_at:
                self._look_up_at = now + LOOK_UP_EVERY
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


# ── the file ────────────────────────────────────────────────────────────────────────────────────────────────────────


def is_read_only(path: str) -> bool:
    """Whether files beside this one cannot be written, on a read-only disk for example, and it contains everything.

    SQLite reads a write-ahead log only with an index of it, which it creates beside the file.
    """
    if path == MEMORY or not os.path.exists(path) or os.access(os.path.dirname(path) or ".", os.W_OK):
        return False
    return is_closed(path)


def is_closed(path: str) -> bool:
    """Whether the database is completely in its one file, without a write-ahead log."""
    try:
        return os.path.getsize(f"{path}-wal") == 0
    except OSError:
        return True


def read_only_uri(path: str) -> str:
    """A URI with which SQLite reads the file without creating files beside it."""
    from urllib.parse import quote

    return f"file:{quote(path)}?mode=ro&immutable=1"


def inode_of(path: str) -> tuple[int, int] | None:
    try:
        found = status_of(path)
    except OSError:  # SQLite is about to fail for the same reason
        return None
    return None if found is None else (found.st_dev, found.st_ino)


def status_of(path: str) -> os.stat_result | None:
    """None if there is no such file. Raises OSError if that cannot be known."""
    # Never by opening the file: closing any descriptor of it would drop SQLite's locks on it in this process.
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def refuse_links(path: str) -> None:
    """Raise StoreFailed if a file that SQLite opens beside the database is a symbolic link: SQLite would follow it."""
    for ending in _COMPANIONS:
        if os.path.islink(path + ending):
            raise errors.StoreFailed(path, f"{path}{ending} is a symbolic link", hint=f"remove it: rm {path}{ending}")


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def connect(
    path: str, *, clock: Clock, patience: float = 30.0, on_wait: OnWait | None = None, made: bool = False
) -> Connection:
    """Open the file and migrate it if it is older or new. Any number of processes may do this at once.

    `made`: the caller has just created it, so it may be empty.
    """
    if path != MEMORY:
        refuse_links(path)
    if path != MEMORY and not made:
        _create(path)
        _refuse_emptied(path)
    db = Connection(path, clock=clock, patience=patience, on_wait=on_wait)
    try:
        # One state: half of it before a migration by another process and half after it would look foreign.
        with db.snapshot():
            version = read_version(db)
        if version > LATEST:
            raise errors.StoreTooNew(path, version, LATEST)
        if version == 0 and path != MEMORY and os.path.getsize(path) == 1:
            raise errors.StoreForeign(path)  # SQLite takes a file of one byte for an empty one
        if version < LATEST:
            from queuectl.store.sqlite.migrate import migrate  # here, since few databases are new

            migrate(db)
        if path != MEMORY:
            _unmark(path)
    except BaseException:
        db.close()
        raise
    return db


def _create(path: str) -> None:
    if os.path.lexists(path):  # checked first: on a read-only disk, creating an existing file fails for another reason
        return
    for new in (_mark(path), path):
        try:
            make_file(new)
        except FileExistsError:  # another process was first
            pass
        except errors.HomeUnusable as exc:
            if not isinstance(exc.__cause__, FileNotFoundError):
                raise
            # The data directory is created before its database, so this is a path from --db.
            hint = "make it first, or choose another place with --db or QUEUECTL_DB"
            raise errors.StoreFailed(path, "its directory does not exist", hint=hint) from exc


def make_file(path: str) -> None:
    # Created here and not by SQLite, so that it is private whatever the umask; -wal and -shm get the same mode.
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise
    except OSError as exc:
        raise errors.HomeUnusable(os.path.dirname(path), exc.strerror or str(exc)) from exc


def _refuse_emptied(path: str) -> None:
    """An empty file with the mark beside it is being created by another process. Without the mark, a database was truncated: SQLite
    would initialize it again, and remove its write-ahead log, which may contain all data."""
    # Checked again after the mark, which is removed when the file has been initialized.
    if _is_empty(path) and not os.path.exists(_mark(path)) and _is_empty(path):
        raise errors.StoreDamaged(path, EMPTY, hint=errors.StoreDamaged.IF_EMPTY)


def _is_empty(path: str) -> bool:
    try:
        return os.stat(path).st_size == 0
    except OSError:  # opening it reports the error
        return False


def _mark(path: str) -> str:
    return f"{path}-new"


def _unmark(path: str) -> None:
    if os.path.exists(_mark(path)):
        with suppress(OSError):  # another process was first, or the next one will do it
            os.unlink(_mark(path))


def read_version(db: Connection) -> int:
    """The schema version of our file, 0 for an empty one. Raises StoreForeign for anything else."""
    version = int(db.value("pragma user_version"))
    owner = int(db.value("pragma application_id"))
    if owner == APPLICATION_ID:
        return version
    if owner or version or db.value("select count(*) from sqlite_master"):
        raise errors.StoreForeign(db.path)
    return 0


class SqliteTransactions(Transactions):
    def __init__(self, db: Connection, clock: Clock) -> None:
        super().__init__(db, SQL, clock)
        self.db = db

    @contextmanager
    def write(
        self,
        *locks: str | tuple[str, Parameters],  # noqa: ARG002 # for PostgreSQL
        notify: bool = False,
        seconds: float | None = None,  # noqa: ARG002
        plan_freely: bool = False,  # noqa: ARG002
    ) -> Iterator[Transitions]:
        with self.db.transaction():
            transitions = Transitions()
            yield transitions
            self.db.executemany(SQL["moved"], transitions.rows())
        if notify:
            self.notify_workers()

    def notify_workers(self) -> None:
        """Wake the workers. After the commit: a worker that wakes up before would find no jobs."""
        if self.db.path == MEMORY:
            return
        with suppress(errors.Unavailable):  # a hint; the transaction is committed
            if pipes := self.db.all(SQL["worker_pipes"]):
                from queuectl.store.sqlite.wakeup import notify  # here, since there may be no worker

                notify(pipes)

    def snapshot(self) -> AbstractContextManager[None]:
        return self.db.snapshot()

    long_snapshot = snapshot

    @contextmanager
    def read_pages(
        self,
        text: str,
        values: Parameters,
        *,
        size: int,
        plan_freely: bool = True,  # noqa: ARG002
    ) -> Iterator[tuple[Transactions, Iterable[list[Row]]]]:
        with self.other_connection() as other:
            yield other, other.db.pages(text, values, size=size)

    @contextmanager
    def other_connection(self) -> Iterator[SqliteTransactions]:
        """A second connection, for reads as of one moment."""
        if self.db.path == MEMORY:  # visible to its own connection only
            with self.db.snapshot():
                yield self
        else:
            with closing(self.db.duplicate()) as db, db.snapshot():
                yield SqliteTransactions(db, self.clock)

    def write_each(self, name: str, rows: Sequence[Mapping[str, Any]], **shared: Any) -> None:
        self.db.executemany(SQL[name], [{**shared, **row} for row in rows])

    def array(self, values: Iterable[Any]) -> str:
        import json  # here, since few commands need it

        return json.dumps(list(values))

    def admit(self, keys: Keys) -> None:
        self.db.executemany(SQL["admit"], [{"queue": queue, "key": key} for queue, key in keys])
