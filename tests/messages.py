"""Requirements on every error message and hint."""

from __future__ import annotations

from queuectl.errors import QueuectlError


def assert_readable(error: QueuectlError) -> None:
    for line in (error.message, error.hint):
        assert line
        assert line.isprintable()
        assert len(line) < 600
