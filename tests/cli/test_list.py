from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.program import COMMAND, Program, environment
from tests.terminal import Terminal, plain

JOBS = [
    {"id": "a", "command": "echo a", "priority": 2, "tags": ["x"]},
    {"id": "b", "command": "echo b", "priority": 3, "queue": "mail", "tags": ["x", "y"]},
    {"id": "c", "command": "echo c", "priority": 1, "delay": 3600},
]


@pytest.fixture
def filled(queuectl: Program) -> Program:
    queuectl("enqueue", "--file", "-", input=json.dumps(JOBS), check=0)
    queuectl("cancel", "a", check=0)
    return queuectl


def ids(queuectl: Program, *args: str) -> list[str]:
    return queuectl("list", "--quiet", *args, check=0).lines


def test_the_newest_job_is_on_top(filled: Program) -> None:
    assert ids(filled) == ["c", "b", "a"]


@pytest.mark.parametrize(
    "key, order",
    [
        ("created", "cba"),
        ("-created", "abc"),
        ("priority", "bac"),
        ("-priority", "cab"),
        ("queue", "cab"),
        ("state", "acb"),
        ("-run_at", "cba"),
    ],
)
def test_a_list_is_sorted_by_a_key_and_a_minus_reverses_it(filled: Program, key: str, order: str) -> None:
    assert ids(filled, "--sort", key) == list(order)


@pytest.mark.parametrize(
    "args, found",
    [
        (["--state", "CANCELLED"], "a"),
        (["--state", "pending,cancelled"], "cba"),
        (["-s", "pending", "-s", "cancelled"], "cba"),
        (["--queue", "mail"], "b"),
        (["-q", "mail", "-q", "default"], "cba"),
        (["--tag", "x"], "ba"),
        (["--tag", "x", "--tag", "y"], "b"),
        (["--tag", "x", "--state", "pending"], "b"),
        (["--limit", "2"], "cb"),
        (["--limit", "2", "--offset", "1"], "ba"),
        (["--limit", "0"], ""),
        (["--offset", "9"], ""),
        (["--state", "dead"], ""),
    ],
)
def test_a_list_holds_what_matches_all_conditions(filled: Program, args: list[str], found: str) -> None:
    assert ids(filled, *args) == list(found)
    assert [job["id"] for job in filled("list", "--json", *args, check=0).json] == list(found)


@pytest.mark.parametrize(
    "args, printed",
    [
        (["--state", "deed"], "did you mean 'dead'?"),
        (["--sort", "prio"], "did you mean 'priority'?"),
        (["--limit", "-1"], "--limit: expected an integer of at least 0, got -1"),
        (["--offset", "-1"], "--offset: expected an integer of at least 0, got -1"),
        (["--limit", "many"], "--limit"),
    ],
)
def test_invalid_arguments_are_refused(queuectl: Program, args: list[str], printed: str) -> None:
    done = queuectl("list", *args, check=2)
    assert done.out == ""
    assert printed in done.err
    assert not queuectl.home.exists()


def test_listing_jobs_creates_no_data_directory(queuectl: Program) -> None:
    assert queuectl("list", "--json", check=0).json == []
    assert ids(queuectl) == []
    assert not queuectl.home.exists()


def test_jobs_are_listed_by_id(filled: Program) -> None:
    assert ids(filled, "a", "c", "a") == ["c", "a"]
    assert ids(filled, "a", "b", "--sort", "priority", "--limit", "1") == ["b"]
    done = filled("list", "a", "missing", "nothing", check=1)
    assert [line.split()[0] for line in done.lines] == ["ID", "a"]
    assert done.err == "error: no job 'missing'\nerror: no job 'nothing'\n"
    done = filled("list", "a", "missing", "--json", check=1)
    assert done.out == ""
    assert json.loads(done.err)["error"]["code"] == "job-not-found"
    assert filled("list", "a", "--queue", "mail", check=2).err.startswith("error: ids and filters cannot be combined\n")


