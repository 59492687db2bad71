from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain

StartWorker = Callable[..., WorkerProcess]


def enqueue(queuectl: Program, job_id: str, *arguments: str, command: str = "true") -> None:
    assert queuectl("enqueue", "--id", job_id, *arguments, command, check=0).out == f"{job_id}\n"


def states(queuectl: Program) -> dict[str, str]:
    return {job["id"]: job["state"] for job in queuectl("list", "--json", check=0).json}


# ── dependencies ──────────────────────────────────────────────────────────────────────────────────────────────


def test_one_after_the_other_by_id_by_prefix_and_by_last(queuectl: Program, start_worker: StartWorker) -> None:
    enqueue(queuectl, "fetch")
    enqueue(queuectl, "build", "--after", "fet")
    enqueue(queuectl, "test", "--after", "fetch,last")
    assert queuectl("show", "test", "--json", check=0).json["depends_on"] == ["fetch", "build"]
    assert start_worker("--drain", "--count", "4").wait() == 0
    jobs = {job["id"]: job for job in queuectl("list", "--json", check=0).json}
    assert {job["state"] for job in jobs.values()} == {"completed"}
    assert jobs["fetch"]["finished_at"] <= jobs["build"]["started_at"] <= jobs["build"]["finished_at"]
    assert jobs["build"]["finished_at"] <= jobs["test"]["started_at"]


def test_an_end_of_any_kind_and_a_failure_can_be_waited_for(queuectl: Program, start_worker: StartWorker) -> None:
    enqueue(queuectl, "work", "--max-retries", "1", command="exit 3")
    enqueue(queuectl, "next", "--after", "work")
    enqueue(queuectl, "cleanup", "--after-any", "work,next")
    enqueue(queuectl, "alarm", "--after-fail", "work")
    assert start_worker("--drain").wait() == 0
    assert states(queuectl) == {"work": "dead", "next": "cancelled", "cleanup": "completed", "alarm": "completed"}
    assert queuectl("wait", "next").code == 1
    assert queuectl("show", "next", check=0).lines[0] == "next  cancelled: work, for which it waited, is dead"
    queuectl("dlq", "retry", "work", check=0)
    assert states(queuectl)["next"] == "blocked"


def test_a_graph_in_one_file_is_added_in_any_order_and_runs_in_its_own(
    queuectl: Program, start_worker: StartWorker, tmp_path: Path
) -> None:
    log = tmp_path / "order"
    jobs = [
        {"id": "c", "command": f"echo c >> '{log}'", "depends_on": ["b"]},
        {"id": "b", "command": f"echo b >> '{log}'", "after": [{"id": "a", "when": "ended"}]},
        {"id": "a", "command": f"echo a >> '{log}'; exit 1", "max_retries": 1},
    ]
    queuectl("enqueue", "--file", "-", input="\n".join(map(json.dumps, jobs)), check=0)
    assert start_worker("--drain", "--count", "3").wait() == 0
    assert log.read_text().split() == ["a", "b", "c"]


def test_run_follows_a_job_that_waits_for_another(queuectl: Program, start_worker: StartWorker) -> None:
    enqueue(queuectl, "first", "--delay", "100ms")
    start_worker()
    assert queuectl("run", "--after", "first", "echo hi", check=0).out == "hi\n"


