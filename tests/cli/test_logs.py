from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl.cli.commands.logs import MAX_HELD_BYTES, PrefixedLines
from tests.program import Program, WorkerProcess

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def worker(start_worker: StartWorker) -> WorkerProcess:
    return start_worker("--count", "4")


def test_all_runs_are_shown_between_their_markers(queuectl: Program, worker: WorkerProcess) -> None:
    script = 'printf "out of $QUEUECTL_RUN"; echo err >&2; exit 5'
    queuectl("run", "--id", "j", "--max-retries", "2", "--backoff-base", "1", script, check=5)
    lines = queuectl("logs", "j", check=0).lines
    assert [line.split(" ")[1] for line in lines if line.startswith("---")] == ["START", "END", "START", "END"]
    assert " run=2 worker=" in lines[3]
    assert " rc=5 duration=" in lines[2]
    assert lines[1] == "out of 1err"
    assert queuectl("logs", "--run", "2", "j", check=0).lines == lines[3:]
    assert queuectl("logs", "--tail", "2", "j", check=0).lines == lines[-2:]
    assert queuectl("logs", "-n", "0", "j", check=0).out == ""


def test_without_markers_the_bytes_are_exactly_those_of_the_job(queuectl: Program, worker: WorkerProcess) -> None:
    script = r"printf '\000\377\033[31m--- END x ---\n\r--- START x run=1 ---\nno end'"
    queuectl("run", "--id", "j", script, check=0)
    wanted = b"\x00\xff\x1b[31m--- END x ---\n\r--- START x run=1 ---\nno end"
    assert queuectl("logs", "--no-markers", "j", check=0).raw == wanted
    assert queuectl("logs", "--no-markers", "--follow", "j", check=0).raw == wanted
    assert queuectl("logs", "--no-markers", "--tail", "1", "j", check=0).raw == b"no end"