def test_the_table_shows_fifty_and_says_how_many_more(queuectl: Program) -> None:
    queuectl("enqueue", "--file", "-", input="true\n" * 1234, check=0)
    lines = queuectl("list", check=0).lines
    assert len(lines) == 1 + 50 + 1
    assert lines[-1] == "… and 1,184 more"
    assert queuectl("list", "--limit", "1230", "--offset", "2", check=0).lines[-1] == "… and 2 more"
    assert "more" not in queuectl("list", "--limit", "2000", check=0).lines[-1]
    assert len(queuectl("list", "--json", check=0).json) == 1234
    assert len(ids(queuectl)) == 1234


def test_json_holds_every_field_of_a_job_and_hides_its_environment(queuectl: Program) -> None:
    queuectl("enqueue", "--env", "TOKEN=secret-value", "true", check=0)
    done = queuectl("list", "--json", check=0)
    assert "secret-value" not in done.out
    (job,) = done.json
    assert job["env"] == {"TOKEN": "***"}
    fields = (
        "id command argv state queue priority effective_priority attempts runs crashes max_retries backoff_base timeout "
        "run_at created_at updated_at started_at finished_at duration_ms wait_ms exit_code signal error last_output "
        "worker cwd env tags depends_on unique_key cron batch key array_index held reason log limits secrets"
    )
    assert list(job) == fields.split()


def test_a_command_cannot_break_the_table(queuectl: Program) -> None:
    queuectl("enqueue", "--command", "echo a\necho \x1b[31mred\ttab", check=0)
    (_, line) = queuectl("list", check=0).lines
    assert "echo a\\necho \\x1b[31mred\\ttab" in line


def test_an_argv_is_shown_quoted_for_a_shell(queuectl: Program) -> None:
    queuectl("enqueue", "--", "printf", "%s", "a b", check=0)
    assert "printf %s 'a b'" in queuectl("list", check=0).out


def test_empty_columns_are_omitted(filled: Program, home: Path) -> None:
    header = filled("list", check=0).lines[0].split()
    assert header == ["ID", "STATE", "QUEUE", "PRIO", "ENQUEUED", "COMMAND", "TAGS", "NOTE"]
    header = filled("list", "--queue", "default", "--state", "cancelled", check=0).lines[0].split()
    assert header == ["ID", "STATE", "PRIO", "ENQUEUED", "COMMAND", "TAGS"]


@pytest.mark.parametrize("columns", [45, 60, 80, 100, 150])
def test_a_terminal_gets_colors_and_lines_that_fit(filled: Program, home: Path, columns: int) -> None:
    filled("enqueue", "echo " + "long " * 50, check=0)
    terminal = Terminal(home, "list", columns=columns)
    assert terminal.end() == 0
    assert "\x1b[33mpending" in terminal.shown
    assert max(len(line) for line in plain(terminal.shown).splitlines()) <= columns


def test_an_empty_list_prints_a_message_on_a_terminal(queuectl: Program, home: Path) -> None:
    terminal = Terminal(home, "list")
    assert terminal.end() == 0
    assert plain(terminal.shown).strip() == "No jobs."


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("list",), "No jobs."),
        (("list", "--state", "dead"), "No jobs."),
        (("dlq", "list"), "No dead jobs."),
        (("worker", "list"), "No workers."),
        (("cron", "list"), "No schedules."),
        (("queue", "list"), "No queues."),
        (("batch", "list"), "No batches."),
        (("alert", "list"), "No alerts."),
        (("secret", "list"), "No secrets."),
        (("audit",), "No changes."),
    ],
)
def test_an_empty_result_prints_a_message_in_a_pipe(
    queuectl: Program, arguments: tuple[str, ...], message: str
) -> None:
    assert queuectl(*arguments, check=0) == (0, message + "\n", "")
    assert queuectl(*arguments, "--json", check=0) == (0, "[]\n", "")
    assert queuectl(*arguments, "--quiet", check=0) == (0, "", "")


def test_a_closed_pipe_prints_no_traceback(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "--file", "-", input="true\n" * 20_000, check=0)
    listing = subprocess.Popen(
        [*COMMAND, "list", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(home)
    )
    assert listing.stdout is not None
    assert listing.stderr is not None
    listing.stdout.readline()
    listing.stdout.close()
    assert listing.stderr.read() == b""
    listing.stderr.close()
    listing.wait()
