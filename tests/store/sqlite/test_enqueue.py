"""What it takes to add very many jobs."""

from __future__ import annotations

import os
from pathlib import Path

from queuectl.store.sqlite.store import SqliteStore
from tests.factories import new_job

JOBS = 20_000


def test_adding_many_jobs_writes_them_to_the_store_and_nothing_else(store: SqliteStore, path: Path) -> None:
    before = _written()
    store.enqueue([new_job() for _ in range(JOBS)])
    # Once to the log of the store, once from there into its file.
    assert _written() - before < 3 * os.stat(path).st_size


def _written() -> int:
    """How many bytes this process has given to the system to write, to whatever file."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
    return int(counts["wchar"])