def test_following_may_begin_before_the_job_and_ends_with_it(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--id", "j", "--max-retries", "2", "--backoff-base", "1", "echo $QUEUECTL_RUN; exit 1", check=0)
    following = queuectl.start("logs", "-f", "--no-markers", "j", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    start_worker()
    out, err = following.communicate(timeout=20)
    assert (out, err, following.returncode) == (b"1\n2\n", b"", 0)


def test_following_shows_output_while_the_job_runs(queuectl: Program, worker: WorkerProcess, tmp_path: Path) -> None:
    go = tmp_path / "go"
    queuectl("enqueue", "--id", "j", f"echo first; until [ -e {go} ]; do sleep 0.02; done; echo second", check=0)
    following = queuectl.start("logs", "-f", "j", "--no-markers", stdout=subprocess.PIPE)
    assert following.stdout is not None
    assert following.stdout.readline() == b"first\n"
    go.touch()
    assert following.communicate(timeout=20)[0] == b"second\n"


def test_ctrl_c_ends_following_and_not_the_job(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("enqueue", "--id", "j", "echo on; sleep 30", check=0)
    following = queuectl.start("logs", "-f", "j", "--no-markers", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert following.stdout is not None
    assert following.stdout.readline() == b"on\n"
    following.send_signal(signal.SIGINT)
    out, err = following.communicate(timeout=20)
    assert (out, err, following.returncode) == (b"", b"", 130)
    assert queuectl("show", "j", "--json", check=0).json["state"] == "processing"


def test_lines_of_several_jobs_begin_with_the_id(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("run", "--id", "a", "echo 1; printf 2", check=0)
    queuectl("run", "--id", "b", "echo 3", check=0)
    assert queuectl("logs", "--no-markers", "b", "a", check=0).lines == ["b | 3", "a | 1", "a | 2"]
    done = queuectl("logs", "--no-markers", "a", "nope", check=1)
    assert done.lines == ["a | 1", "a | 2"]
    assert done.err == "error: no job 'nope'\n"
    done = queuectl("logs", "--json", "a", "nope", check=1)
    assert done.out == ""
    assert json.loads(done.err)["error"]["code"] == "job-not-found"
    followed = queuectl("logs", "-f", "--no-markers", "a", "b", check=0).lines
    assert sorted(followed) == ["a | 1", "a | 2", "b | 3"]


def test_a_job_that_prints_nothing_has_markers_and_no_log(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("run", "--id", "j", "--max-attempts", "1", "exit 3", check=3)
    lines = queuectl("logs", "j", check=0).lines
    assert [line.split(" ")[1] for line in lines] == ["START", "END"]
    assert " rc=3 duration=" in lines[1]
    assert queuectl("logs", "--no-markers", "j", check=0).out == ""
    shown = queuectl("show", "j", "--json", check=0).json
    assert (shown["log"], shown["output"]) == (None, "")
    assert not Path(queuectl.home, "logs", "j.log").exists()


def test_the_log_of_a_job_that_cannot_start_says_why(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("enqueue", "--id", "j", "--cwd", "/no/such/directory", "--max-attempts", "1", "true", check=0)
    queuectl("wait", "j")
    assert "could not start: " in queuectl("logs", "j", check=0).lines[1]


def test_a_job_that_has_not_run_has_an_empty_log(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "j", "true", check=0)
    assert queuectl("logs", "j", check=0).out == ""


@pytest.mark.parametrize(
    "args, code, printed",
    [
        (["nope"], 1, "no job 'nope'"),
        (["j", "--run", "1"], 1, "has no run 1"),
        (["j", "--run", "0"], 2, "--run: expected an integer of at least 1, got 0"),
        (["j", "--tail", "-1"], 2, "--tail: expected an integer of at least 0, got -1"),
        ([], 2, "no jobs are selected"),
    ],
)
def test_an_invalid_run_is_refused(queuectl: Program, args: list[str], code: int, printed: str) -> None:
    queuectl("enqueue", "--id", "j", "true", check=0)
    done = queuectl("logs", *args, check=code)
    assert done.out == ""
    assert printed in done.err


def test_a_log_that_was_removed_is_no_failure(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("run", "--id", "j", "echo x", check=0)
    Path(queuectl("show", "j", "--json", check=0).json["log"]).unlink()
    reported = queuectl("logs", "j", check=0)
    assert (reported.out, reported.err) == ("", f"j: its log {queuectl.home}/logs/j.log is gone\n")
    assert queuectl("show", "j", "--json", check=0).json["output"] is None
    assert "the output of run 1 is not available" in queuectl("show", "j", check=0).out


# ── prefixed lines ───────────────────────────────────────────────────────────────────────────────────────────────


def test_pieces_become_whole_lines_before_they_are_printed() -> None:
    lines = PrefixedLines()
    assert lines.feed("a", b"1\n2") == b"a | 1\n"
    assert lines.feed("b", b"x\n\ny") == b"b | x\nb | \n"
    assert lines.feed("a", b"3\n") == b"a | 23\n"
    assert lines.flush() == b"b | y\n"
    assert lines.flush() == b""


def test_a_line_too_long_to_hold_is_printed_in_parts_and_never_mixed() -> None:
    lines = PrefixedLines()
    long = b"x" * (MAX_HELD_BYTES + 1)
    assert lines.feed("a", long) == b"a | " + long
    assert lines.feed("a", b"more\nnext\n") == b"more\na | next\n"
    assert lines.feed("a", long) == b"a | " + long
    assert lines.feed("b", b"y\n") == b"\nb | y\n"
    assert lines.feed("a", b"end\n") == b"a | end\n"
    assert lines.feed("a", long) == b"a | " + long
    assert lines.flush() == b"\n"


def test_a_long_log_is_read_in_bounded_memory(queuectl: Program, worker: WorkerProcess) -> None:
    queuectl("run", "--id", "j", "head -c 50000000 /dev/zero", check=0)
    total = peak = 0
    with queuectl.start("logs", "--no-markers", "j", stdout=subprocess.PIPE) as reading:
        assert reading.stdout is not None
        while block := reading.stdout.read(1 << 20):
            total += len(block)
            status = Path(f"/proc/{reading.pid}/status")
            if status.exists() and "VmHWM" in (text := status.read_text()):
                peak = max(peak, int(text.split("VmHWM:")[1].split()[0]))
    assert total == 50_000_000
    assert peak < 60_000  # kB
