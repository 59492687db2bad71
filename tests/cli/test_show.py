from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import Program, WorkerProcess
from tests.terminal import Terminal, plain

StartWorker = Callable[..., WorkerProcess]


def facts(text: str) -> dict[str, str]:
    """The fields of the page of a job."""
    pairs = (line.strip().split("  ", 1) for line in text.splitlines() if line.startswith("  "))
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def test_a_waiting_job_shows_the_reason(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "later", "--delay", "1h", "--timeout", "90", "--tag", "x", "echo hi", check=0)
    done = queuectl("show", "later", check=0)
    assert done.lines[0].startswith("later  pending: due in 1h")
    seen = facts(done.out)
    assert seen["Command"] == "echo hi"
    assert seen["Timeout"] == "1m30s"
    assert seen["Tags"] == "x"
    assert seen["Attempts"] == "0 of 3 failed; retry after 2 ** attempts seconds"
    assert "(in 59m)" in seen["Due"]
    shown = queuectl("show", "later", "--json", check=0).json
    assert shown["history"] == []
    assert shown["output"] is None
    assert shown["reason"].startswith("not due until ")


def test_history_and_the_end_of_the_output_are_shown(queuectl: Program, start_worker: StartWorker) -> None:
    start_worker()
    script = 'echo "run $QUEUECTL_RUN"; [ "$QUEUECTL_RUN" = 1 ] && exit 3; printf "caf\\351\\ttab"; kill -9 $$'
    queuectl("run", "--id", "j", "--max-retries", "2", "--backoff-base", "1", script, check=137)
    done = queuectl("show", "j", check=0)
    end = "killed by signal 9 (SIGKILL): caf\ufffd tab"
    assert done.lines[0] == f"j  dead: {end}"
    assert facts(done.out)["Attempts"] == "2 of 2 failed; retry after 1 ** attempts seconds"
    assert facts(done.out)["Ended with"] == end
    rows = [line.split()[:2] for line in done.lines if line.split()[:1] in (["1"], ["2"])]
    assert rows == [["1", "failed"], ["2", "signalled"]]
    assert [line.split("  ")[-1] for line in done.lines if " failed " in line] == ["exit code 3: run 1"]
    assert done.lines[-2:] == ["  │ run 2", "  │ caf\ufffd    tab"]
    shown = queuectl("show", "j", "--json", check=0).json
    assert shown["output"] == "run 2\ncaf\ufffd\ttab"
    assert [(run["number"], run["exit_code"], run["signal"]) for run in shown["history"]] == [
        (1, 3, None),
        (2, None, 9),
    ]
    assert set(shown["history"][0]) == {
        "number",
        "worker",
        "host",
        "pid",
        "started_at",
        "finished_at",
        "duration_ms",
        "exit_code",
        "signal",
        "error",
        "outcome",
        "last_output",
        "cpu_user_ms",
        "cpu_system_ms",
        "max_rss_bytes",
        "read_bytes",
        "written_bytes",
        "peak_memory_bytes",
    }


def test_the_output_is_the_end_of_it_up_to_the_limit(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("config", "set", "output-limit", "1KiB", check=0)
    start_worker()
    queuectl("run", "--id", "j", "seq 1 1000", check=0)
    output = queuectl("show", "j", "--json", check=0).json["output"]
    assert len(output) == 1024
    assert output.endswith("999\n1000\n")
    lines = queuectl("show", "j", check=0).lines
    assert "the last 20 lines; all of it: queuectl logs j" in lines[-21]
    assert lines[-1] == "  │ 1000"


def test_values_of_the_environment_are_shown_only_when_asked_for(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "j", "--env", "TOKEN=se cret", "true", check=0)
    for args in ([], ["--json"]):
        assert "se cret" not in queuectl("show", "j", *args, check=0).out
        assert "se cret" in queuectl("show", "j", "--show-env", *args, check=0).out


@pytest.mark.parametrize(
    "arguments",
    [
        ("enqueue", "true", "--env", "A=se cret"),
        ("enqueue", '[{"command": "true", "env": {"A": "se cret"}}]'),
        ("enqueue", '{"command": "true", "env": {"A": "se cret"}}'),
        ("enqueue", "--stream", "--env", "A=se cret"),
        ("run", "false", "--env", "A=se cret", "--retries", "1"),
        ("list",),
        ("show", "j"),
        ("dlq", "list"),
        ("dlq", "show", "j"),
        ("wait", "j"),
    ],
    ids=" ".join,
)
def test_show_env_works_wherever_a_job_is_printed(
    queuectl: Program, start_worker: StartWorker, arguments: tuple[str, ...]
) -> None:
    queuectl("enqueue", "--id", "j", "--env", "A=se cret", "--retries", "1", "false", check=0)
    start_worker()
    queuectl("wait", "j", check=1)
    hidden, shown = (queuectl(*arguments, "--json", *more, input="true\n").out for more in ((), ("--show-env",)))
    assert '"A": "***"' in hidden
    assert "se cret" not in hidden
    assert '"A": "se cret"' in shown


def test_an_id_may_be_cut_and_must_not_be_ambiguous(queuectl: Program) -> None:
    for job_id in ("abc", "abd", "x"):
        queuectl("enqueue", "--id", job_id, "true", check=0)
    assert queuectl("show", "abc", "--quiet", check=0).out == "abc\n"
    assert queuectl("show", "last", "--quiet", check=0).out == "x\n"
    done = queuectl("show", "ab", check=1)
    assert done.out == ""
    assert done.err == "error: 'ab' is ambiguous\nhint: one of: abc, abd\n"
    assert queuectl("show", "nope", "--json", check=1).err.startswith('{"error": {"code": "job-not-found"')
    assert queuectl("show", check=2).out == ""


def test_show_creates_no_data_directory(queuectl: Program) -> None:
    queuectl("show", "last", check=1)
    assert not queuectl.home.exists()


def test_the_page_of_a_job_on_a_terminal_is_colored_and_escaped(queuectl: Program, home: Path) -> None:
    queuectl("enqueue", "--id", "j", "--command", "printf '\x1b[2J'", check=0)
    terminal = Terminal(home, "show", "j")
    assert terminal.end() == 0
    assert "\x1b[2J" not in terminal.shown
    assert "\\x1b[2J" in terminal.shown
    assert plain(terminal.shown).startswith("j  pending: no worker")
