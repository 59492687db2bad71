from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def dead(queuectl: Program, start_worker: StartWorker) -> Program:
    """A data directory with two dead jobs and a completed one, without a worker."""
    for job_id, command in (("d1", "echo one; exit 1"), ("ok", "true"), ("d2", "exit 2")):
        queuectl("enqueue", "--id", job_id, "--max-retries", "1", command, check=0)
    assert start_worker("--drain").wait() == 0
    return queuectl


def test_dlq_list_has_the_options_of_list(dead: Program) -> None:
    assert dead("dlq", "list", "--quiet", check=0).lines == ["d2", "d1"]
    assert dead("dlq", "list", "--quiet", "--sort", "-created", "--limit", "1", check=0).lines == ["d1"]
    assert [job["exit_code"] for job in dead("dlq", "list", "--json", check=0).json] == [2, 1]
    assert dead("dlq", "list", "--quiet", "--state", "dead", check=0).lines == ["d2", "d1"]
    assert dead("dlq", "list", "--quiet", "--state", "failed", check=0).lines == []
    assert "exit code 2" in dead("dlq", "list", check=0).lines[1]


def test_dlq_show_refuses_jobs_that_are_not_dead(dead: Program) -> None:
    assert dead("dlq", "show", "d1", "--json", check=0).json["output"] == "one\n"
    printed = dead("dlq", "show", "ok", check=1).err
    assert printed.startswith("error: job 'ok' is completed: cannot show it from the DLQ\n")


def test_a_dead_job_is_retried(dead: Program) -> None:
    assert dead("dlq", "retry", "d1", check=0).out == "requeued d1\n"
    job = dead("show", "d1", "--json", check=0).json
    assert (job["state"], job["attempts"], job["runs"]) == ("pending", 0, 1)
    done = dead("dlq", "retry", "ok", "d1", "d2", "--json", check=1).json
    assert done["done"] == ["d2"]
    assert [refusal["code"] for refusal in done["refused"]] == ["wrong-state", "wrong-state"]


def test_all_dead_jobs_are_retried(dead: Program) -> None:
    assert dead("dlq", "retry", "--all", check=0).lines == ["requeued d1", "requeued d2"]
    assert dead("dlq", "retry", "--all", check=0).out == ""
    assert dead("dlq", "retry", "--all", "--json", check=0).json == {"done": [], "refused": []}


def test_purge_removes_jobs_and_logs_after_a_confirmation(dead: Program, home: Path) -> None:
    assert (home / "logs" / "d1.log").exists()
    done = dead("dlq", "purge", "d1", check=2)
    assert "--yes" in done.err
    assert dead("dlq", "purge", "d1", "ok", "--yes", check=1).out == "purged d1\n"
    assert not (home / "logs" / "d1.log").exists()
    assert dead("dlq", "purge", "--all", "--yes", check=0).out == "purged d2\n"
    assert dead("list", "--quiet", check=0).lines == ["ok"]


@pytest.mark.parametrize("answer, code, left", [("y", 0, []), ("n", 1, ["d2", "d1"])])
def test_purge_asks_on_a_terminal(dead: Program, home: Path, answer: str, code: int, left: list[str]) -> None:
    terminal = Terminal(home, "dlq", "purge", "--all")
    terminal.wait_for("Remove 2 dead jobs with history and logs? [y/N]")
    terminal.type(f"{answer}\n")
    assert terminal.end() == code
    assert dead("dlq", "list", "--quiet", check=0).lines == left


def test_purge_does_not_ask_about_jobs_that_are_not_dead(dead: Program, home: Path) -> None:
    printed = dead("dlq", "purge", "ok", check=1).err
    assert printed.startswith("error: job 'ok' is completed: cannot purge it\n")
    terminal = Terminal(home, "dlq", "purge", "ok", "nope", "d1")
    terminal.wait_for("Remove 1 dead job with history and logs? [y/N]")
    terminal.type("y\n")
    assert terminal.end() == 1
    assert dead("list", "--quiet", check=0).lines == ["d2", "ok"]


@pytest.mark.parametrize("verb, done", [("retry", "requeued"), ("purge", "purged")])
def test_all_filters_apply_to_dead_jobs(dead: Program, verb: str, done: str) -> None:
    printed = dead("dlq", verb, "--state", "completed", "--yes", check=2).err
    assert printed == f"error: --state: completed jobs cannot be {done}\nhint: one of: dead\n"
    assert dead("dlq", verb, "--state", "dead", "--match", "one", "--yes", check=0).out == f"{done} d1\n"


@pytest.mark.parametrize("verb", ["retry", "purge"])
def test_ids_and_all_exclude_each_other(queuectl: Program, verb: str) -> None:
    queuectl("dlq", verb, check=2)
    queuectl("dlq", verb, "--all", "x", check=2)
    assert not queuectl.home.exists()


def test_retry_requeues_failed_jobs_and_refuses_others(dead: Program) -> None:
    dead("enqueue", "--id", "w", "true", check=0)
    dead("cancel", "w", check=0)
    done = dead("retry", "w", "d1", "ok", check=1)
    assert done.lines == ["requeued w", "requeued d1"]
    assert done.err == "error: job 'ok' is completed: cannot retry it\n"
    assert dead("retry", "w", check=1).err.startswith("error: job 'w' is pending: cannot retry it\nhint: ")


def test_an_empty_dlq_is_not_blamed_on_the_filter(home: Path) -> None:
    for arguments, printed in (([], "No dead jobs.\n"), (["--queue", "mail"], "No dead jobs.\n")):
        terminal = Terminal(home, "dlq", "list", *arguments)
        assert terminal.end() == 0
        assert plain(terminal.shown) == printed