def test_an_option_overrides_dependencies_of_the_json(queuectl: Program) -> None:
    enqueue(queuectl, "a")
    queuectl("enqueue", "--after-any", "a", '{"id": "b", "command": "true", "after": ["nope"]}', check=0)
    assert queuectl("show", "b", "--json", check=0).json["depends_on"] == [
        {"id": "a", "when": "ended", "else": "cancel"}
    ]


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["--after", "nope", "true"], 1, "no job 'nope'"),
        (["--after", "", "true"], 2, "--after: an id is missing"),
        (["--after-any", "a,", "true"], 2, "--after-any: an id is missing"),
        (["--after", "a", "--after-fail", "a", "true"], 2, "--after: waits for 'a' in two ways"),
        (["--after", "off", "true"], 1, "'off' is cancelled: a job cannot wait for it to be completed"),
        (['{"id": "x", "command": "true", "after": ["x"]}'], 2, "depends_on: a job cannot wait for itself: x → x"),
        (['{"command": "true", "depends_on": ["nope"]}'], 1, "no job 'nope'"),
        (['[{"command": "true"}, {"command": "true", "after": ["nope"]}]'], 1, "item 2: no job 'nope'"),
        (
            ['[{"id": "x", "command": "true", "after": ["y"]}, {"id": "y", "command": "true", "after": ["x"]}]'],
            2,
            "depends_on: these jobs wait for each other: y → x → y",
        ),
    ],
)
def test_impossible_dependencies_are_refused_and_nothing_is_written(
    queuectl: Program, arguments: list[str], code: int, message: str
) -> None:
    enqueue(queuectl, "a")
    enqueue(queuectl, "off")
    queuectl("cancel", "off", check=0)
    refused = queuectl("enqueue", *arguments, check=code)
    assert refused.out == ""
    assert refused.err.splitlines()[0] == f"error: {message}"
    assert states(queuectl) == {"a": "pending", "off": "cancelled"}


def test_the_hint_for_an_ended_parent_works(queuectl: Program) -> None:
    enqueue(queuectl, "done")
    queuectl("worker", "start", "--drain", check=0)
    enqueue(queuectl, "off")
    queuectl("cancel", "off", check=0)
    assert "retry" not in queuectl("enqueue", "--after-fail", "done", "true", check=1).err
    assert "queuectl retry off first" in queuectl("enqueue", "--after", "off", "true", check=1).err
    queuectl("enqueue", "--after-any", "done,off", "true", check=0)


def test_an_unknown_parent_creates_no_data_directory(tmp_path: Path) -> None:
    elsewhere = Program(tmp_path / "elsewhere")
    elsewhere("enqueue", "--after", "nope", "true", check=1)
    elsewhere("enqueue", '{"id": "x", "command": "true", "after": ["x"]}', check=2)
    assert not elsewhere.home.exists()


def test_a_streamed_line_with_an_unknown_parent_refuses_only_itself(queuectl: Program) -> None:
    lines = [
        '{"id": "a", "command": "true"}',
        '{"command": "true", "after": ["nope"]}',
        '{"id": "b", "command": "true", "after": ["a"]}',
    ]
    done = queuectl("enqueue", "--stream", input="\n".join(lines), check=2)
    assert done.out.split() == ["a", "b"]
    assert done.err.splitlines()[0] == "error: line 2: no job 'nope'"


# ── graph, show, explain ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_list_show_and_explain_name_the_parents_of_a_job(queuectl: Program) -> None:
    enqueue(queuectl, "a")
    enqueue(queuectl, "b", "--after", "a")
    enqueue(queuectl, "c", "--after-any", "a,b")
    assert "waits for a (pending) and b (blocked)" in queuectl("list", check=0).out
    assert "a (ended), b (ended)" in queuectl("show", "c", check=0).out
    assert "  Waiting for a to end (pending) and b to end (blocked)." in queuectl("explain", "c", check=0).lines
    (blocked, _) = queuectl("explain", "b", "--json", check=0).json["reasons"]
    assert blocked["parents"] == [{"id": "a", "state": "pending", "when": "completed", "else": "cancel"}]


