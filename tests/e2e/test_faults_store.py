"""A database that is locked, truncated, overwritten, emptied or foreign: its error, that it is never overwritten, and that nothing
is lost which was there to be lost.

Under a worker the file is changed in its place: the worker has it open, and its inode stays. Removed and replaced by another
one: tests/worker/test_store_retry.py. Page by page: tests/store/sqlite/test_migrate.py.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.scene import FULL, Scene
from tests.terminal import Terminal, plain
from tests.wait import wait_until

LOCKED_FOR = 20.0 if FULL else 3.0  # people are told after 2 s; a worker does not wait at all, it asks again
JOBS = 3_000  # enough for a file that can be cut in the middle of its rows


# ── locked ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Another program holds the write lock."""
    with closing(sqlite3.connect(home / "queue.db", isolation_level=None, timeout=10)) as other:
        other.execute("begin immediate")
        yield
        other.execute("rollback")


def test_a_long_lock_loses_no_result_and_enqueue_reports_it_and_waits(scene: Scene) -> None:
    command = f"{scene.note('begun', '$QUEUECTL_JOB_ID')}; {scene.until('go')}; {scene.note('ended')}"
    scene.enqueue_all([{"command": f"{command}; exit {code}", "max_retries": 1} for code in (0, 0, 7)])
    scene.enqueue_all([{"command": scene.note("begun", "$QUEUECTL_JOB_ID")}] * 5)
    worker = scene.worker("--count", "3")
    scene.wait_for_lines("begun", 3)
    with locked(scene.home):
        over = time.monotonic() + LOCKED_FOR
        scene.open("go")
        scene.wait_for_lines("ended", 3)  # jobs go on, and end
        waiting = Terminal(scene.home, "enqueue", "true", columns=200)
        waiting.wait_for("the database is locked by another program; waiting for it")
        wait_until(lambda: "is locked by another program" in worker.output, what="the worker to say so")
        wait_until(lambda: time.monotonic() >= over, timeout=30, what="the other program to have done")
        assert scene.count("processing") == 3
        assert waiting.process.poll() is None
    assert waiting.end() == 0
    assert "queued" in plain(waiting.shown)
    scene.wait_for_all()
    assert (len(scene.states()), scene.count("completed"), scene.count("dead")) == (9, 8, 1)
    begun = scene.lines("begun")
    assert len(begun) == len(set(begun)) == 8  # each once
    assert worker.output.count("trouble") == worker.output.count("recovered") == 1


# ── not what it was ─────────────────────────────────────────────────────────────────────────────────────────────────


def empty(path: Path) -> None:
    os.truncate(path, 0)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def wipe(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.write(b"\0" * size)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"valuable data of another program\n" * 10_000)
        file.truncate()


WAYS = pytest.mark.parametrize(
    "ruin, words",
    [
        (empty, "is damaged: it is empty, 0 bytes"),
        (cut, "is damaged: database disk image is malformed"),
        (wipe, "is not a queuectl database"),
        (overwrite, "is not a queuectl database"),
    ],
)


def fold(scene: Scene) -> Path:
    """Everything into the file, nothing in the log beside it: what a machine has after some time."""
    scene.forge("pragma wal_checkpoint(truncate)")
    return scene.home / "queue.db"


def refuses(scene: Scene, words: str, *commands: tuple[str, ...]) -> None:
    """Each of the commands says `words`, in one line, and what to do, in another, and nothing else."""
    for command in commands:
        answer = scene.queuectl(*command)
        assert (answer.code, answer.out) == (1, ""), command
        what, hint = answer.err.splitlines()
        assert what.startswith("error: ")
        assert words in what
        assert hint.startswith("hint: ")
        assert "backup" in hint


def says_so(output: str) -> bool:
    """Whether a worker has noticed. In which words depends on where it was at that moment."""
    return "is damaged: " in output or "is not a queuectl database" in output


def is_named(scene: Scene) -> bool:
    """Whether the doctor finds something wrong with the store."""
    told = scene.queuectl("doctor", "--json", check=1).json
    store = next(seen for seen in told["checks"] if seen["check"] == "store")
    return {found["severity"] for found in store["findings"]} == {"problem"}


@WAYS
def test_a_ruined_store_is_named_and_left_as_it_is_and_a_backup_brings_the_jobs_back(
    scene: Scene, ruin: Callable[[Path], None], words: str
) -> None:
    scene.enqueue_all_from_file([{"command": "true"}] * JOBS)
    scene.queuectl("backup", scene.path("backup.db"), check=0)
    file = fold(scene)
    ruin(file)
    before = file.read_bytes()
    refuses(scene, words, ("enqueue", "true"), ("list",), ("worker", "start", "--drain"))
    assert is_named(scene)
    assert file.read_bytes() == before
    scene.queuectl("restore", scene.path("backup.db"), "--yes", check=0)
    assert scene.queuectl("status", "--json", check=0).json["states"]["pending"] == JOBS
    kept = [path for path in (scene.home / "backups").iterdir() if path.read_bytes() == before]
    assert len(kept) == 1  # unchanged, so that more of it can be recovered


@WAYS
def test_a_database_that_is_damaged_under_a_worker_is_never_recreated_and_its_job_continues(
    scene: Scene, ruin: Callable[[Path], None], words: str
) -> None:
    scene.configure(heartbeat="200ms", poll_interval="200ms")
    scene.enqueue(f"{scene.note('begun')}; {scene.until('go')}; {scene.note('ended')}", priority=1)
    scene.enqueue_all_from_file([{"command": scene.note("others")}] * JOBS)
    worker = scene.worker()
    scene.wait_for_file("begun")
    file = fold(scene)
    ruin(file)
    before = file.read_bytes()
    if ruin is empty:  # of the others it may learn only when it reads what it does not remember
        wait_until(lambda: says_so(worker.output), what="the worker to say so")
    refuses(scene, words, ("enqueue", "true"))
    assert is_named(scene)
    assert worker.process.poll() is None
    scene.open("go")
    scene.wait_for_file("ended")
    assert worker.wait() == 1
    assert says_so(worker.output.splitlines()[-2])
    assert "Traceback" not in worker.output
    assert scene.lines("others") == []  # it began nothing whose end it could not have written
    assert file.read_bytes() == before


def test_what_is_in_the_log_of_a_store_that_was_emptied_is_not_thrown_away(scene: Scene) -> None:
    scene.enqueue_all([{"command": "true"}] * 5)
    log = scene.home / "queue.db-wal"
    before = log.read_bytes()
    assert before  # all of them: the command that wrote them has left it to others to fold them in
    empty(scene.home / "queue.db")
    refuses(scene, "0 bytes", ("status",), ("enqueue", "true"), ("list",))
    assert is_named(scene)
    assert log.read_bytes() == before


def test_a_store_that_was_wiped_is_whole_again_as_far_as_its_log_goes(scene: Scene) -> None:
    ids = scene.enqueue_all([{"command": "true"}] * 5)
    wipe(scene.home / "queue.db")  # as a file system may leave it that lost its power
    scene.drain()
    assert scene.states() == dict.fromkeys(ids, "completed")
