"""What every refusal has to be, whatever was refused."""

from __future__ import annotations

from queuectl.errors import QueuectlError


def assert_well_said(error: QueuectlError) -> None:
    for line in (error.message, error.hint):
        assert line
        assert line.isprintable()
        assert len(line) < 600