def test_a_graph_is_drawn_with_parents_above_and_children_below(queuectl: Program) -> None:
    enqueue(queuectl, "fetch", command="wget -q x")
    enqueue(queuectl, "build", "--after", "fetch", command="make")
    enqueue(queuectl, "lint", command="make lint")
    enqueue(queuectl, "test", "--after", "build,lint", command="make test")
    enqueue(queuectl, "deploy", "--after", "test", command="deploy")
    enqueue(queuectl, "alarm", "--after-fail", "test,deploy", command="mail")
    assert queuectl("graph", "test", check=0).lines == [
        "   ┌─ fetch  pending  wget -q x",
        "┌─ build  blocked  make",
        "├─ lint  pending  make lint",
        "test  blocked  make test",
        "├─ deploy  blocked  deploy",
        "│  └─ alarm  blocked  (if it fails)  mail",
        "└─ alarm ^  blocked  (if it fails)  mail",
    ]
    assert queuectl("graph", "tes", "--quiet", check=0).out == "test\n"
    assert queuectl("graph", "nope", check=1).out == ""


def test_of_many_siblings_the_first_are_drawn_and_the_others_counted(queuectl: Program) -> None:
    jobs = [{"id": "p", "command": "true"}, *({"id": f"k{n}", "command": "true", "after": ["p"]} for n in range(25))]
    queuectl("enqueue", json.dumps(jobs), check=0)
    lines = queuectl("graph", "p", check=0).lines
    assert (len(lines), lines[-1]) == (12, "└─ … 15 more")
    reported = queuectl("graph", "p", "--json", check=0).json
    assert (len(reported["nodes"]), len(reported["edges"]), reported["more"]) == (26, 25, False)
    assert reported["edges"][0] == {
        "parent": "p",
        "child": "k0",
        "when": "completed",
        "else": "cancel",
        "state": "waiting",
    }


def test_a_graph_on_a_terminal_has_the_colors_of_the_states(queuectl: Program) -> None:
    enqueue(queuectl, "a")
    enqueue(queuectl, "b", "--after", "a")
    terminal = Terminal(queuectl.home, "graph", "a")
    assert terminal.end() == 0
    assert "\x1b[33mpending" in terminal.shown
    assert "└─ b  blocked  true" in plain(terminal.shown)


# ── with other features ──────────────────────────────────────────────────────────────────────────────────────


def test_run_now_refuses_a_blocked_job_with_a_hint(queuectl: Program) -> None:
    enqueue(queuectl, "build")
    enqueue(queuectl, "test", "--after", "build")
    refused = queuectl("run-now", "test", check=1)
    assert refused.err.splitlines()[0] == "error: job 'test' is blocked: cannot run it"
    assert "it waits for other jobs: queuectl graph shows them" in refused.err
    assert states(queuectl)["test"] == "blocked"


def test_a_blocked_job_is_held_edited_moved_and_cloned_and_stays_blocked(queuectl: Program) -> None:
    enqueue(queuectl, "build")
    enqueue(queuectl, "test", "--after", "build")
    queuectl("hold", "test", check=0)
    queuectl("edit", "test", "--command", "make test", "--priority", "3", check=0)
    queuectl("queue", "move", "default", "low", "test", check=0)
    clone = queuectl("clone", "test", check=0).out.strip()
    job, copy = (queuectl("show", name, "--json", check=0).json for name in ("test", clone))
    assert (job["state"], job["held"], job["command"], job["queue"]) == ("blocked", True, "make test", "low")
    assert (copy["state"], copy["depends_on"], copy["command"], copy["queue"]) == (
        "blocked",
        ["build"],
        "make test",
        "low",
    )


@pytest.mark.parametrize("option", ["--after", "--after-any", "--after-fail"])
def test_a_schedule_refuses_parents(queuectl: Program, option: str) -> None:
    enqueue(queuectl, "build")
    refused = queuectl("cron", "add", "nightly", "@daily", option, "build", "true", check=2)
    assert refused.err.splitlines()[0] == f"error: {option}: not for a schedule"
    refused = queuectl("cron", "add", "nightly", "@daily", '{"command": "true", "depends_on": ["build"]}', check=2)
    assert "not for a schedule" in refused.err
    assert queuectl("cron", "list", "--json", check=0).json == []


