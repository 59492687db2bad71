"""The SQLite files of other tools, as records for import. The files are opened read-only.

Three layouts are known, each by the columns of its table `jobs`. docs/guides/export-and-import.md describes the columns.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, Self
from urllib.parse import quote

from queuectl.errors import FileUnreadable, UnknownLayout
from queuectl.text import truncate

MAGIC: Final = b"SQLite format 3\0"
PAGE: Final = 200
HEADER: Final = 100
_OURS: Final = 0x51756374  # see store/sqlite/connection.py


class Layout(NamedTuple):
    marks: frozenset[str]  # columns that no other layout has
    columns: Mapping[str, str | None]  # column -> field; None: known, and ignored
    is_first_run_free: bool = False  # a job is dead when its attempts exceed max_retries
    is_base_a_setting: bool = False  # the base of the backoff is a setting, not a field of jobs


_ALL: Final = ("id", "command", "state", "attempts", "max_retries", "priority", "created_at", "updated_at")
_SAME: Final = {name: name for name in _ALL}
_TIMES: Final = {"started_at": "started_at", "finished_at": "finished_at"}
# fmt: off
_LAYOUTS: Final = (
    # Here the order of enqueue decides, in place of waiting_time, which counts later enqueues.
    Layout(
        frozenset({"waiting_time", "next_retry_at"}),
        {**_SAME, "timeout": "timeout", "backoff_base": "backoff_base", "waiting_time": None, "next_retry_at": "run_at",
         "error_message": "error", "output": None, "locked_by": "worker", "locked_at": None},
    ),
    Layout(
        frozenset({"base_backoff", "available_at"}),
        {**_SAME, **_TIMES, "base_backoff": "backoff_base", "timeout_seconds": "timeout", "available_at": "run_at", "run_at": None,
         "stdout_log": None},
    ),
    Layout(
        frozenset({"next_run_at", "locked_by"}),
        {**_SAME, **_TIMES, "next_run_at": "run_at", "locked_by": "worker", "locked_at": None, "duration_ms": "duration_ms"},
        is_first_run_free=True,
        is_base_a_setting=True,
    ),
)
# fmt: on


class Foreign:
    """An open file of another tool. `ignored`: the columns that are not known."""

    def __init__(self, path: str, header: bytes) -> None:
        """`header`: the first bytes of the file."""
        self._path = path
        self._db = _open(path, is_wal=header[18:20] == b"\x02\x02")
        try:
            with self._translate_errors():
                self._layout, self.ignored = self._recognize()
        except BaseException:
            self._db.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def jobs(self) -> Iterator[dict[str, object]]:
        """The fields of each job, by our names."""
        wanted = {column: field for column, field in self._layout.columns.items() if field and column in self._columns}
        names = ", ".join(f'"{name}"' for name in wanted)
        always = self._common_fields()
        with self._translate_errors():
            found = self._db.execute(f"select {names} from jobs order by rowid")
            while page := found.fetchmany(PAGE):
                for row in page:
                    fields: dict[str, object] = dict(zip(wanted.values(), row, strict=True))
                    if isinstance(took := fields.get("duration_ms"), float):
                        fields["duration_ms"] = round(took)
                    yield {**always, **fields}

    def _common_fields(self) -> dict[str, object]:
        known: dict[str, object] = {"first_attempt_is_free": True} if self._layout.is_first_run_free else {}
        base = self.settings().get("backoff_base") if self._layout.is_base_a_setting else None
        with suppress(TypeError, ValueError):  # a value that is no number is rejected with the settings
            known["backoff_base"] = float(base)  # type: ignore[arg-type]
        return known

    def settings(self) -> dict[str, object]:
        with self._translate_errors():
            if not {"key", "value"} <= set(_columns(self._db, "config")):
                return {}
            return {str(key): value for key, value in self._db.execute("select key, value from config order by key")}

    def _recognize(self) -> tuple[Layout, list[str]]:
        # Queried and not read from the header: the last writes may still be in the write-ahead log.
        if self._db.execute("pragma application_id").fetchone()[0] == _OURS:
            hint = f"export it and import that, or copy it: queuectl --db {self._path} export FILE"
            raise UnknownLayout(self._path, "it is a queuectl database", hint=hint)
        self._columns = _columns(self._db, "jobs")
        if not self._columns:
            raise UnknownLayout(self._path, "it has no table jobs")
        for layout in _LAYOUTS:
            if layout.marks.union(_ALL) <= set(self._columns):
                return layout, [name for name in self._columns if name not in layout.columns]
        found = truncate(", ".join(self._columns))
        raise UnknownLayout(self._path, f"the layout of its table jobs is unknown (columns {found})")

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as exc:
            raise FileUnreadable(self._path, str(exc)) from exc


def _open(path: str, *, is_wal: bool) -> sqlite3.Connection:
    # A database with a write-ahead log that no process has open has no files beside it. To read it, SQLite would have to create
    # files there, and leave them. So it is opened as immutable.
    real = os.path.realpath(path)  # behind a link: SQLite looks beside the file itself
    is_idle = is_wal and not os.path.exists(f"{real}-wal")
    mode = "mode=ro&immutable=1" if is_idle else "mode=ro"
    try:
        return sqlite3.connect(f"file:{quote(real)}?{mode}", uri=True, timeout=30, isolation_level=None)
    except sqlite3.Error as exc:
        raise FileUnreadable(path, str(exc)) from exc


def _columns(db: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in db.execute(f"pragma table_info({table})")]
