"""What a test needs and a machine may lack."""

from __future__ import annotations

import os
from typing import Final

import pytest

FULL: Final = os.environ.get("QUEUECTL_TEST_FULL") == "1"  # the numbers of the contract, not those of a quick look


def require(name: str, ok: object, reason: str) -> None:
    """Skip the test at home and fail it in CI (QUEUECTL_REQUIRE_ALL=1) unless `ok`: CI has everything."""
    if ok:
        return
    message = f"needs {name}: {reason}"
    if os.environ.get("QUEUECTL_REQUIRE_ALL") == "1":
        pytest.fail(message, pytrace=False)
    pytest.skip(message)
