"""The SQL files of a dialect: named statements, the schema and its migrations.

`sql/*.sql` has the statements of a dialect, and common.sql those that both share. A statement begins at a line `-- name: claim_jobs` and
ends before the next one. Its comments are not sent to the database.

`schema.sql` is version 1 of the schema; `migrations/0002_….sql` and so on follow, each in a transaction of its own. A migration runs while
workers of the version before are active. They notice within a heartbeat and claim no more jobs, but still start, settle, send heartbeats
and deregister with their own statements: a migration must keep those valid.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final, NamedTuple

MARKER: Final = "-- name: "
COMMON: Final = os.path.join(os.path.dirname(__file__), "common.sql")
_PARAMETER: Final = re.compile(r"(?<![:\w]):(\w+)")

# The newest version of the schema, so that opening a database that is up to date need not list a directory. A test compares it with
# the files.
LATEST: Final = 1

_MIGRATION_FILE: Final = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


class _Sources(NamedTuple):
    """The statements as they are in the files, by name."""

    own: dict[str, str]
    common: dict[str, str]


class Statements(dict[str, str]):
    """The statements of one dialect by name. All files are read at the first use, so a worker that runs for weeks needs no more
    descriptors for them and never mixes two versions. `adapt` translates a statement of common.sql for the dialect.

    Threads share it: the files are published in one assignment, when all of them are read.
    """

    def __init__(self, package_file: str, adapt: Callable[[str], str]) -> None:
        super().__init__()
        # Not importlib.resources: importing it takes longer than everything else that `enqueue` does.
        self._folder = os.path.join(os.path.dirname(package_file), "sql")
        self._adapt = adapt
        self._sources: _Sources | None = None

    def __missing__(self, name: str) -> str:
        own, common = self._sources or self._read()
        text = self._adapt(common[name]) if name in common else own[name]
        lines = map(str.strip, text.splitlines())
        bare = self[name] = "\n".join(line for line in lines if line and not line.startswith("--"))
        return bare

    def names(self) -> set[str]:
        own, common = self._sources or self._read()
        return own.keys() | common.keys()

    def _read(self) -> _Sources:
        own: dict[str, str] = {}
        for file in os.listdir(self._folder):
            own.update(_named(os.path.join(self._folder, file)))
        self._sources = _Sources(own, _named(COMMON))
        return self._sources


def without_schema(text: str) -> str:
    """For SQLite. The name of a queue in quotes stays: 'queuectl.webhooks'."""
    return text.replace(" queuectl.", " ")


def with_pyformat(text: str) -> str:
    """For psycopg: `:name` becomes `%(name)s`."""
    return _PARAMETER.sub(r"%(\1)s", text)


def _named(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        parts = file.read().split(MARKER)
    return {name: text for name, _, text in (part.partition("\n") for part in parts[1:])}


class Migration(NamedTuple):
    version: int
    path: str

    def read(self) -> str:
        with open(self.path, encoding="utf-8") as file:
            return file.read()


def migrations_of(package_file: str) -> list[Migration]:
    """The schema and all migrations of the dialect whose package this file belongs to, oldest first."""
    package = os.path.dirname(package_file)
    folder = os.path.join(package, "migrations")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    named = [(_MIGRATION_FILE.fullmatch(name), os.path.join(folder, name)) for name in names]
    later = sorted(Migration(int(match[1]), path) for match, path in named if match)
    return [Migration(1, os.path.join(package, "schema.sql")), *later]
