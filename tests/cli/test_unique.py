"""Unique jobs on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain
from tests.wait import wait_until

REPORT = ("enqueue", "--unique", "report")


def states(queuectl: Program) -> dict[str, str]:
    return {job["id"]: job["state"] for job in queuectl("list", "--json", check=0).json[::-1]}


def test_a_second_enqueue_prints_the_existing_id(queuectl: Program) -> None:
    first = queuectl(*REPORT, "--id", "a", "true", check=0)
    second = queuectl(*REPORT, "--id", "b", "true", check=0)
    assert (first.out, second.out, second.err) == ("a\n", "a\n", "")
    assert states(queuectl) == {"a": "pending"}


def test_json_marks_a_duplicate_and_has_the_existing_job(queuectl: Program) -> None:
    first = queuectl("--json", *REPORT, "echo old", check=0).json
    second = queuectl("--json", *REPORT, "echo new", check=0).json
    assert (first["duplicate"], first["unique_key"]) == (False, "report")
    assert second == {**first, "duplicate": True}


def test_if_exists_error_names_the_existing_job(queuectl: Program) -> None:
    queuectl(*REPORT, "--id", "a", "true", check=0)
    refused = queuectl(*REPORT, "--if-exists", "error", "true", check=1)
    assert refused.out == ""
    assert refused.err.splitlines()[0] == "error: the key 'report' is taken by the job 'a', which is pending"
    reported = json.loads(queuectl("--json", *REPORT, "--if-exists", "error", "true", check=1).err)
    assert reported["error"]["code"] == "key-taken"


def test_replace_cancels_the_waiting_job_with_a_reason(queuectl: Program) -> None:
    queuectl(*REPORT, "--id", "a", "true", check=0)
    assert queuectl(*REPORT, "--if-exists", "replace", "--id", "b", "true", check=0).out == "b\n"
    assert states(queuectl) == {"a": "cancelled", "b": "pending"}
    assert queuectl("show", "a", "--json", check=0).json["error"] == "cancelled: replaced by b"


def test_a_running_job_is_not_replaced(queuectl: Program, start_worker: Callable[..., WorkerProcess]) -> None:
    start_worker()
    queuectl(*REPORT, "--id", "a", "sleep 60", check=0)
    wait_until(lambda: states(queuectl) == {"a": "processing"}, what="it runs")
    refused = queuectl(*REPORT, "--if-exists", "replace", "true", check=1)
    assert "which is processing" in refused.err
    assert "queuectl cancel a" in refused.err
    queuectl("cancel", "a", check=0)


def test_unique_for_includes_ended_jobs(queuectl: Program, start_worker: Callable[..., WorkerProcess]) -> None:
    start_worker()
    queuectl("wait", queuectl(*REPORT, "--id", "a", "true", check=0).out.strip(), check=0)
    assert queuectl(*REPORT, "--unique-for", "1h", "true", check=0).out == "a\n"
    assert queuectl(*REPORT, "--id", "b", "true", check=0).out == "b\n"


def test_duplicates_in_one_batch_are_added_once(queuectl: Program) -> None:
    lines = [{"id": name, "command": "true", "unique_key": key} for name, key in (("a", "x"), ("b", "y"), ("c", "x"))]
    text = "\n".join(map(json.dumps, lines))
    assert queuectl("enqueue", "--file", "-", input=text, check=0).lines == ["a", "b", "a"]
    again = queuectl("--json", "enqueue", "--file", "-", input=text, check=0).json
    assert [(job["id"], job["duplicate"]) for job in again] == [("a", True), ("b", True), ("a", True)]
    refused = queuectl("enqueue", "--file", "-", "--if-exists", "error", input=f"\n{text}", check=1)
    assert refused.out == ""
    assert refused.err.splitlines()[0] == "error: line 2: the key 'x' is taken by the job 'a', which is pending"


def test_a_stream_reports_the_line_whose_key_is_taken_and_goes_on(queuectl: Program) -> None:
    lines = [
        {"id": "a", "command": "true", "unique_key": "x"},
        {"id": "b", "command": "true", "unique_key": "x", "if_exists": "error"},
        {"id": "c", "command": "true", "unique_key": "x"},
        {"id": "d", "command": "true"},
    ]
    done = queuectl("enqueue", "--stream", input="\n".join(map(json.dumps, lines)), check=2)
    assert done.lines == ["a", "a", "d"]
    assert done.err.splitlines()[0] == "error: line 2: the key 'x' is taken by the job 'a', which is pending"


def test_run_follows_the_existing_job(queuectl: Program, start_worker: Callable[..., WorkerProcess]) -> None:
    queuectl(*REPORT, "--id", "a", "echo I am the first", check=0)
    start_worker()
    assert queuectl("run", "--unique", "report", "--unique-for", "1h", "echo never", check=0).out == "I am the first\n"


def test_retry_of_a_job_whose_key_is_taken_is_refused_by_name(queuectl: Program) -> None:
    queuectl(*REPORT, "--id", "a", "true", check=0)
    queuectl("cancel", "a", check=0)
    queuectl(*REPORT, "--id", "b", "true", check=0)
    refused = queuectl("retry", "a", "--json", check=1).json["refused"]
    assert [(one["id"], one["code"]) for one in refused] == [("a", "key-taken")]
    assert states(queuectl) == {"a": "cancelled", "b": "pending"}


def test_retry_of_all_dead_jobs_takes_one_of_each_key(queuectl: Program) -> None:
    for name in ("a", "b"):
        queuectl("enqueue", "--unique", "k", "--id", name, "--max-attempts", "1", "false", check=0)
        queuectl("worker", "start", "--drain", check=0)
    answer = queuectl("dlq", "retry", "--all", "--json", check=1).json
    assert (answer["done"], [one["id"] for one in answer["refused"]]) == (["a"], ["b"])


def test_a_duplicate_is_reported_on_a_terminal(queuectl: Program) -> None:
    queuectl(*REPORT, "true", check=0)
    terminal = Terminal(queuectl.home, *REPORT, "true")
    assert terminal.end() == 0
    assert "already exists, pending: not queued again" in plain(terminal.shown)


@pytest.mark.parametrize("out, back", [("export", ("import",)), ("backup", ("restore", "--yes"))])
def test_unique_keys_are_exported_and_backed_up(
    queuectl: Program, out: str, back: tuple[str, ...], tmp_path: Path
) -> None:
    queuectl(*REPORT, "--id", "a", "true", check=0)
    queuectl(out, tmp_path / "out", check=0)
    queuectl("reset", "--yes", check=0)
    assert states(queuectl) == {}
    queuectl(*back, tmp_path / "out", check=0)
    assert queuectl(*REPORT, "--id", "b", "true", check=0).out == "a\n"
