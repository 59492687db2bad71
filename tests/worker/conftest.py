from __future__ import annotations

import pytest

from tests.e2e.scene import scene as scene
from tests.program import Program


@pytest.fixture
def fresh(queuectl: Program) -> None:
    """Workers as interpreters of their own, for tests of how they start, of what they inherit, and of signals."""
    queuectl.forks = False
