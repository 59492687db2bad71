"""Logs as a supervisor writes them, for tests that read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from queuectl.jobs.model import Run
from queuectl.jobs.outcome import Ending

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class WrittenLog:
    """A log file and the history that belongs to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs: list[Run] = []

    def start(self) -> None:
        number = len(self.runs) + 1
        self.append(b"--- START 2026-01-02T03:04:05.000Z run=%d worker=w1 ---\n" % number)
        self._from = self.path.stat().st_size
        self.runs.append(Run(number, "w1", "h", 1, WHEN, None, None, None, None, None, Ending.RUNNING, None, None))

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def write_end_line(self) -> int:
        """The END marker alone: the store does not know of the end yet."""
        size = self.path.stat().st_size
        ended = self.path.read_bytes().endswith(b"\n")
        self.append((b"" if ended else b"\n") + b"--- END 2026-01-02T03:04:06.000Z rc=0 duration=1s ---\n")
        return size

    def record_end(self, log_to: int) -> None:
        self.runs[-1] = replace(self.runs[-1], outcome=Ending.COMPLETED, log_from=self._from, log_to=log_to)

    def run(self, output: bytes) -> None:
        self.start()
        self.append(output)
        self.record_end(self.write_end_line())

    def lose(self) -> None:
        """The host crashed: another worker wrote the END marker, and it is not recorded where the output is."""
        self.write_end_line()
        self.runs[-1] = replace(self.runs[-1], outcome=Ending.LOST)
