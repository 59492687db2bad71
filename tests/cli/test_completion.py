from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
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


@pytest.fixture
def offered(queuectl: Program, tmp_path: Path) -> Callable[..., list[str]]:
    """What bash offers, by the words that its script would ask with; a store may be there."""

    def offer(*words: str) -> list[str]:
        env = {"_QUEUECTL_COMPLETE": "bash_complete", "COMP_WORDS": shlex.join(["queuectl", *words])}
        env["COMP_CWORD"] = str(len(words))
        lines = queuectl(env=env, check=0).lines
        return [line.partition(",")[2] for line in lines if line]

    return offer


def test_ids_queues_and_names_come_from_the_store(queuectl: Program, offered: Callable[..., list[str]]) -> None:
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
    assert offered("audit", "v") == ["verify"]
    assert offered("audit", "--id", "d") == ["deploy"]
    assert offered("enqueue", "--after", "build-1,b") == ["build-1,build-2", "build-1,build-1"]
    assert offered("run", "--after-fail", "d") == ["deploy"]
    assert offered("wait", "--batch", "") == offered("enqueue", "--batch", "") == ["b1"]
    assert offered("edit", "--move-to", "m") == offered("policy", "check", "--queue", "m") == ["mail"]
    assert offered("alert", "add", "x", "--queue", "w") == ["web"]
    assert offered("priority", "") == []
    assert offered("priority", "5", "d") == ["deploy"]
    assert offered("worker", "stop", "") == []


def test_the_home_that_is_named_on_the_line_is_the_one_that_is_asked(
    queuectl: Program, offered: Callable[..., list[str]], tmp_path: Path
) -> None:
    other = str(tmp_path / "other")
    queuectl("enqueue", "--home", other, "--id", "there", "true", check=0)
    assert offered("show", "") == []
    assert offered("--home", other, "show", "") == ["there"]


def test_a_store_that_cannot_be_read_offers_nothing_and_says_nothing(
    queuectl: Program, offered: Callable[..., list[str]], home: Path
) -> None:
    home.mkdir()
    (home / "queue.db").write_text("this is not a store" * 100)
    assert offered("show", "") == []
    assert offered("list", "--help", "--quiet", "--sta") == ["--state"]


def test_completing_makes_no_home(offered: Callable[..., list[str]], home: Path) -> None:
    assert offered("show", "") == []
    assert not home.exists()
