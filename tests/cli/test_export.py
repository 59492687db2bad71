from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.program import Program, WorkerProcess, environment
from tests.terminal import Terminal

StartWorker = Callable[..., WorkerProcess]

JOBS = 10_000
# Runs the command, then prints its peak memory, as in test_copy.
RUN_AND_WEIGH = """
import sys
from queuectl.cli.main import run
code = run(sys.argv[1:])
print(*(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""


def test_export_prints_the_jobs_as_list_does_oldest_first(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "a", "--env", "TOKEN=secret-value", "true", check=0)
    queuectl("enqueue", "--id", "b", "--tag", "t", "--", "echo", "ü\x7f", check=0)
    listed = queuectl("list", "--json", "--sort", "-created", check=0).json
    done = queuectl("export", check=0)
    assert done.json == listed
    assert [job["id"] for job in listed] == ["a", "b"]
    assert "secret-value" not in done.out
    assert listed[0]["env"] == {"TOKEN": "***"}
    lines = queuectl("export", "--format", "jsonl", check=0).lines
    assert [json.loads(line) for line in lines] == listed
    assert queuectl("export", "-", "--json", check=0).json == listed


def test_export_with_history_has_what_show_has(queuectl: Program, start_worker: StartWorker) -> None:
    queuectl("enqueue", "--id", "a", "--max-retries", "2", "--backoff-base", "1", "exit 3", check=0)
    assert start_worker("--drain").wait() == 0
    shown = queuectl("show", "a", "--json", check=0).json
    del shown["output"]
    assert queuectl("export", "--history", check=0).json == [shown]
    assert [run["outcome"] for run in shown["history"]] == ["failed", "failed"]


def test_export_takes_the_filters_of_list(queuectl: Program) -> None:
    queuectl("enqueue", "--id", "a", "--tag", "t", "true", check=0)
    queuectl("enqueue", "--id", "b", "--queue", "mail", "--tag", "t", "--tag", "u", "true", check=0)
    queuectl("enqueue", "--id", "c", "true", check=0)
    queuectl("cancel", "c", check=0)
    for arguments, ids in (
        (["--state", "Cancelled"], ["c"]),
        (["--state", "pending,cancelled", "-q", "mail", "-q", "default"], ["a", "b", "c"]),
        (["--queue", "mail"], ["b"]),
        (["--tag", "t"], ["a", "b"]),
        (["--tag", "t", "--tag", "u"], ["b"]),
        (["--tag", "none"], []),
    ):
        assert [job["id"] for job in queuectl("export", *arguments, check=0).json] == ids


def test_a_file_of_an_export_is_private_and_has_the_environment(queuectl: Program, tmp_path: Path) -> None:
    queuectl("enqueue", "--id", "a", "--env", "TOKEN=secret", "true", check=0)
    path = tmp_path / "jobs.json"
    done = queuectl("export", path, check=0)
    assert done.out == f"exported 1 job to {path}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())[0]["env"] == {"TOKEN": "secret"}
    lines = tmp_path / "jobs.jsonl"
    answer = queuectl("export", "--history", lines, "--json", check=0).json
    assert answer == {"file": str(lines), "format": "jsonl", "history": True, "jobs": 1}
    assert json.loads(lines.read_text())["id"] == "a"
    assert [entry.name for entry in tmp_path.iterdir() if entry.suffix == ".part"] == []


def test_an_existing_file_is_never_overwritten(queuectl: Program, tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text("mine")
    done = queuectl("export", path, check=1)
    assert done.out == ""
    assert done.err.splitlines()[0] == f"error: there is a file {path} already"
    assert path.read_text() == "mine"
    dangling = tmp_path / "link"
    dangling.symlink_to(tmp_path / "nowhere")
    queuectl("export", dangling, check=1)
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_cannot_be_created_is_reported(queuectl: Program, tmp_path: Path) -> None:
    done = queuectl("export", tmp_path / "none" / "jobs.json", "--json", check=1)
    assert done.out == ""
    assert json.loads(done.err)["error"]["code"] == "file-unwritable"
    assert queuectl("export", "", check=2).err.startswith("error: FILE: the name is empty")
    assert queuectl("export", "--format", "csv", check=2).out == ""
    assert queuectl("export", "--state", "odd", check=2).out == ""


def test_a_missing_data_directory_exports_no_jobs_and_is_not_created(queuectl: Program, home: Path) -> None:
    assert queuectl("export", check=0).out == "[]\n"
    assert queuectl("export", "--format", "jsonl", check=0).out == ""
    assert not home.exists()


def test_a_million_jobs_would_not_need_more_memory(queuectl: Program, home: Path, tmp_path: Path) -> None:
    long = "x" * 2000
    text = "\n".join(json.dumps({"command": f"echo {number} {long}"}) for number in range(JOBS))
    queuectl("enqueue", "--file", "-", "--quiet", input=text, check=0)
    path = tmp_path / "jobs.jsonl"
    weights = []
    for at, arguments in ((home, ["export", "--history", str(path)]), (tmp_path / "other", ["import", str(path)])):
        done = subprocess.run(
            [sys.executable, "-c", RUN_AND_WEIGH, *arguments],
            env=environment(at),
            capture_output=True,
            text=True,
            check=True,
        )
        weights.append(int(done.stderr.splitlines()[-1]))
    assert max(weights) < 80, weights
    assert queuectl("status", "--json", env={"QUEUECTL_HOME": str(tmp_path / "other")}, check=0).json["total"] == JOBS


def test_an_export_shows_its_progress_on_a_terminal(queuectl: Program, home: Path, tmp_path: Path) -> None:
    text = "\n".join(f"echo {number}" for number in range(40_000))
    queuectl("enqueue", "--file", "-", "--quiet", input=text, check=0)
    terminal = Terminal(home, "export", "--history", str(tmp_path / "jobs.json"))
    terminal.wait_for("exporting")
    terminal.wait_for("40,000")
    assert terminal.end() == 0
