from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tests.program import Leftovers, Program, WorkerProcess, environment
from tests.terminal import Terminal
from tests.wait import wait_until

StartWorker = Callable[..., WorkerProcess]

JOBS = 10_000
# Runs the command, then prints its peak memory.
# Not by getrusage, which includes the peak of the parent process before exec: a test runner of any size.
RUN_AND_WEIGH = """
import sys
from queuectl.cli.main import run
code = run(sys.argv[1:])
print(*(int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(code)
"""


def refused(queuectl: Program, source: Path | str, target: Path | str, *more: str) -> tuple[str, str]:
    """The two lines of the error."""
    done = queuectl("copy", "--from", source, "--to", target, *more, check=1)
    assert done.out == ""
    message, hint = done.err.splitlines()
    return message.removeprefix("error: "), hint.removeprefix("hint: ")


def test_copy_counts_both_sides_and_mentions_logs(
    queuectl: Program, start_worker: StartWorker, home: Path, tmp_path: Path
) -> None:
    queuectl("config", "set", "max-retries", "7", check=0)
    queuectl("enqueue", "--id", "ran", "--tag", "t", "echo hi", check=0)
    assert start_worker("--drain").wait() == 0
    queuectl("enqueue", "--id", "waits", "true", check=0)
    copy = tmp_path / "copy.db"
    done = queuectl("copy", "--from", home / "queue.db", "--to", f"sqlite:///{copy}", check=0)
    assert done.lines[:12] == [
        "WHAT                SOURCE  TARGET",
        "jobs                     2       2",
        "runs                     1       1",
        "pieces of output         0       0",
        "tags                     1       1",
        "batches                  0       0",
        "dependencies             0       0",
        "settings                 1       1",
        "schedules                0       0",
        "alerts                   0       0",
        "rules of queues          0       0",
        "jobs ever enqueued       2       2",
    ]
    assert done.lines[12:14] == ["keyed requests           0       0", "calls to make            0       0"]
    assert re.fullmatch(r"points for charts +([1-9]\d*) +\1", done.lines[14])
    assert done.lines[15].startswith(f"copied to {copy} in ")
    assert done.lines[16:] == ["logs are files, and were not copied"]
    assert copy.stat().st_mode & 0o777 == 0o600
    seen = [queuectl("show", "ran", "--json", *of, check=0).json for of in ([], ["--db", str(copy)])]
    assert seen[0] == seen[1]
    assert queuectl("--db", copy, "logs", "ran", "--no-markers", check=0).out == "hi\n"


def test_copy_prints_its_counts_as_json(queuectl: Program, home: Path, tmp_path: Path) -> None:
    queuectl("enqueue", "true", check=0)
    answer = queuectl("copy", "--from", home / "queue.db", "--to", tmp_path / "b.db", "--json", check=0).json
    assert (answer["from"], answer["to"]) == (str(home / "queue.db"), str(tmp_path / "b.db"))
    assert answer["counts"]["jobs"] == {"source": 1, "target": 1}
    assert answer["given_back"] == 0


def test_a_refused_copy_prints_the_reason_and_a_hint(
    queuectl: Program, start_worker: StartWorker, home: Path, tmp_path: Path
) -> None:
    store, other = home / "queue.db", tmp_path / "other.db"
    message, hint = refused(queuectl, store, other)
    assert message == f"there is no queuectl database at {store}"
    assert not home.exists()
    assert not other.exists()
    queuectl("enqueue", "true", check=0)
    (tmp_path / "link.db").symlink_to(store)
    assert refused(queuectl, store, tmp_path / "link.db")[0].startswith("--from and --to are the same database")
    unsupported = queuectl("copy", "--from", store, "--to", "redis://:secret@host/0", check=2)
    assert unsupported.err.splitlines()[0] == "error: unsupported database redis://"
    printed = " ".join(refused(queuectl, store, "postgresql://queue:secret@127.0.0.1:1/work?connect_timeout=2"))
    assert "postgresql://queue:***@127.0.0.1:1/work" in printed
    assert "secret" not in printed
    assert refused(queuectl, home, other)[1] == f"name the file in it: {store}"
    message, hint = refused(queuectl, store, tmp_path / "no" / "x.db")
    assert message.endswith("its directory does not exist")
    queuectl("--db", other, "config", "set", "max-retries", "2", check=0)
    message, hint = refused(queuectl, store, other)
    assert message == f"the database {other} has jobs, settings or history already"
    start_worker("--name", "bee")
    message, hint = refused(queuectl, store, tmp_path / "new.db")
    assert message == "cannot copy while workers run: bee"
    assert "--force" in hint
    assert not (tmp_path / "new.db").exists()
    assert "--to" in queuectl("copy", "--from", store, check=2).err


