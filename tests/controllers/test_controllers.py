"""What the kernel counts and limits in control groups: memory, processes, the weight of a nice value.

Few machines that tests run on have such groups to give away, so these run in a virtual one: scripts/in-vm. That one is slow, and so all
jobs of a worker are played once, and the tests look at what has become of them.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.processes import is_running
from tests.groups import ESCAPE, has_controllers, require_groups
from tests.needs import require

pytestmark = pytest.mark.timeout(400)  # the machine is slow

QUEUECTL = (sys.executable, "-m", "queuectl")
MIB = 2**20
UNPRIVILEGED = 65534

# Takes so many MiB, for real, and is then there for a while.
TAKE = "import sys, time; x = bytearray(int(sys.argv[1]) << 20); time.sleep(float(sys.argv[2]))"
# Reserves much more than it uses, as many programs do; 0x4000 is MAP_NORESERVE.
RESERVE = "import mmap; mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000); print('reserved')"
FORK = """
import os, signal
made = []
try:
    while len(made) < 50:
        pid = os.fork()
        if not pid: signal.pause()
        made.append(pid)
except OSError as exc: print(exc.errno, len(made))
for pid in made: os.kill(pid, 9)
"""
FILES = "d=/sys/fs/cgroup$(tail -1 /proc/self/cgroup | cut -c4-)"


def python(script: str, *words: str) -> str:
    return shlex.join([sys.executable, "-I", "-S", "-c", script, *words])


JOBS: Mapping[str, Mapping[str, Any]] = {
    "greedy": {
        "command": f"{ESCAPE} 'echo $$ > escaped; exec sleep 1000'; until [ -s escaped ]; do sleep 0.1; done; {python(TAKE, '200', '60')}; echo went on",
        "memory": "64MiB",
    },
    "spread": {
        "command": f"for i in 1 2 3; do {python(TAKE, '40', '60')} & done; wait",
        "memory": "100MiB",
    },
    "together": {
        "command": f"{python(TAKE, '40', '3')} & {python(TAKE, '40', '3')} & wait",
        "memory": "200MiB",
    },
    "roomy": {"argv": [sys.executable, "-I", "-S", "-c", RESERVE], "memory": "64MiB"},
    "forking": {"argv": [sys.executable, "-I", "-S", "-c", FORK], "processes": 8},
    "nice": {"command": f"{FILES}; cat $d/cpu.weight", "nice": 5},
    "plain": {"command": f"{FILES}; cat $d/memory.max $d/pids.max $d/cpu.weight"},
}  # fmt: skip


class Played(NamedTuple):
    jobs: dict[str, dict[str, Any]]
    runs: dict[str, dict[str, Any]]
    printed: dict[str, str]
    directory: Path


@pytest.fixture(scope="module")
def place() -> Path:
    require("controllers", has_controllers(), "the kernel has to limit memory, processes and weights in groups of ours")
    return require_groups()


def play(directory: Path, jobs: Mapping[str, Mapping[str, Any]], *, through: Sequence[str] = ()) -> Played:
    environment = {**os.environ, "QUEUECTL_HOME": str(directory / "home")}
    said = json.dumps([{"id": name, "max_retries": 1, "cwd": str(directory), **job} for name, job in jobs.items()])

    def queuectl(*words: str) -> bytes:
        return subprocess.run([*through, *QUEUECTL, *words], env=environment, check=True, stdout=subprocess.PIPE).stdout

    queuectl("enqueue", said)
    queuectl("worker", "start", "--count", "4", "--drain", "--quiet")
    told = {job["id"]: job for job in json.loads(queuectl("export", "--history"))}
    runs = {name: job["history"][0] for name, job in told.items()}
    return Played(told, runs, {name: printed(job["log"]) for name, job in told.items()}, directory)


def printed(log: str | None) -> str:
    if log is None:  # it printed nothing
        return ""
    lines = Path(log).read_text("utf-8", "replace").splitlines()
    return "\n".join(line for line in lines if not line.startswith("--- "))


@pytest.fixture(scope="module")
def played(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Played:
    return play(tmp_path_factory.mktemp("played"), JOBS)


def test_a_job_that_its_memory_limit_ends_says_so_and_nothing_of_it_goes_on(played: Played) -> None:
    job = played.jobs["greedy"]
    assert (job["state"], job["error"], job["signal"]) == ("dead", "memory limit of 64MiB reached", 9)
    assert played.printed["greedy"] == ""
    assert not is_running(int((played.directory / "escaped").read_text()))


def test_the_memory_of_all_processes_counts_together(played: Played) -> None:
    assert played.jobs["spread"]["error"] == "memory limit of 100MiB reached"
    run = played.runs["together"]
    assert played.jobs["together"]["state"] == "completed"
    assert 80 * MIB <= run["peak_memory_bytes"] <= 200 * MIB
    assert 40 * MIB <= run["max_rss_bytes"] <= 70 * MIB


def test_what_is_reserved_and_not_used_does_not_count(played: Played) -> None:
    assert played.jobs["roomy"]["state"] == "completed", played.printed["roomy"]
    assert played.printed["roomy"] == "reserved"


def test_processes_are_counted_for_the_run_and_not_for_the_user(played: Played) -> None:
    assert played.printed["forking"] == "11 7", "itself is one of eight"


def test_a_nice_value_is_the_weight_of_the_run_among_others(played: Played) -> None:
    assert played.printed["nice"] == "33"


def test_a_run_without_limits_has_none_and_no_peak_of_its_own(played: Played) -> None:
    assert played.printed["plain"].split() == ["max", "max", "100"]
    assert played.runs["plain"]["peak_memory_bytes"] is None


def test_no_group_is_left(played: Played, place: Path) -> None:
    assert not list(place.rglob("queuectl-run-*"))


@pytest.fixture
def box(place: Path) -> Iterator[Path]:
    """A group that is handed over, as a container's is: there nothing else may be beside the worker."""
    path = place / "box"
    path.mkdir()
    yield path
    for folder in (*path.iterdir(), path):
        if folder.is_dir():
            folder.rmdir()


def inside(box: Path) -> list[str]:
    return ["sh", "-c", f'echo 0 > {box}/cgroup.procs; exec "$@"', "-"]


LIMITED: Mapping[str, Mapping[str, Any]] = {
    "greedy": {"command": python(TAKE, "100", "60"), "memory": "64MiB"},
    "where": {"command": "tail -1 /proc/self/cgroup"},
}


def test_a_worker_that_is_alone_steps_aside_for_limits(box: Path, tmp_path: Path) -> None:
    played = play(tmp_path, LIMITED, through=inside(box))
    assert played.jobs["greedy"]["error"] == "memory limit of 64MiB reached"
    assert played.printed["where"].startswith("0::/box/queuectl-run-")
    assert (box / "queuectl-worker").is_dir()


def test_a_worker_without_rights_has_limits_in_what_was_handed_over_to_its_user(box: Path, tmp_path: Path) -> None:
    python = os.path.realpath(sys.executable)
    is_open = all(os.stat(parent).st_mode & 0o001 for parent in Path(python).parents)
    require("a Python for everybody", is_open, f"others cannot run {python}")
    for path in (box, box / "cgroup.procs", box / "cgroup.subtree_control", box / "cgroup.threads", tmp_path):
        os.chown(path, UNPRIVILEGED, UNPRIVILEGED)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o711)
    through = [*inside(box), "setpriv", f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups"]
    played = play(tmp_path, LIMITED, through=through)
    assert played.jobs["greedy"]["error"] == "memory limit of 64MiB reached"
