from __future__ import annotations

import pytest

from tests import in_process
from tests.e2e.hosts import fragile as fragile
from tests.e2e.hosts import hosts as hosts
from tests.e2e.hosts import no_server_is_left as no_server_is_left
from tests.e2e.scene import chance as chance
from tests.e2e.scene import scene as scene


@pytest.fixture(autouse=True)
def only_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are about processes. One that exits leaves the log of SQLite to others, and a command in this process would not."""
    monkeypatch.setattr(in_process, "COMMANDS", frozenset())
