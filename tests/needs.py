"""Requirements of tests that a host may lack."""

from __future__ import annotations

import os
from typing import Final

import pytest

FULL: Final = os.environ.get("QUEUECTL_TEST_FULL") == "1"  # use the full numbers of the contract instead of quick ones


def require(name: str, ok: object, reason: str) -> None:
    """Unless `ok`, skip the test, or fail it in CI (QUEUECTL_REQUIRE_ALL=1), where all requirements are met."""
    if ok:
        return
    message = f"needs {name}: {reason}"
    if os.environ.get("QUEUECTL_REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