def test_each_of_many_comes_after_the_same_job(queuectl: Program, start_worker: StartWorker, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    enqueue(queuectl, "first", command=f"echo ready > '{ready}'")
    many = ("--after", "first", "--batch", "b")
    queuectl("enqueue", "--array", "1-3", *many, f"cat '{ready}'", check=0)
    queuectl("enqueue", "--for-each", "-", *many, "cat {}", input=f"{ready}\n", check=0)
    assert list(states(queuectl).values()).count("blocked") == 4
    assert start_worker("--drain", "--count", "4").wait() == 0
    assert set(states(queuectl).values()) == {"completed"}
    assert queuectl("wait", "--batch", "b").code == 0


def test_a_batch_with_dependencies_ends_with_its_cancelled_jobs(queuectl: Program, start_worker: StartWorker) -> None:
    graph = [
        {"id": "a", "command": "exit 3", "max_retries": 1},
        {"id": "b", "command": "true", "after": ["a"]},
        {"id": "c", "command": "true", "after": ["b"]},
    ]
    last = 'echo "$QUEUECTL_BATCH_DEAD dead, $QUEUECTL_BATCH_CANCELLED cancelled"'
    arguments = ("enqueue", "--file", "-", "--batch", "g", "--on-complete", last)
    queuectl(*arguments, input="\n".join(map(json.dumps, graph)), check=0)
    assert start_worker("--drain").wait() == 0
    assert queuectl("wait", "--batch", "g").code == 3
    assert queuectl("logs", "last", "--no-markers", check=0).out == "1 dead, 2 cancelled\n"
    queuectl("retry", "--batch", "g", "--yes", check=0)
    assert [states(queuectl)[name] for name in "abc"] == ["pending", "blocked", "blocked"]
    done = queuectl("cancel", "--batch", "g", "--yes", "--json", check=0).json
    assert (sorted(done["done"]), done["refused"]) == (["a", "b", "c"], [])
    assert [states(queuectl)[name] for name in "abc"] == ["cancelled"] * 3


def test_removing_jobs_by_a_filter_updates_their_children(queuectl: Program, start_worker: StartWorker) -> None:
    enqueue(queuectl, "bad", "--tag", "x", "--max-retries", "1", command="exit 3")
    enqueue(queuectl, "good", "--tag", "x")
    assert start_worker("--drain").wait() == 0
    enqueue(queuectl, "alarm", "--after-fail", "bad", "--after-any", "good")
    enqueue(queuectl, "waits", "--after", "alarm")
    queuectl("dlq", "purge", "--tag", "x", "--yes", check=0)
    queuectl("prune", "--tag", "x", "--older-than", "0", "--yes", check=0)
    assert states(queuectl) == {"alarm": "pending", "waits": "blocked"}
    shown = queuectl("show", "alarm", "--json", check=0).json
    assert [parent["id"] for parent in shown["depends_on"]] == ["good", "bad"]


def test_explain_mentions_a_parent_in_a_paused_queue(queuectl: Program) -> None:
    enqueue(queuectl, "build", "-q", "slow")
    enqueue(queuectl, "test", "--after", "build")
    queuectl("queue", "pause", "slow", check=0)
    assert "Waiting for build to complete; it is pending." in queuectl("explain", "test", check=0).out
    assert "paused" in queuectl("explain", "build", check=0).out


def test_a_key_that_a_blocked_job_has_is_taken(queuectl: Program) -> None:
    enqueue(queuectl, "build")
    enqueue(queuectl, "test", "--after", "build", "--unique", "t")
    again = queuectl("enqueue", "--unique", "t", "--json", "true", check=0).json
    assert (again["id"], again["duplicate"]) == ("test", True)
    enqueue(queuectl, "other", "--unique", "t", "--if-exists", "replace")
    assert states(queuectl) == {"build": "pending", "test": "cancelled", "other": "pending"}