def test_copy_never_creates_a_database_under_a_worker_that_lost_its_own(
    queuectl: Program, start_worker: StartWorker, home: Path, tmp_path: Path
) -> None:
    queuectl("--db", tmp_path / "a.db", "enqueue", "true", check=0)
    start_worker("--name", "bee")
    for path in home.glob("queue.db*"):
        path.unlink()
    message, _ = refused(queuectl, tmp_path / "a.db", home / "queue.db")
    assert "was removed or replaced while worker bee serves it" in message


def test_a_running_job_is_pending_in_a_forced_copy(
    queuectl: Program, start_worker: StartWorker, home: Path, tmp_path: Path, leftovers: Leftovers
) -> None:
    store, copy = home / "queue.db", tmp_path / "copy.db"
    worker = start_worker()
    queuectl("enqueue", "--id", "long", "sleep 1000", check=0)
    wait_until(lambda: queuectl("show", "long", "--json", check=0).json["state"] == "processing")
    worker.kill()
    message, _ = refused(queuectl, store, copy)
    assert message == f"1 job runs in the database {store}"
    done = queuectl("copy", "--from", store, "--to", copy, "--force", check=0)
    assert "1 running job returned to pending, without an attempt counted in the copy" in done.lines
    job = queuectl("--db", copy, "show", "long", "--json", check=0).json
    assert (job["state"], job["attempts"], job["crashes"], job["runs"]) == ("pending", 0, 0, 1)
    leftovers.end()


def test_an_error_with_json_is_one_object(queuectl: Program, tmp_path: Path) -> None:
    done = queuectl("copy", "--from", tmp_path / "a.db", "--to", tmp_path / "b.db", "--json", check=1)
    assert json.loads(done.err)["error"]["code"] == "store-not-found"
    assert done.out == ""


def test_a_damaged_source_leaves_an_empty_target(queuectl: Program, home: Path, tmp_path: Path) -> None:
    text = "\n".join(f"echo {number} {'x' * 500}" for number in range(2000))
    queuectl("enqueue", "--file", "-", "--quiet", input=text, check=0)
    store, copy = home / "queue.db", tmp_path / "copy.db"
    with closing(sqlite3.connect(store)) as db:
        db.execute("pragma wal_checkpoint(truncate)")
    with store.open("r+b") as file:
        file.seek(store.stat().st_size // 2)
        file.write(b"\xff" * 65536)
    message, _ = refused(queuectl, store, copy)
    assert "damaged" in message
    assert queuectl("--db", copy, "list", "--json", check=0).json == []


def test_a_copy_takes_the_same_memory_whatever_its_size(queuectl: Program, home: Path, tmp_path: Path) -> None:
    text = "\n".join(json.dumps({"command": f"echo {'x' * 900}", "tags": ["a", "b"]}) for _ in range(JOBS))
    queuectl("enqueue", "--file", "-", "--quiet", input=text, check=0)
    arguments = ["copy", "--from", str(home / "queue.db"), "--to", str(tmp_path / "copy.db"), "--json"]
    done = subprocess.run(
        [sys.executable, "-c", RUN_AND_WEIGH, *arguments],
        env=environment(home),
        capture_output=True,
        text=True,
        check=True,
    )
    answer, megabytes = done.stdout.splitlines()
    assert json.loads(answer)["counts"]["jobs"]["target"] == JOBS
    assert int(megabytes) < 100


def test_a_copy_shows_its_progress_on_a_terminal(queuectl: Program, home: Path, tmp_path: Path) -> None:
    text = "\n".join(f"echo {number}" for number in range(40_000))
    queuectl("enqueue", "--file", "-", "--quiet", input=text, check=0)
    terminal = Terminal(home, "copy", "--from", str(home / "queue.db"), "--to", str(tmp_path / "copy.db"))
    terminal.wait_for("copying")
    terminal.wait_for("40,000")
    assert terminal.end() == 0
