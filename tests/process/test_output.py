"""Output on its way from the pipe of a run to its log."""

from __future__ import annotations

import errno
import os
import selectors
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from queuectl.logs.writer import LogWriter
from queuectl.process import output as module
from queuectl.process.output import MAX_READS_AT_END, READ_SIZE, OutputCollector
from tests.process.supervised import printed

HEAD = b"--- START ---\n"
END = b"--- END rc=0 ---\n"
LIMIT = 16 * 1024**2


@pytest.fixture
def collector() -> Iterator[OutputCollector]:
    with selectors.DefaultSelector() as selector:
        made = OutputCollector(selector, LIMIT)
        yield made
        for output in list(made._open):
            made.close(output)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "job.log"


def test_a_log_is_created_with_the_first_byte_and_has_both_markers(collector: OutputCollector, log: Path) -> None:
    output, out = collector.open("a", str(log), lambda: HEAD, is_first=True)
    assert not collector.collect(output)
    assert not log.exists()
    os.write(out, b"said\n")
    assert collector.collect(output)
    assert output.writer.log_from is not None
    log_to = collector.finish(output, lambda: END)
    assert log_to == output.writer.log_from + len(b"said\n")
    assert log.read_bytes().endswith(HEAD + b"said\n" + END)
    assert collector, "a process that was left behind may print"
    os.close(out)
    collector.collect(output)
    assert not collector


def test_a_run_that_prints_nothing_creates_no_log(collector: OutputCollector, log: Path) -> None:
    output, out = collector.open("a", str(log), lambda: HEAD, is_first=True)
    os.close(out)
    assert collector.finish(output, lambda: END) is None
    assert not log.exists()


def test_a_child_that_prints_without_end_does_not_hold_up_the_end_of_its_run(
    collector: OutputCollector, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, out = collector.open("a", str(log), lambda: HEAD, is_first=True)
    monkeypatch.setattr(module.os, "read", lambda fd, size: b"x" * size)
    collector.finish(output, lambda: END)
    monkeypatch.undo()
    assert output.writer.written == MAX_READS_AT_END * READ_SIZE
    os.close(out)


def test_output_that_cannot_be_written_is_dropped_and_counted_in_the_log(
    collector: OutputCollector, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, out = collector.open("a", str(log), lambda: HEAD, is_first=True)
    os.write(out, b"before\n")
    collector.collect(output)

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(LogWriter, "append", full)
    for _ in range(3):
        os.write(out, b"lost\n")
        assert collector.collect(output), "the job never waits for its log"
    monkeypatch.undo()
    os.write(out, b"dropped too: the disk is tried once a second\n")
    collector.collect(output)
    collector.finish(output, lambda: END)
    assert printed(log) == b"before\n"
    *_, lost, end = log.read_bytes().splitlines(keepends=True)
    assert end == END
    assert b"60" in lost
    assert b"no space left" in lost.lower()
    os.close(out)


def test_secrets_are_redacted_across_reads_and_the_rest_is_written_at_the_end(
    collector: OutputCollector, log: Path
) -> None:
    output, out = collector.open("a", str(log), lambda: HEAD, [("db", b"hunter2")], is_first=True)
    for part in (b"pw=hun", b"ter2 hun"):
        os.write(out, part)
        collector.collect(output)
    collector.finish(output, lambda: END)
    assert printed(log).rstrip(b"\n") == b"pw=*** hun"
    os.close(out)


def test_a_lower_limit_applies_to_runs_that_have_started(collector: OutputCollector, log: Path) -> None:
    output, out = collector.open("a", str(log), lambda: HEAD, is_first=True)
    collector.set_limit(64 * 1024)
    for _ in range(10):
        os.write(out, b"0123456789abcde\n" * 4096)
        collector.collect(output)
    collector.finish(output, lambda: END)
    assert sum(path.stat().st_size for path in log.parent.iterdir()) <= 68 * 1024
    os.close(out)
