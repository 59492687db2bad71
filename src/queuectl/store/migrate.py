"""Numbered migrations: `migrations/0001_initial.sql` and so on, each applied once, in order, in a transaction of its own.

A migration finds workers of the version before at work. They notice within a heartbeat and begin nothing more, but still
start, settle, beat and retire by their own statements: it must leave those valid. What they need goes one version later.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

# The newest migration of this version of queuectl. Written down, so that opening a store that is up to date need not
# list a directory; a test compares it with the files.
LATEST: Final = 15

_NAME = re.compile(r"(\d{4})_[a-z0-9_]+\.sql")


class Migration(NamedTuple):
    version: int
    path: str

    def read(self) -> str:
        with open(self.path, encoding="utf-8") as file:
            return file.read()


def migrations_of(package_file: str) -> list[Migration]:
    """All migrations of the dialect whose package this file belongs to, oldest first."""
    folder = os.path.join(os.path.dirname(package_file), "migrations")
    named = [(_NAME.fullmatch(name), os.path.join(folder, name)) for name in os.listdir(folder)]
    return sorted(Migration(int(match[1]), path) for match, path in named if match)
