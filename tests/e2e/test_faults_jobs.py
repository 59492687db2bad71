"""Jobs that leave their place: that daemonise, stop themselves, close what they print to, or change their group. And numbers of
processes that were given out again.

Whole trees of processes, deaf ones and runaways: tests/process/test_trees.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.processes import is_running, process
from tests.e2e.scene import Scene, family_of
from tests.program import WorkerProcess
from tests.wait import wait_until

# Twice a child whose parent goes, in a session of its own: as a server does that goes to the background.
DAEMON = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if os.fork():
    os._exit(0) if sys.argv[2] == "leave" else signal.pause()
os.setsid()
if os.fork():
    os._exit(0)
os.chdir("/")
for fd in (0, 1, 2):
    os.dup2(os.open(os.devnull, os.O_RDWR), fd)
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
signal.pause()
"""
# In a group of its own within the session, with the leader of the session gone.
OTHER_GROUP = """
import os, signal, sys
if os.fork():
    signal.pause()
os.setpgid(0, 0)
open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
signal.pause()
"""


def script(scene: Scene, text: str, *words: str) -> list[str]:
    return [sys.executable, "-c", text, str(scene.path("begun")), *words]


@pytest.fixture
def tag(scene: Scene) -> str:
    return str(scene.directory)


def by_timeout(scene: Scene, worker: WorkerProcess, job_id: str) -> None:
    assert scene.wait_for(job_id, "dead")["error"].startswith("timeout after ")


def by_cancel(scene: Scene, worker: WorkerProcess, job_id: str) -> None:
    scene.queuectl("cancel", job_id, check=0)
    assert scene.state(job_id) == "cancelled"


def by_stop(scene: Scene, worker: WorkerProcess, job_id: str) -> None:
    scene.queuectl("worker", "stop", "--now", check=0)
    assert scene.state(job_id) == "pending"


def by_rescue(scene: Scene, worker: WorkerProcess, job_id: str) -> None:
    scene.configure(max_crashes=1)
    worker.crash()
    scene.drain()
    assert (scene.state(job_id), scene.outcomes(job_id)) == ("dead", ["lost"])


ENDS = pytest.mark.parametrize("end", [by_timeout, by_cancel, by_stop, by_rescue])


@ENDS
@pytest.mark.parametrize("text", [DAEMON, OTHER_GROUP], ids=["daemonises", "changes its group"])
def test_a_job_that_leaves_its_place_is_ended_with_all_that_came_from_it(
    scene: Scene, tag: str, text: str, end: Callable[[Scene, WorkerProcess, str], None]
) -> None:
    scene.configure(kill_grace="200ms")
    fields = {"timeout": "1s"} if end is by_timeout else {}
    argv = script(scene, text, "stay")
    job_id = scene.enqueue(None, argv=argv, env={"FAMILY": tag}, max_retries=1, **fields)
    worker = scene.worker()
    (far,) = map(int, scene.wait_for_lines("begun", 1))
    end(scene, worker, job_id)
    assert not is_running(far)
    assert family_of(tag) == []


def test_a_daemon_that_a_job_leaves_behind_is_left_alone_and_can_be_seen(scene: Scene, tag: str) -> None:
    job_id = scene.enqueue(None, argv=script(scene, DAEMON, "leave"), env={"FAMILY": tag})
    scene.worker()
    scene.wait_for(job_id, "completed")
    (daemon,) = map(int, scene.wait_for_lines("begun", 1))
    told = scene.queuectl("doctor", "--json", check=0).json
    (found,) = next(seen["findings"] for seen in told["checks"] if seen["check"] == "processes")
    assert str(daemon) in found["message"]
    assert is_running(daemon)
    os.kill(daemon, signal.SIGKILL)


@ENDS
def test_a_job_that_stops_itself_is_ended_all_the_same(
    scene: Scene, tag: str, end: Callable[[Scene, WorkerProcess, str], None]
) -> None:
    scene.configure(kill_grace="200ms")
    command = f"{scene.note('begun', '$$')}; kill -STOP $$; {scene.until('never')}"
    fields = {"timeout": "1s"} if end is by_timeout else {}
    job_id = scene.enqueue(command, env={"FAMILY": tag}, max_retries=1, **fields)
    worker = scene.worker()
    (pid,) = map(int, scene.wait_for_lines("begun", 1))
    wait_until(lambda: (found := process(pid)) is None or found.state == "T", what="it to stand still")
    end(scene, worker, job_id)
    assert family_of(tag) == []


def test_a_job_that_stops_and_is_continued_has_its_own_end(scene: Scene) -> None:
    job_id = scene.enqueue(f"{scene.note('begun', '$$')}; kill -STOP $$; exit 4", max_retries=1)
    scene.worker()
    (pid,) = map(int, scene.wait_for_lines("begun", 1))
    wait_until(lambda: (found := process(pid)) and found.state == "T", what="it to stand still")
    assert scene.state(job_id) == "processing"
    os.kill(pid, signal.SIGCONT)
    assert scene.wait_for(job_id, "dead")["exit_code"] == 4


@pytest.mark.parametrize("code", [0, 6])
def test_a_job_that_closes_what_it_prints_to_ends_when_it_ends_and_not_before(scene: Scene, code: int) -> None:
    closes = f"echo first; exec >&- 2>&-; {scene.note('closed')}; {scene.until('go')}; exit {code}"
    job_id = scene.enqueue(closes, max_retries=1)
    other = scene.enqueue("echo other")
    scene.worker()
    scene.wait_for_file("closed")
    assert (scene.state(job_id), scene.state(other)) == ("processing", "pending")  # it holds its slot
    scene.open("go")
    job = scene.wait_for(job_id, "completed", "dead")
    assert job["exit_code"] == code
    lines = scene.queuectl("logs", job_id, check=0).lines
    assert lines[1] == "first"
    assert f"rc={code}" in lines[2]
    scene.wait_for(other, "completed")


# ── numbers that were given out again ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    """Another program's process that leads a group and a session, as a job does."""
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


@pytest.mark.parametrize("how", ["rescue", "cancel", "stop"])
def test_a_reused_pid_in_the_journal_is_not_signalled(
    scene: Scene, stranger: subprocess.Popen[bytes], how: str
) -> None:
    """The PID of a job was reused, for example after a reboot."""
    job_id = scene.enqueue(f"[ $QUEUECTL_RUN = 2 ] || {{ {scene.note('begun', '$$')}; exec sleep 1000; }}")
    worker = scene.worker("--name", "w1")
    (pid,) = map(int, scene.wait_for_lines("begun", 1))
    journal = scene.home / "workers" / "w1.runs"
    wait_until(lambda: f" {pid} ".encode() in journal.read_bytes(), what="the journal to name it")
    worker.crash()
    os.kill(pid, signal.SIGKILL)
    head, *records = journal.read_bytes().split(b"\n")
    swapped = [record.replace(f" {pid} ".encode(), f" {stranger.pid} ".encode()) for record in records]
    journal.write_bytes(b"\n".join([head, *swapped]))
    if how == "rescue":
        scene.drain()
        assert scene.outcomes(job_id) == ["lost", "completed"]
    elif how == "cancel":
        scene.queuectl("cancel", job_id, check=0)
        assert scene.state(job_id) == "cancelled"
    else:
        scene.queuectl("worker", "stop", "--now", check=0)
        assert scene.state(job_id) == "pending"
    assert stranger.poll() is None
