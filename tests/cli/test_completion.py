from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import COMMAND, Program, environment

# Completes a line as bash does, and prints the suggestions.
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

    def offer(*arguments: str) -> list[str]:
        command = ["bash", "--norc", "-c", COMPLETE, "bash", str(script), "queuectl", *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert not queuectl.home.exists()
        return done.stdout.split()

    return offer


@pytest.mark.parametrize(
    "arguments, offered",
    [
        (("enq",), ["enqueue"]),
        (("config", ""), ["list", "get", "set", "unset", "reset"]),
        (("--home", "x", "conf"), ["config"]),
        (("enqueue", "--max"), ["--max-attempts", "--max-retries"]),
        (("enqueue", "--format", "js"), ["json", "jsonl"]),
        (("config", "get", "backoff-m"), ["backoff-max"]),
        (("config", "set", "max_r"), ["max-retries"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("list", "--state", "d"), ["dead"]),
    ],
)
def test_bash_completes_commands_options_and_values(
    complete: object, arguments: tuple[str, ...], offered: list[str]
) -> None:
    assert callable(complete)
    assert complete(*arguments) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_accepts_its_completion_script(queuectl: Program, tmp_path: Path, shell: str) -> None:
    script = queuectl("completion", shell, check=0).out
    assert "_QUEUECTL_COMPLETE" in script
    if shutil.which(shell):
        (path := tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(path)], check=True)


def test_an_unknown_shell_is_refused(queuectl: Program) -> None:
    assert "bash" in queuectl("completion", "tcsh", check=2).err


@pytest.fixture
def offered(queuectl: Program, tmp_path: Path) -> Callable[..., list[str]]:
    """The suggestions for bash, requested as its script does."""

    def offer(*arguments: str) -> list[str]:
        env = {"_QUEUECTL_COMPLETE": "bash_complete", "COMP_WORDS": shlex.join(["queuectl", *arguments])}
        env["COMP_CWORD"] = str(len(arguments))
        lines = queuectl(env=env, check=0).lines
        return [line.partition(",")[2] for line in lines if line]

    return offer


def test_ids_queues_and_names_are_completed_from_the_database(
    queuectl: Program, offered: Callable[..., list[str]]
) -> None:
    for job in ("build-1", "build-2", "deploy"):
        queuectl(
            "enqueue", "--id", job, "--queue", "mail" if job == "deploy" else "web", "--batch", "b1", "true", check=0
        )
    queuectl("cron", "add", "nightly", "0 2 * * *", "true", check=0)
    assert offered("show", "") == ["deploy", "build-2", "build-1"]
    assert offered("logs", "bui") == ["build-2", "build-1"]
    assert offered("cancel", "build-1", "b") == ["build-2"]
    assert offered("dlq", "retry", "d") == ["deploy"]
    assert offered("list", "--queue", "") == ["mail", "web"]
    assert offered("worker", "start", "-q", "w") == ["web"]
    assert offered("enqueue", "--queue", "m") == ["mail"]
    assert offered("queue", "pause", "") == ["mail", "web"]
    assert offered("cron", "show", "n") == ["nightly"]
    assert offered("batch", "show", "") == ["b1"]
    queuectl("alert", "add", "deaths", "--dead", "3", "--command", "true", check=0)
    for verb in ("show", "test", "remove"):
        assert offered("alert", verb, "d") == ["deaths"]
    assert offered("alert", "add", "d") == []
    assert offered("audit", "--id", "d") == ["deploy"]
    assert offered("enqueue", "--after", "build-1,b") == ["build-1,build-2", "build-1,build-1"]
    assert offered("run", "--after-fail", "d") == ["deploy"]
    assert offered("wait", "--batch", "") == offered("enqueue", "--batch", "") == ["b1"]
    assert offered("edit", "--move-to", "m") == offered("policy", "check", "--queue", "m") == ["mail"]
    assert offered("alert", "add", "x", "--queue", "w") == ["web"]
    assert offered("priority", "") == []
    assert offered("priority", "5", "d") == ["deploy"]
    assert offered("worker", "stop", "") == []


def test_completion_reads_the_data_directory_of_the_typed_option(
    queuectl: Program, offered: Callable[..., list[str]], tmp_path: Path
) -> None:
    other = str(tmp_path / "other")
    queuectl("enqueue", "--home", other, "--id", "there", "true", check=0)
    assert offered("show", "") == []
    assert offered("--home", other, "show", "") == ["there"]


def test_an_unreadable_database_completes_nothing_silently(
    queuectl: Program, offered: Callable[..., list[str]], home: Path
) -> None:
    home.mkdir()
    (home / "queue.db").write_text("this is not a store" * 100)
    assert offered("show", "") == []
    assert offered("list", "--help", "--quiet", "--sta") == ["--state"]


def test_completion_creates_no_data_directory(offered: Callable[..., list[str]], home: Path) -> None:
    assert offered("show", "") == []
    assert not home.exists()
