from __future__ import annotations

import pytest

from tests.e2e.scene import scene as scene
from tests.program import Program


@pytest.fixture
def fresh(queuectl: Program) -> None:
    """Workers as interpreters of their own, for whoever looks at how they begin, or at what they inherit, hear and hold."""
    queuectl.forks = False
