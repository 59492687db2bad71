"""Batches on the command line."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl.cli.app import App
from queuectl.cli.commands.wait import MIN_BAR_WIDTH, bar_line
from queuectl.jobs.states import State
from queuectl.operations.wait import Progress
from queuectl.store.types import Batch
from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]


def test_a_batch_shows_its_progress(queuectl: Program) -> None:
    queuectl("enqueue", "--array", "1-4", "true", "--batch", "b", check=0)
    queuectl("enqueue", "exit 3", "--max-attempts", "1", "--batch", "b", check=0)
    (line,) = queuectl("batch", "show", "b", check=0).lines
    assert line.endswith("0 %  0 of 5, 0 done, 0 failed, 0 running")
    queuectl("worker", "start", "--drain", check=0)
    line, hint = queuectl("batch", "show", "b", check=0).lines
    assert "100 %  5 of 5, 4 done, 1 failed, 0 running" in line
    assert hint == "failed jobs: queuectl list --batch b --state dead,cancelled"
    shown = queuectl("batch", "show", "b", "--json", check=0).json
    assert (shown["jobs"], shown["done"], shown["failed"], shown["states"]["dead"]) == (5, 4, 1, 1)
    (listed,) = queuectl("batch", "list", "--json", check=0).json
    assert (listed["name"], listed["done"]) == ("b", 4)
    assert queuectl("batch", "list", "--quiet", check=0).out == "b\n"
    assert queuectl("batch", "list", check=0).lines[1].split()[:4] == ["b", "5", "4", "1"]


def test_waiting_for_a_batch_exits_with_the_code_of_the_first_failed_job(queuectl: Program) -> None:
    queuectl("enqueue", "true", "--batch", "good", check=0)
    for code in (3, 4):
        queuectl("enqueue", f"exit {code}", "--max-attempts", "1", "--batch", "bad", check=0)
    queuectl("worker", "start", "--drain", check=0)
    assert queuectl("wait", "--batch", "good", check=0).out == ""
    assert queuectl("wait", "--batch", "bad", "--json", check=3).json["failed"] == 2


def test_waiting_draws_a_bar_on_a_terminal(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--array", "1-3", "sleep 0.2", "--batch", "b", check=0)
    start_worker()
    terminal = Terminal(queuectl.home, "wait", "--batch", "b", columns=120)
    assert terminal.end() == 0
    assert "3 of 3, 3 done, 0 failed, 0 running" in plain(terminal.shown)


@pytest.mark.parametrize("width", [30, 60, 79, 200])
def test_the_bar_of_a_batch_fits_its_terminal(width: int) -> None:
    states = dict.fromkeys(State, 0) | {State.COMPLETED: 400_000, State.DEAD: 1_000, State.PROCESSING: 8}
    batch = Batch("b", 1_000_000, 0, None, None, None, states | {State.PENDING: 598_992}, recent=60_000)
    app = App(stdin=io.StringIO(), stdout=io.StringIO(), stderr=io.StringIO())
    line = bar_line(app, Progress(batch, now_ms=100_000), width=width)
    assert len(line) <= max(width, len("░" * MIN_BAR_WIDTH + "  40 %  401,000 of 1,000,000"))
    assert "401,000 of 1,000,000" in line
    assert ("1,000/s" in line or "1e+03/s" in line) is (width == 200)


def test_waiting_draws_no_second_line_on_a_narrow_terminal(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--array", "1-3", "sleep 0.2", "--batch", "b", check=0)
    start_worker()
    terminal = Terminal(queuectl.home, "wait", "--batch", "b", columns=50)
    assert terminal.end() == 0
    drawn = plain(terminal.shown).strip().split("\r")
    assert len(drawn) > 1
    assert max(map(len, drawn)) < 50


def test_waiting_for_a_batch_ends_at_the_timeout(queuectl: Program) -> None:
    queuectl("enqueue", "true", "--batch", "b", check=0)
    assert "1 jobs of b" in queuectl("wait", "--batch", "b", "--timeout", "50ms", check=124).err


def test_on_complete_runs_once_with_the_result_of_the_batch_in_its_environment(queuectl: Program) -> None:
    printed = 'echo "$QUEUECTL_BATCH: $QUEUECTL_BATCH_COMPLETED of $QUEUECTL_BATCH_JOBS"'
    queuectl("enqueue", "--array", "1-3", "true", "--batch", "b", "--on-complete", printed, check=0)
    queuectl("worker", "start", "--drain", "--count", "2", check=0)
    job_id = queuectl("batch", "show", "b", "--json", check=0).json["on_complete_job"]
    assert queuectl("logs", job_id, "--no-markers", check=0).out == "b: 3 of 3\n"
    assert len(queuectl("list", "--json", check=0).json) == 4
    refused = queuectl("enqueue", "true", "--batch", "b", check=1)
    assert refused.err.startswith("error: the batch 'b' is complete")


def test_on_complete_runs_after_the_worker_was_killed(
    queuectl: Program, start_worker: StartWorker, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    wait = f"while [ ! -e '{gate}' ]; do sleep 0.05; done"
    queuectl("enqueue", wait, "--batch", "b", "--on-complete", "echo all done", check=0)
    worker = start_worker()
    wait_until(
        lambda: queuectl("batch", "show", "b", "--json", check=0).json["running"] == 1, what="the job of the batch runs"
    )
    os.kill(worker.process.pid, signal.SIGKILL)
    gate.touch()
    queuectl("worker", "start", "--drain", check=0)
    jobs = queuectl("list", "--json", check=0).json
    assert [job["command"] for job in jobs].count("echo all done") == 1
    assert {job["state"] for job in jobs} == {"completed"}


def test_a_batch_is_exported_and_copied_with_its_jobs(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "--array", "1-2", "true", "--batch", "b", "--on-complete", "echo x", check=0)
    queuectl("export", tmp_path / "jobs.json", check=0)
    queuectl("backup", tmp_path / "backup.db", check=0)
    queuectl("reset", "--yes", check=0)
    queuectl("import", tmp_path / "jobs.json", check=0)
    shown = queuectl("batch", "show", "b", "--json", check=0).json
    assert (shown["jobs"], shown["waiting"], shown["on_complete"]) == (2, 2, None)
    queuectl("restore", tmp_path / "backup.db", "--yes", check=0)
    assert queuectl("batch", "show", "b", "--json", check=0).json["on_complete"] == "echo x"


@pytest.mark.parametrize(
    "arguments",
    [
        ("enqueue", "--batch", "a b", "true"),
        ("enqueue", "--on-complete", "true", "true"),
        ("enqueue", "--batch", "b", "--on-complete", " ", "true"),
        ("enqueue", "--batch", "b", "--on-complete", "true", "--stream"),
        ("wait",),
        ("wait", "--batch", "b", "x"),
        ("wait", "--batch", "b", "--any"),
    ],
)
def test_invalid_options_are_refused(queuectl: Program, arguments: tuple[str, ...]) -> None:
    refused = queuectl(*arguments, check=2)
    assert refused.out == ""
    assert not queuectl.home.exists()


@pytest.mark.parametrize("arguments", [("batch", "show", "b"), ("wait", "--batch", "b")])
def test_an_unknown_batch_is_reported(queuectl: Program, arguments: tuple[str, ...]) -> None:
    assert queuectl(*arguments, check=1).err.startswith("error: no batch 'b'")
