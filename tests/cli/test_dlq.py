from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def dead(queuectl: Program, start_worker: StartWorker) -> Program:
    """A home with two dead jobs and a completed one, whose worker has gone."""
    for job_id, command in (("d1", "echo one; exit 1"), ("ok", "true"), ("d2", "exit 2")):
        queuectl("enqueue", "--id", job_id, "--max-retries", "1", command, check=0)
    assert start_worker("--drain").wait() == 0
    return queuectl


def test_the_dlq_lists_the_dead_with_the_options_of_list(dead: Program) -> None:
    assert dead("dlq", "list", "--quiet", check=0).lines == ["d2", "d1"]
    assert dead("dlq", "list", "--quiet", "--sort", "-created", "--limit", "1", check=0).lines == ["d1"]
    assert [job["exit_code"] for job in dead("dlq", "list", "--json", check=0).json] == [2, 1]
    assert dead("dlq", "list", "--quiet", "--state", "dead", check=0).lines == ["d2", "d1"]
    assert dead("dlq", "list", "--quiet", "--state", "failed", check=0).lines == []
    assert "exit code 2" in dead("dlq", "list", check=0).lines[1]


def test_the_dlq_shows_only_the_dead(dead: Program) -> None:
    assert dead("dlq", "show", "d1", "--json", check=0).json["output"] == "one\n"
    said = dead("dlq", "show", "ok", check=1).err
    assert said.startswith("error: job 'ok' is completed: cannot show it from the DLQ\n")


def test_a_dead_job_gets_another_chance(dead: Program) -> None:
    assert dead("dlq", "retry", "d1", check=0).out == "queued again d1\n"
    job = dead("show", "d1", "--json", check=0).json
    assert (job["state"], job["attempts"], job["runs"]) == ("pending", 0, 1)
    done = dead("dlq", "retry", "ok", "d1", "d2", "--json", check=1).json
    assert done["done"] == ["d2"]
    assert [refusal["code"] for refusal in done["refused"]] == ["wrong-state", "wrong-state"]


def test_all_the_dead_get_another_chance(dead: Program) -> None:
    assert dead("dlq", "retry", "--all", check=0).lines == ["queued again d1", "queued again d2"]
    assert dead("dlq", "retry", "--all", check=0).out == ""
    assert dead("dlq", "retry", "--all", "--json", check=0).json == {"done": [], "refused": []}


def test_purging_removes_jobs_and_logs_but_not_without_a_yes(dead: Program, home: Path) -> None:
    assert (home / "logs" / "d1.log").exists()
    done = dead("dlq", "purge", "d1", check=2)
    assert "--yes" in done.err
    assert dead("dlq", "purge", "d1", "ok", "--yes", check=1).out == "purged d1\n"
    assert not (home / "logs" / "d1.log").exists()
    assert dead("dlq", "purge", "--all", "--yes", check=0).out == "purged d2\n"
    assert dead("list", "--quiet", check=0).lines == ["ok"]


@pytest.mark.parametrize("answer, code, left", [("y", 0, []), ("n", 1, ["d2", "d1"])])
def test_a_person_is_asked_before_a_purge(dead: Program, home: Path, answer: str, code: int, left: list[str]) -> None:
    terminal = Terminal(home, "dlq", "purge", "--all")
    terminal.wait_for("Remove 2 dead jobs with history and logs? [y/N]")
    terminal.type(f"{answer}\n")
    assert terminal.end() == code
    assert dead("dlq", "list", "--quiet", check=0).lines == left


def test_nobody_is_asked_about_jobs_that_would_not_be_purged(dead: Program, home: Path) -> None:
    said = dead("dlq", "purge", "ok", check=1).err
    assert said.startswith("error: job 'ok' is completed: cannot purge it\n")
    terminal = Terminal(home, "dlq", "purge", "ok", "nope", "d1")
    terminal.wait_for("Remove 1 dead job with history and logs? [y/N]")
    terminal.type("y\n")
    assert terminal.end() == 1
    assert dead("list", "--quiet", check=0).lines == ["d2", "ok"]


@pytest.mark.parametrize("verb, done", [("retry", "queued again"), ("purge", "purged")])
def test_all_selectors_choose_among_the_dead(dead: Program, verb: str, done: str) -> None:
    said = dead("dlq", verb, "--state", "completed", "--yes", check=2).err
    assert said == f"error: --state: completed jobs cannot be {done}\nhint: one of: dead\n"
    assert dead("dlq", verb, "--state", "dead", "--match", "one", "--yes", check=0).out == f"{done} d1\n"


@pytest.mark.parametrize("verb", ["retry", "purge"])
def test_either_ids_or_all_of_them(queuectl: Program, verb: str) -> None:
    queuectl("dlq", verb, check=2)
    queuectl("dlq", verb, "--all", "x", check=2)
    assert not queuectl.home.exists()


def test_retry_revives_what_failed_and_refuses_the_rest(dead: Program) -> None:
    dead("enqueue", "--id", "w", "true", check=0)
    dead("cancel", "w", check=0)
    done = dead("retry", "w", "d1", "ok", check=1)
    assert done.lines == ["queued again w", "queued again d1"]
    assert done.err == "error: job 'ok' is completed: cannot retry it\n"
    assert dead("retry", "w", check=1).err.startswith("error: job 'w' is pending: cannot retry it\nhint: ")


def test_an_empty_dlq_is_not_said_to_be_a_matter_of_the_filter(home: Path) -> None:
    for words, said in (([], "no dead jobs\n"), (["--queue", "mail"], "no dead jobs like that\n")):
        terminal = Terminal(home, "dlq", "list", *words)
        assert terminal.end() == 0
        assert plain(terminal.shown) == said
