from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl.store.open import open_store
from queuectl.store.types import End
from tests.factories import new_job, settlement
from tests.program import Program, WorkerProcess
from tests.store.hands import PID, Hands
from tests.terminal import Terminal, plain

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def used(queuectl: Program, start_worker: StartWorker) -> Program:
    """A data directory with one job in each final state, and a waiting one."""
    jobs = [
        {"id": "done", "command": "echo hello"},
        {"id": "bad", "command": "printf no; exit 1", "max_retries": 1},
        {"id": "off", "command": "true", "delay": "1h"},
        {"id": "later", "command": "true", "delay": "1h"},
    ]
    queuectl("enqueue", json.dumps(jobs), check=0)
    queuectl("cancel", "off", check=0)
    assert start_worker("--drain").wait() == 0
    return queuectl


def left(queuectl: Program) -> list[str]:
    return sorted(queuectl("list", "--quiet", check=0).lines)


def test_prune_by_age_removes_only_ended_jobs(used: Program, home: Path) -> None:
    assert "--yes" in used("prune", "--older-than", "0", check=2).err
    assert left(used) == ["bad", "done", "later", "off"]
    done = used("prune", "--older-than", "0s", "--yes", check=0)
    assert done.out.startswith("removed 1 completed, 1 dead and 1 cancelled jobs; 2 logs, ")
    assert left(used) == ["later"]
    assert list((home / "logs").iterdir()) == []
    assert used("prune", "--older-than", "0", check=0).out == "nothing to remove\n"


def test_prune_without_options_applies_the_settings(used: Program) -> None:
    assert used("prune", "--yes", check=0).out == "nothing to remove\n"
    used("config", "set", "retain-completed", "0s", check=0)
    assert used("prune", "--yes", "--state", "dead", check=0).out == "nothing to remove\n"
    assert used("prune", "--yes", check=0).out.startswith("removed 1 completed and 1 cancelled jobs; 1 log, ")
    used("config", "set", "retain-dead", "1ms", check=0)
    used("prune", "--yes", check=0)
    assert left(used) == ["later"]


def test_prune_reports_matching_jobs_that_are_retained_longer(used: Program, home: Path) -> None:
    terminal = Terminal(home, "prune", "--match", "echo")
    assert terminal.end() == 0
    reported = "1 matching job kept for longer: --older-than 0s removes any\nnothing to remove\n"
    assert plain(terminal.shown) == reported
    assert used("prune", "--match", "echo", check=0).err == ""


def test_only_the_given_states_are_pruned(used: Program) -> None:
    answer = used("prune", "--older-than", "0", "--state", "DEAD,cancelled", "--yes", "--json", check=0).json
    assert answer["jobs"] == {"completed": 0, "dead": 1, "cancelled": 1}
    assert left(used) == ["done", "later"]


def test_a_dry_run_prints_counts_and_removes_nothing(used: Program, home: Path) -> None:
    size = sum(path.stat().st_size for path in (home / "logs").iterdir())
    answer = used("prune", "--older-than", "0", "--dry-run", "--json", check=0).json
    assert answer == {
        "dry_run": True,
        "jobs": {"completed": 1, "dead": 1, "cancelled": 1},
        "logs": {"files": 2, "bytes": size, "elsewhere": 0},
    }
    (home / "logs" / "bad.log").unlink()
    done = used("prune", "--older-than", "0", "--dry-run", check=0)
    assert done.lines[0].startswith("would remove 1 completed, 1 dead and 1 cancelled jobs; 1 log, ")
    assert done.lines[1] == "1 log is not on this host, or already removed"
    assert left(used) == ["bad", "done", "later", "off"]


@pytest.mark.parametrize("state", ["pending", "processing", "failed", "blocked"])
def test_jobs_that_have_not_ended_are_refused(queuectl: Program, state: str) -> None:
    done = queuectl("prune", "--older-than", "0", "--yes", "--state", f"dead,{state}", check=2)
    assert done.err.startswith(f"error: --state: {state} jobs have not ended and are never pruned\n")
    assert done.out == ""
    assert not queuectl.home.exists()


@pytest.mark.parametrize(
    "arguments", [("--older-than", "soon"), ("--older-than", "-1d"), ("--state", "ded"), ("--dry-run", "x")]
)
def test_invalid_options_of_prune_change_nothing(queuectl: Program, arguments: tuple[str, ...]) -> None:
    done = queuectl("prune", "--yes", *arguments, check=2)
    assert done.out == ""
    assert len(done.err.splitlines()) == 2
    assert not queuectl.home.exists()


def test_prune_creates_no_data_directory(queuectl: Program) -> None:
    assert queuectl("prune", "--older-than", "0", "--yes", check=0).out == "nothing to remove\n"
    assert not queuectl.home.exists()


@pytest.mark.parametrize("answer, code, kept", [("y", 0, ["later"]), ("n", 1, ["bad", "done", "later", "off"])])
def test_prune_asks_on_a_terminal(used: Program, home: Path, answer: str, code: int, kept: list[str]) -> None:
    terminal = Terminal(home, "prune", "--older-than", "0")
    terminal.wait_for("Remove 1 completed, 1 dead and 1 cancelled jobs with history and logs? [y/N]")
    terminal.type(f"{answer}\n")
    assert terminal.end() == code
    assert left(used) == kept


def test_prune_shows_its_progress_on_a_terminal(home: Path) -> None:
    store = open_store(str(home))
    worker = Hands(store, home)
    store.enqueue([new_job() for _ in range(20_000)])
    ends = [End(claim, settlement(claim), PID, 0, 0, 0, 0) for claim in worker.claim(20_000)]
    store.claims.exchange(worker.name, ends=ends)
    store.claims.retire(worker.name)
    worker.wakeup.close()
    store.close()
    terminal = Terminal(home, "prune", "--older-than", "0", "--yes")
    terminal.wait_for("pruning")
    terminal.wait_for("/20,000")
    assert terminal.end() == 0
    assert "removed 20,000 completed jobs; 0 logs, 0B" in terminal.shown


def test_the_file_gets_smaller(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "--file", "-", "--quiet", input=f"true {'x' * 50_000}\n" * 200, check=0)
    queuectl("cancel", *queuectl("list", "--quiet", check=0).lines, check=0)
    assert sum(path.stat().st_size for path in home.glob("queue.db*")) > 10_000_000
    queuectl("prune", "--older-than", "0", "--yes", check=0)
    assert sum(path.stat().st_size for path in home.glob("queue.db*")) < 2_000_000


def test_jobs_run_during_a_prune(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--file", "-", "--quiet", input="true\n" * 1000, check=0)
    assert start_worker("--drain", "--count", "8").wait() == 0
    worker = start_worker("--count", "2")
    pruning = queuectl.start("prune", "--older-than", "0", "--yes")
    queuectl("run", "exit 7", "--max-retries", "1", check=7)
    assert pruning.wait(30) == 0
    assert "trouble" not in worker.output
