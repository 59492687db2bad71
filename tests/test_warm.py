"""A forked program behaves like a started one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.processes import children, descriptors, process
from tests.program import COMMAND, Leftovers, Program, WorkerProcess, environment
from tests.wait import wait_until
from tests.warm import Ended, Forked, Warm, warm


def run_warm(
    home: Path, *words: str, input: bytes | None = None, cwd: Path | None = None, timeout: float = 60
) -> Ended:
    ended = warm.run(words, input=input, env=environment(home), cwd=cwd, timeout=timeout)
    assert ended is not None, "it was not forked"
    return ended


@pytest.mark.parametrize(
    "words", [("--version",), ("bogus",), ("enqueue", "--help"), ("list", "--json"), ("show", "x")]
)
def test_it_says_what_the_one_that_is_started_says(home: Path, words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [*COMMAND, *words], stdin=subprocess.DEVNULL, capture_output=True, env=environment(home), timeout=60
    )
    assert run_warm(home, *words) == Ended(done.returncode, done.stdout, done.stderr)


def test_it_has_the_directory_and_the_input_of_its_call(home: Path, tmp_path: Path) -> None:
    jobs = "".join(f'{{"id": "j{number}", "command": "true"}}\n' for number in range(3000))  # more than a pipe holds
    ended = run_warm(home, "enqueue", "--file", "-", input=jobs.encode(), cwd=tmp_path)
    assert ended.out.decode().split() == [f"j{number}" for number in range(3000)]
    listed = json.loads(run_warm(home, "list", "--json", "--limit", "5000").out)
    assert (len(listed), {job["cwd"] for job in listed}) == (3000, {str(tmp_path)})


def test_one_that_takes_too_long_is_ended_and_the_next_one_is_not_disturbed(home: Path) -> None:
    run_warm(home, "enqueue", "--id", "j1", "true")
    with pytest.raises(subprocess.TimeoutExpired):
        run_warm(home, "wait", "j1", timeout=0.5)
    assert run_warm(home, "list", "--quiet").out == b"j1\n"


def test_what_an_interpreter_reads_at_its_start_is_not_left_out(home: Path, queuectl: Program) -> None:
    env = environment(home, {"PYTHONVERBOSE": "1"})
    assert warm.run(["--version"], input=None, env=env, cwd=None, timeout=60) is None
    assert "import 'queuectl" in queuectl("--version", env={"PYTHONVERBOSE": "1"}, check=0).err


def test_the_first_call_does_not_set_the_environment_of_later_ones(home: Path) -> None:
    fresh = Warm()
    try:
        other = environment(home, {"PYTHONPATH": str(home)})
        assert fresh.run(["--version"], input=None, env=other, cwd=None, timeout=60) is None
        assert fresh.run(["--version"], input=None, env=environment(home), cwd=None, timeout=60) is not None
    finally:
        fresh.close()


def seen(pid: int) -> tuple[object, ...]:
    """Return its signal dispositions and mask, its process group and session, and the kinds of its open files."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    found = process(pid)
    assert found is not None
    kinds = Counter(
        target.partition(":")[0] if ":" in target else Path(target).suffix for target in descriptors(pid).values()
    )
    return [status[name] for name in ("SigBlk", "SigIgn", "SigCgt", "Umask")], found.group, found.session, kinds


def test_a_forked_worker_looks_like_a_started_one(
    queuectl: Program, start_worker: Callable[..., WorkerProcess]
) -> None:
    forked = start_worker()
    queuectl.forks = False
    started = start_worker()
    assert isinstance(forked.process, Forked)
    assert isinstance(started.process, subprocess.Popen)
    wait_until(lambda: seen(forked.pid) == seen(started.pid), what=f"{seen(forked.pid)} to be {seen(started.pid)}")


def test_a_forked_supervisor_looks_like_a_started_one(
    queuectl: Program, start_worker: Callable[..., WorkerProcess]
) -> None:
    forked = start_worker()
    queuectl.forks = False
    started = start_worker()
    (one,), (other,) = children(forked.pid), children(started.pid)
    assert (one.group, one.session) == (one.pid, one.pid)
    assert (other.group, other.session) == (other.pid, other.pid)
    assert [os.readlink(f"/proc/{child.pid}/cwd") for child in (one, other)] == ["/", "/"]

    def shown(pid: int) -> tuple[object, ...]:
        signals, _, _, kinds = seen(pid)
        return signals, kinds

    wait_until(lambda: shown(one.pid) == shown(other.pid), what=f"{shown(one.pid)} to be {shown(other.pid)}")


def test_how_a_worker_that_was_forked_ends_is_known_and_until_then_it_is_left_over(
    start_worker: Callable[..., WorkerProcess], leftovers: Leftovers
) -> None:
    killed, stopped = start_worker(), start_worker()
    assert {killed.pid, stopped.pid} <= set(leftovers)
    assert killed.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        killed.wait(0.01)
    killed.kill()
    stopped.send(signal.SIGTERM)
    assert (killed.wait(), stopped.wait()) == (-signal.SIGKILL, 0)
    leftovers.wait_until_none()
