"""The SQL files of a dialect, read once and shared by all threads."""

from __future__ import annotations

import threading

import pytest

from queuectl.store import statements
from queuectl.store.postgres import connection as postgres
from queuectl.store.sqlite import connection as sqlite
from queuectl.store.statements import Statements, with_pyformat, without_schema

DIALECTS = {"sqlite": (sqlite.__file__, without_schema), "postgres": (postgres.__file__, with_pyformat)}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_thread_that_starts_while_another_one_reads_the_files_finds_every_statement(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first thread is stopped before it reads its third file, and a second one asks for all statements then."""
    file, adapt = DIALECTS[dialect]
    names = Statements(file, adapt).names()
    shared = Statements(file, adapt)
    named = statements._named
    missing: list[str] = []
    files: list[str] = []

    def ask() -> None:
        for name in names:
            try:
                shared[name]
            except KeyError:
                missing.append(name)

    def stopped(path: str) -> dict[str, str]:
        files.append(path)
        if len(files) == 3:
            second = threading.Thread(target=ask)
            second.start()
            second.join()
        return named(path)

    monkeypatch.setattr(statements, "_named", stopped)
    assert shared.names() == names
    assert missing == []
