"""The program that is forked and not started: for whoever calls it, it is the same one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.program import COMMAND, Program, environment
from tests.warm import Ended, warm


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
