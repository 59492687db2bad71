"""Several jobs of one command: --for-each and --array."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_enqueue import listed, refused
from tests.program import Program, WorkerProcess
from tests.wait import wait_until


def made(queuectl: Program, *args: str | Path, input: str | bytes | None = None) -> list[dict[str, Any]]:
    ids = queuectl("enqueue", *args, input=input, check=0).lines
    jobs: list[dict[str, Any]] = listed(queuectl)
    assert [job["id"] for job in jobs] == ids
    return jobs


def test_there_is_a_job_for_each_line(queuectl: Program) -> None:
    jobs = made(queuectl, "--for-each", "-", "convert {} {.}.png", "--queue", "q", input="a b.jpg\r\n\n \nc.jpg")
    assert [job["command"] for job in jobs] == ["convert 'a b.jpg' 'a b'.png", "convert 'c.jpg' 'c'.png"]
    assert {job["queue"] for job in jobs} == {"q"}


def test_the_lines_may_come_from_a_file(queuectl: Program, tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"\xef\xbb\xbfa\nb\n")
    jobs = made(queuectl, "--for-each", tmp_path / "list", "--command", "echo {n} {}")
    assert [job["command"] for job in jobs] == ["echo '1' 'a'", "echo '2' 'b'"]


def test_several_arguments_run_without_a_shell(queuectl: Program) -> None:
    jobs = made(queuectl, "--for-each", "-", "--", "convert", "{}", "out/{/}", input="a/b c\n")
    assert [job["argv"] for job in jobs] == [["convert", "a/b c", "out/b c"]]


@pytest.mark.parametrize("arguments", [["{.}", "x"], ["{}", "x"], ["{/} x"]])
def test_braces_are_never_taken_for_json(queuectl: Program, arguments: list[str]) -> None:
    (job,) = made(queuectl, "--for-each", "-", *arguments, input="a.b\n")
    assert (job["argv"] is None) == (len(arguments) == 1)


def test_names_with_line_breaks_come_with_nul(queuectl: Program) -> None:
    jobs = made(queuectl, "--for-each", "-", "-0", "cat {}", input=b"a\nb\0 \0c\0")
    assert [job["command"] for job in jobs] == ["cat 'a\nb'", "cat ' '", "cat 'c'"]


def test_columns_are_separated_by_colsep(queuectl: Program) -> None:
    jobs = made(queuectl, "--for-each", "-", "--colsep", "\\t", "cp {1} {2}", input="a b\tc\n")
    assert [job["command"] for job in jobs] == ["cp 'a b' 'c'"]


def test_a_line_without_the_column_refuses_all_and_is_named(queuectl: Program) -> None:
    reported = refused(queuectl, "--for-each", "-", "--colsep", ",", "cp {1} {2}", input="a,b\n\nc\n")
    assert reported.startswith("error: line 3: {2}: the line has one column")


def test_no_lines_are_no_jobs(queuectl: Program) -> None:
    assert queuectl("enqueue", "--for-each", "-", "cat {}", input="\n", check=0).out == ""


@pytest.mark.parametrize(
    "args",
    [
        ("--for-each", "-"),
        ("--for-each", "-", " "),
        ("--for-each", "", "cat {}"),
        ("--for-each", "-", "cat"),
        ("--for-each", "-", "cat '{}'"),
        ("--for-each", "-", "cat {1}"),
        ("--for-each", "-", "--colsep", "", "cat {1}"),
        ("--for-each", "-", "--command", "cat {}", "cat {}"),
        ("--for-each", "-", "--file", "x", "cat {}"),
        ("--for-each", "-", "--stream", "cat {}"),
        ("--for-each", "-", "--format", "lines", "cat {}"),
        ("--for-each", "-", "--array", "1-2", "cat {}"),
        ("--for-each", "-", "--id", "x", "cat {}"),
        ("-0", "cat {}"),
        ("--colsep", ",", "cat {}"),
        ("--array", "1-2%0", "true"),
        ("--array", "1-2%2", "--key", "k", "true"),
        ("--array", "1-2%2", '{"command": "true", "key": "k"}'),
        ("--array", "x", "true"),
        ("--array", "1-2", '[{"command": "true"}]'),
        ("--array", "1-2"),
        ("--array", "1-2", '{"command": "true", "env": 1}'),
        ("--array", "1-2", "--file", "-"),
    ],
)
def test_invalid_options_are_refused_and_nothing_is_created(queuectl: Program, args: tuple[str, ...]) -> None:
    refused(queuectl, *args, input="a\nb\n")


def test_each_job_of_an_array_finds_its_index(queuectl: Program) -> None:
    script = 'echo "I am $QUEUECTL_ARRAY_INDEX of $OF"'
    ids = queuectl("enqueue", "--array", "1-5:2", "--env", "OF=5", script, check=0).lines
    queuectl("worker", "start", "--drain", check=0)
    printed = [queuectl("logs", job_id, "--no-markers", check=0).out for job_id in ids]
    assert printed == ["I am 1 of 5\n", "I am 3 of 5\n", "I am 5 of 5\n"]


def test_an_array_may_be_of_json_and_of_an_argv(queuectl: Program) -> None:
    assert len(queuectl("enqueue", "--array", "1,2", '{"command": "true", "env": {"A": "b"}}', check=0).lines) == 2
    assert len(queuectl("enqueue", "--array", "1,2", "--", "echo", "x", check=0).lines) == 2
    assert {tuple(sorted(job["env"])) for job in listed(queuectl)} == {  # type: ignore[call-overload]
        ("A", "QUEUECTL_ARRAY_INDEX"),
        ("QUEUECTL_ARRAY_INDEX",),
    }


def test_a_worker_that_a_job_of_an_array_starts_does_not_hand_its_index_on(
    queuectl: Program, start_worker: Callable[..., WorkerProcess]
) -> None:
    start_worker(env={"QUEUECTL_ARRAY_INDEX": "7"})
    job_id = queuectl("enqueue", 'echo "<$QUEUECTL_ARRAY_INDEX>"', check=0).out.strip()
    queuectl("wait", job_id, check=0)
    assert queuectl("logs", job_id, "--no-markers", check=0).out == "<>\n"


def test_an_array_with_a_limit_runs_no_more_jobs_and_explains_the_others(
    queuectl: Program, start_worker: Callable[..., WorkerProcess], tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    until = f"until test -e {gate}; do sleep 0.01; done"
    ids = queuectl("enqueue", "--array", "1-5%2", until, check=0).lines
    start_worker("--count", "4")
    wait_until(lambda: states(queuectl).count("processing") == 2, what="two of them run")
    reported = f"the array has its 2 of 2 running: {ids[0]}, {ids[1]}"
    assert queuectl("show", ids[2], "--json", check=0).json["reason"] == reported
    assert {job["reason"] for job in listed(queuectl) if job["state"] == "pending"} == {reported}  # type: ignore[call-overload]
    assert f"The {reported[4:]}." in queuectl("explain", ids[2], check=0).out
    gate.touch()
    wait_until(lambda: states(queuectl) == ["completed"] * 5, what="all of them have ended")


def test_an_array_keeps_its_limit_after_an_export(queuectl: Program, tmp_path: Path) -> None:
    first, _ = queuectl("enqueue", "--array", "1,2%1", "true", check=0).lines
    assert ", 1 at a time" in queuectl("show", first, check=0).out
    queuectl("clone", first, check=0)
    queuectl("edit", first, "--priority", "3", check=0)
    queuectl("queue", "move", "default", "other", check=0)
    queuectl("export", tmp_path / "jobs.json", check=0)
    there = ("--home", tmp_path / "there")
    queuectl("import", tmp_path / "jobs.json", *there, check=0)
    found = queuectl("export", *there, check=0).json
    assert [job["places"] for job in found] == [1, 1, 1]
    assert len({job["key"] for job in found}) == 1


def test_each_array_has_its_own_limit(queuectl: Program) -> None:
    for _ in range(2):
        queuectl("enqueue", "--array", "1,2%1", "true", check=0)
    assert len({job["key"] for job in queuectl("export", check=0).json}) == 2


def states(queuectl: Program) -> list[str]:
    return [str(job["state"]) for job in listed(queuectl)]  # type: ignore[call-overload]
