"""Filters: the same options, confirmation and results in every command that has them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain

StartWorker = Callable[..., WorkerProcess]

JOBS = [
    {"id": "m1", "command": "echo one", "queue": "mail", "tags": ["x"], "delay": "1h"},
    {"id": "m2", "argv": ["echo", "two", "words"], "queue": "mail", "tags": ["x", "y"], "delay": "1h"},
    {"id": "v1", "command": "echo 100%", "queue": "video", "delay": "1h"},
]


@pytest.fixture
def full(queuectl: Program) -> Program:
    """A data directory with three waiting jobs."""
    queuectl("enqueue", json.dumps(JOBS), check=0)
    return queuectl


def states(queuectl: Program) -> dict[str, str]:
    return {job["id"]: job["state"] for job in queuectl("list", "--json", check=0).json}


@pytest.mark.parametrize(
    "arguments, found",
    [
        (["--match", "two words"], ["m2"]),
        (["--match", "%"], ["v1"]),
        (["--match", "ECHO"], ["v1", "m2", "m1"]),
        (["--where", "queue:mail -tag:y"], ["m1"]),
        (["--where", "id:m ECHO two", "--state", "queued"], ["m2"]),
        (["--error", "exit"], []),
        (["--worker", "w1"], []),
        (["--since", "1h", "--queue", "mail"], ["m2", "m1"]),
        (["--since", "2100-01-01"], []),
        (["--tag", "x", "--match", "one", "--state", "PENDING", "--since", "5m"], ["m1"]),
    ],
)
def test_list_and_export_filter_alike(full: Program, arguments: list[str], found: list[str]) -> None:
    assert full("list", "--quiet", *arguments, check=0).lines == found
    assert [job["id"] for job in full("export", *arguments, check=0).json] in (found, found[::-1])


def test_words_with_a_qualifier_are_a_query_unless_they_are_ids(full: Program) -> None:
    assert full("list", "--quiet", "--", "queue:mail", "-tag:y", "ECHO", check=0).lines == ["m1"]
    assert full("list", "tag:x", "--where", "two", "--quiet", check=0).lines == ["m2"]
    assert full("list", "queu:mail", check=1).err.startswith("error: no job 'queu:mail'")
    full("enqueue", '{"id": "queue:mail", "command": "true", "delay": "1h"}', check=0)
    assert full("list", "queue:mail", "--quiet", check=0).lines == ["queue:mail"]
    assert full("dlq", "list", "queue:mail", "--quiet", check=0).lines == []
    assert full("cancel", "queue:mail", check=0).lines == ["cancelled queue:mail"]


def test_the_number_of_other_matches_is_counted_up_to_a_thousand(queuectl: Program) -> None:
    jobs = "\n".join(["echo IMG"] * 1060)
    queuectl("enqueue", "--file", "-", "--format", "lines", input=jobs, check=0)
    assert queuectl("list", "--match", "img", check=0).lines[-1] == "… and 1,000+ more"
    assert queuectl("list", "--match", "img", "--limit", "60", check=0).lines[-1] == "… and 1,000 more"
    assert queuectl("list", check=0).lines[-1] == "… and 1,010 more"


@pytest.mark.parametrize("command", [["cancel"], ["retry"], ["dlq", "retry"], ["dlq", "purge"], ["logs"], ["wait"]])
def test_ids_and_filters_exclude_each_other(queuectl: Program, command: list[str]) -> None:
    printed = queuectl(*command, "a", "--queue", "mail", check=2).err
    assert printed.startswith(
        "error: ids and filters cannot be combined\nhint: name jobs by id, or choose them by --state, "
    )
    assert queuectl(*command, check=2).err.startswith("error: no jobs are selected\nhint: name jobs by id, ")
    assert not queuectl.home.exists()


@pytest.mark.parametrize(
    "arguments, printed",
    [
        (["--since", "soon"], "--since: expected a time or a duration, got 'soon'"),
        (["--since", "2026-99-01"], "--since: there is no such time"),
        (["--match", ""], "--match: expected some text, got ''"),
        (["--state", "ded"], "unknown state 'ded'"),
        (["--error", ""], "--error: expected some text, got ''"),
        (["--where", "queu:mail"], "--where: unknown qualifier 'queu'"),
        (["--where", ""], "--where: expected a query, got ''"),
    ],
)
def test_an_invalid_filter_is_named_before_anything_is_created(
    queuectl: Program, arguments: list[str], printed: str
) -> None:
    for command in (["cancel", "--yes"], ["list"], ["export"], ["prune", "--yes"], ["wait"], ["logs"]):
        done = queuectl(*command, *arguments, check=2)
        assert done.err.startswith(f"error: {printed}")
        assert done.out == ""
        assert len(done.err.splitlines()) == 2
    assert not queuectl.home.exists()


def test_a_bulk_change_without_a_terminal_needs_yes_and_counts_the_jobs(full: Program) -> None:
    done = full("cancel", "--queue", "mail", check=2)
    assert done.err.startswith("error: Cancel 2 jobs (2 pending)? Confirmation needs a terminal\nhint: add --yes")
    assert set(states(full).values()) == {"pending"}
    assert full("cancel", "--queue", "mail", "--yes", check=0).lines == ["cancelled m1", "cancelled m2"]
    assert states(full) == {"m1": "cancelled", "m2": "cancelled", "v1": "pending"}


@pytest.mark.parametrize("answer, code, left", [("y", 0, "cancelled"), ("n", 1, "pending")])
def test_a_bulk_change_asks_on_a_terminal(full: Program, home: Path, answer: str, code: int, left: str) -> None:
    terminal = Terminal(home, "cancel", "--tag", "x")
    terminal.wait_for("Cancel 2 jobs (2 pending)? [y/N]")
    terminal.type(f"{answer}\n")
    assert terminal.end() == code
    assert states(full)["m1"] == left


def test_a_bulk_change_skips_jobs_in_other_states(full: Program) -> None:
    full("cancel", "m1", check=0)
    assert full("cancel", "--queue", "mail", "--yes", "--json", check=0).json == {"done": ["m2"], "refused": []}
    assert full("retry", "--since", "1h", "--yes", check=0).lines == ["requeued m1", "requeued m2"]


@pytest.mark.parametrize(
    "command, state", [("cancel", "completed"), ("cancel", "dead"), ("retry", "pending"), ("retry", "completed")]
)
def test_a_filter_by_an_impossible_state_is_refused(queuectl: Program, command: str, state: str) -> None:
    printed = queuectl(command, "--state", state, "--yes", check=2).err
    assert printed.startswith(f"error: --state: {state} jobs cannot be ")
    assert not queuectl.home.exists()


def test_no_match_is_reported_and_no_error(full: Program, home: Path) -> None:
    assert full("cancel", "--queue", "none", check=0).out == ""
    assert full("cancel", "--queue", "none", "--json", check=0).json == {"done": [], "refused": []}
    assert full("wait", "--queue", "none", "--json", check=0).json == []
    assert full("logs", "--queue", "none", check=0).out == ""
    terminal = Terminal(home, "cancel", "--queue", "none")
    assert terminal.end() == 0
    assert plain(terminal.shown) == "no matching jobs to cancel\n"


def test_filters_create_no_data_directory(queuectl: Program) -> None:
    for command in (["cancel"], ["retry"], ["dlq", "retry"], ["dlq", "purge"], ["wait"], ["logs"], ["prune"]):
        queuectl(*command, "--match", "x", check=0)
    assert not queuectl.home.exists()


def test_many_matches_are_a_number_on_a_terminal_and_a_list_in_a_pipe(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "--file", "-", "--delay", "1h", input="true\n" * 1200, check=0)
    assert len(queuectl("cancel", "--match", "true", "--yes", check=0).lines) == 1200
    terminal = Terminal(home, "retry", "--state", "cancelled", "--yes")
    assert terminal.end() == 0
    assert "requeued 1,200 jobs" in plain(terminal.shown)
    assert len(queuectl("cancel", "--match", "true", "--yes", "--quiet", check=0).lines) == 1200


def test_logs_and_wait_take_filters(queuectl: Program, start_worker: StartWorker) -> None:
    jobs = [
        {"id": "a", "command": "echo one", "queue": "q"},
        {"id": "b", "command": "echo two; exit 3", "queue": "q", "max_retries": 1},
        {"id": "c", "command": "echo three"},
    ]
    queuectl("enqueue", json.dumps(jobs), check=0)
    with queuectl.start("wait", "--queue", "q", stderr=subprocess.PIPE) as waiting:
        assert waiting.stderr is not None
        # The filter has been applied: a worker could end all jobs before that.
        assert b"no live worker" in waiting.stderr.readline()
        start_worker("--drain")
        assert waiting.wait(30) == 3
    queuectl("wait", "--match", "echo", check=0)  # no job is left to wait for
    queuectl("wait", "--match", "echo", "--state", "dead,completed", check=3)
    assert queuectl("logs", "--queue", "q", "--no-markers", check=0).lines == ["a | one", "b | two"]
    assert queuectl("logs", "--match", "three", "--no-markers", check=0).lines == ["c | three"]


def test_dead_jobs_are_filtered_by_everything_but_the_state(queuectl: Program, start_worker: StartWorker) -> None:
    for job_id in ("a1", "a2", "b"):
        queuectl("enqueue", "--id", job_id, "--max-retries", "1", f"exit 1 # {job_id}", check=0)
    queuectl("enqueue", "--id", "a3", "true # a3", check=0)
    assert start_worker("--drain").wait() == 0
    assert queuectl("dlq", "list", "--match", "# a", "--quiet", check=0).lines == ["a2", "a1"]
    printed = queuectl("dlq", "purge", "--match", "# a1", check=2).err
    assert printed.startswith("error: Remove 1 dead job with history and logs? Confirmation needs a terminal\n")
    assert queuectl("dlq", "purge", "--match", "# a1", "--yes", check=0).out == "purged a1\n"
    assert "Retry 1 dead job?" in queuectl("dlq", "retry", "--match", "# a", check=2).err
    assert queuectl("dlq", "retry", "--match", "# a", "--yes", check=0).out == "requeued a2\n"
    queuectl("dlq", "retry", "--all", "--match", "x", check=2)
    assert queuectl("dlq", "retry", "--all", check=0).out == "requeued b\n"


def test_prune_takes_ids_and_filters(queuectl: Program, start_worker: StartWorker) -> None:
    jobs = [{"id": f"{queue}{n}", "command": "echo x", "queue": queue} for queue in ("p", "q") for n in range(3)]
    queuectl("enqueue", json.dumps([*jobs, {"id": "w", "command": "true", "delay": "1h"}]), check=0)
    assert start_worker("--drain").wait() == 0
    assert queuectl("prune", "--queue", "p", "--yes", check=0).out == "nothing to remove\n"  # not that old
    printed = queuectl("prune", "--queue", "p", "--older-than", "0", check=2).err
    assert printed.startswith("error: Remove 3 completed jobs with history and logs? ")
    foreseen = queuectl("prune", "--queue", "p", "--older-than", "0", "--dry-run", "--json", check=0).json
    assert (foreseen["jobs"]["completed"], foreseen["logs"]["files"]) == (3, 3)
    done = queuectl("prune", "--queue", "p", "--older-than", "0", "--yes", "--json", check=0).json
    assert (done["jobs"]["completed"], done["logs"]["files"]) == (3, 3)
    assert queuectl("list", "--quiet", check=0).lines == ["w", "q2", "q1", "q0"]
    assert "Remove 1 completed job " in queuectl("prune", "q0", "w", check=2).err
    done = queuectl("prune", "q0", "w", "nope", "--yes", "--json", check=1).json
    assert done["done"] == ["q0"]
    assert [(each["id"], each["code"]) for each in done["refused"]] == [("w", "wrong-state"), ("nope", "job-not-found")]
    assert not (queuectl.home / "logs" / "q0.log").exists()
    assert queuectl("list", "--quiet", check=0).lines == ["w", "q2", "q1"]
