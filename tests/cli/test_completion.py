from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.program import COMMAND, Program, environment

# Completes a line as bash does it, and prints what it would offer.
COMPLETE = r"""
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_queuectl_completion "$1" "${COMP_WORDS[COMP_CWORD]}" ""
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(queuectl: Program, tmp_path: Path) -> object:
    (script := tmp_path / "completion.bash").write_text(queuectl("completion", "bash", check=0).out)
    program = tmp_path / "bin" / "queuectl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    program.chmod(0o755)
    env = environment(queuectl.home)
    env["PATH"] = f"{program.parent}:{env['PATH']}"

    def offer(*words: str) -> list[str]:
        command = ["bash", "--norc", "-c", COMPLETE, "bash", str(script), "queuectl", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert not queuectl.home.exists()
        return done.stdout.split()

    return offer


@pytest.mark.parametrize(
    "words, offered",
    [
        (("enq",), ["enqueue"]),
        (("config", ""), ["list", "get", "set", "unset", "reset"]),
        (("--home", "x", "conf"), ["config"]),
        (("enqueue", "--max"), ["--max-retries", "--max-attempts"]),
        (("enqueue", "--format", "js"), ["json", "jsonl"]),
        (("config", "get", "backoff-m"), ["backoff-max"]),
        (("config", "set", "max_r"), ["max-retries"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("list", "--state", "d"), ["dead"]),
    ],
)
def test_bash_offers_what_could_come_next(complete: object, words: tuple[str, ...], offered: list[str]) -> None:
    assert callable(complete)
    assert complete(*words) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_one_it_can_read(queuectl: Program, tmp_path: Path, shell: str) -> None:
    script = queuectl("completion", shell, check=0).out
    assert "_QUEUECTL_COMPLETE" in script
    if shutil.which(shell):
        (path := tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(path)], check=True)


def test_a_shell_that_we_do_not_know_is_refused(queuectl: Program) -> None:
    assert "bash" in queuectl("completion", "tcsh", check=2).err
