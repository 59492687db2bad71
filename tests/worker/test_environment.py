"""What a job finds when it runs (section 5 of the contract), also when its worker was started in a strange place."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from queuectl.process.system import PORTABLE_VARIABLE
from tests.e2e.processes import descriptors
from tests.e2e.scene import Scene
from tests.program import COMMAND

pytestmark = pytest.mark.usefixtures("fresh")

QUEUECTL = " ".join(COMMAND)

# Tells everything about its own process, as the kernel sees it.
TELL = """
import json, os, sys
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
umask = os.umask(0)
print(json.dumps({
    "env": dict(os.environ), "cwd": os.getcwd(), "stdin": sys.stdin.read(), "umask": umask,
    "pid": os.getpid(), "group": os.getpgrp(), "session": os.getsid(0),
    "blocked": status["SigBlk"], "ignored": status["SigIgn"], "pending": status["SigPnd"],
    "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
}))
"""


@pytest.fixture
def reporter(tmp_path: Path) -> list[str]:
    """An argv that runs it without Python's own doings: -I reads no settings, and the script is exec'ed as it is."""
    script = tmp_path / "tell.py"
    script.write_text(TELL)
    return [sys.executable, "-I", str(script)]


def told(scene: Scene, job_id: str) -> dict[str, Any]:
    scene.wait_for(job_id, "completed")
    return json.loads(scene.queuectl("logs", job_id, "--no-markers", check=0).out)


def test_a_job_finds_who_it_is_in_its_environment(scene: Scene, reporter: list[str]) -> None:
    job_id = scene.enqueue(None, argv=reporter, queue="mail", env={"OWN": "grün", "QUEUECTL_SLOT": "99"})
    scene.worker("--name", "w1", env={"OF_THE_WORKER": "yes"})
    env = told(scene, job_id)["env"]
    ours = {name: value for name, value in env.items() if name.startswith("QUEUECTL_") and name != PORTABLE_VARIABLE}
    assert ours.pop("QUEUECTL_RUN_TOKEN")
    assert ours == {
        "QUEUECTL_HOME": str(scene.home),
        "QUEUECTL_JOB_ID": job_id,
        "QUEUECTL_RUN": "1",
        "QUEUECTL_ATTEMPT": "1",
        "QUEUECTL_QUEUE": "mail",
        "QUEUECTL_WORKER": "w1",
        "QUEUECTL_SLOT": "0",
    }
    assert (env["OWN"], env["OF_THE_WORKER"]) == ("grün", "yes")


def test_a_job_finds_those_it_waited_for_and_what_they_printed(scene: Scene) -> None:
    first = scene.enqueue("echo one")
    second = scene.enqueue("echo two")
    words = 'for id in $QUEUECTL_PARENTS; do grep -v -e --- "$QUEUECTL_PARENT_LOGS/$id.log"; done'
    strange = {"QUEUECTL_PARENTS": "of another", "QUEUECTL_PARENT_LOGS": "of another"}
    child = scene.enqueue(words, after=[first, second], env=strange)
    other = scene.enqueue('echo "[$QUEUECTL_PARENTS$QUEUECTL_PARENT_LOGS]"')
    scene.worker("--count", "2", env=strange)
    scene.wait_for(child, "completed")
    scene.wait_for(other, "completed")
    assert scene.queuectl("logs", child, "--no-markers", check=0).out == "one\ntwo\n"
    assert scene.queuectl("logs", other, "--no-markers", check=0).out == "[]\n"


def test_a_job_knows_its_run_its_attempt_and_its_slot(scene: Scene) -> None:
    words = 'echo "$QUEUECTL_RUN $QUEUECTL_ATTEMPT"; [ "$QUEUECTL_RUN" = 2 ]'
    job_id = scene.enqueue(words, max_retries=3, backoff_base=1)
    slots = [{"command": f"echo $QUEUECTL_SLOT >> {scene.quoted('slots')}; {scene.until('go')}"} for _ in range(3)]
    scene.worker("--count", "3")
    scene.wait_for(job_id, "completed")
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).lines == ["1 1", "2 2"]
    scene.enqueue_all(slots)
    assert sorted(scene.wait_for_lines("slots", 3)) == ["0", "1", "2"]
    scene.open("go")
    scene.wait_for_all()


def test_a_job_runs_in_its_directory_with_nothing_to_read_and_leads_its_own_session(
    scene: Scene, reporter: list[str], tmp_path: Path
) -> None:
    place = tmp_path / "a place"
    place.mkdir()
    job_id = scene.enqueue(None, argv=reporter, cwd=str(place))
    scene.worker(umask=0o027)
    found = told(scene, job_id)
    assert found["cwd"] == str(place)
    assert found["stdin"] == ""
    assert found["pid"] == found["group"] == found["session"]
    assert found["umask"] == 0o027
    assert found["fds"][:3] == [0, 1, 2]
    assert len(found["fds"]) == 4  # and the one that lists them


def test_a_worker_that_inherited_descriptors_keeps_them_from_its_jobs(scene: Scene) -> None:
    job_id = scene.enqueue("ls /proc/self/fd")
    worker = scene.worker(through=["sh", "-c", 'exec 7</dev/null 9>&1; exec "$@"', "-"])
    assert {7, 9} <= set(descriptors(worker.pid))
    scene.wait_for(job_id, "completed")
    # ls lists the directory through a fourth.
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).lines == ["0", "1", "2", "3"]


def test_a_job_that_calls_queuectl_reaches_the_same_store(scene: Scene) -> None:
    parent = scene.enqueue(f"{QUEUECTL} enqueue --id child true")
    scene.drain()
    assert scene.states() == {parent: "completed", "child": "completed"}


@pytest.mark.parametrize("address", ["elsewhere.db", "sqlite:///{}/elsewhere.db"])
def test_a_job_reaches_the_same_store_also_when_it_was_named_by_db(scene: Scene, tmp_path: Path, address: str) -> None:
    # Named as seen from here, and the job runs in another directory.
    db = address.format(tmp_path)
    scene.queuectl("--db", db, "enqueue", "--cwd", "/", f"{QUEUECTL} enqueue --id child true", cwd=tmp_path, check=0)
    scene.queuectl("--db", db, "worker", "start", "--drain", cwd=tmp_path, check=0)
    jobs = scene.queuectl("--db", tmp_path / "elsewhere.db", "list", "--json", check=0).json
    assert [job["state"] for job in jobs] == ["completed", "completed"]
    assert jobs[0]["id"] == "child"
    assert not (scene.home / "queue.db").exists()


def test_a_job_can_be_told_anything_in_any_locale(scene: Scene) -> None:
    job_id = scene.enqueue('printf "%s" "$WORD"', env={"WORD": "żółw"})
    scene.drain(env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert scene.state(job_id) == "completed"
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).out == "żółw"
