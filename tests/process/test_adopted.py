"""Runs of a dead worker: their supervisor writes how they end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuectl.jobs.outcome import Exited
from queuectl.process import adopted, tree
from queuectl.process.adopted import AdoptedRuns, UnknownExit
from queuectl.process.journal import Exit, Journal, Record
from queuectl.process.model import Child
from queuectl.process.system import IS_PORTABLE
from tests.e2e.processes import descriptors
from tests.wait import wait_until


@pytest.fixture
def runs() -> Iterator[AdoptedRuns]:
    before = descriptors(os.getpid())
    made = AdoptedRuns()
    yield made
    made.close()
    assert descriptors(os.getpid()) == before


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Signed by us, as its supervisor."""
    made = Journal(str(tmp_path / "runs"))
    made.sign(tree.identity_of(os.getpid()))
    yield made
    made.close()


def test_a_run_has_ended_when_its_supervisor_has_written_how(
    runs: AdoptedRuns, sleeper: subprocess.Popen[bytes], journal: Journal, tmp_path: Path
) -> None:
    child = Child(sleeper.pid, tree.started(sleeper.pid) or 0)
    runs.adopt(child, "a", str(tmp_path / "runs"))
    assert child in runs
    assert runs.poll(child) is None
    assert runs.needs_polling is IS_PORTABLE
    sleeper.kill()
    wait_until(lambda: not tree.is_running(child), what="it to end")
    assert runs.poll(child) is None, "its supervisor is alive, and about to write"
    assert runs.needs_polling
    ended = Exit(Exited(3), child.started + 100, 5, 6)
    journal.write(0, "a", Record(*child, exit=ended))
    assert runs.poll(child) == Exited(3)
    assert runs.exit(child) == ended
    assert runs.duration(child) == pytest.approx(1.0)
    runs.forget(child)
    assert child not in runs


def test_a_supervisor_that_does_not_write_is_waited_for_only_for_a_while(
    runs: AdoptedRuns,
    sleeper: subprocess.Popen[bytes],
    journal: Journal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(adopted, "WRITE_TIMEOUT", 0.1)
    child = Child(sleeper.pid, tree.started(sleeper.pid) or 0)
    runs.adopt(child, "a", str(tmp_path / "runs"))
    sleeper.kill()
    assert isinstance(wait_until(lambda: runs.poll(child), what="the timeout"), UnknownExit)
    assert runs.duration(child) is None


def test_a_process_that_has_reused_the_pid_of_a_run_is_not_adopted(
    runs: AdoptedRuns, sleeper: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    child = Child(sleeper.pid, (tree.started(sleeper.pid) or 0) - 1000)
    runs.adopt(child, "a", str(tmp_path / "no-journal"))
    assert isinstance(runs.poll(child), UnknownExit)


def test_a_run_that_cannot_be_examined_is_not_adopted(
    runs: AdoptedRuns, sleeper: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> None:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(adopted, "read_journal", fail)
    child = Child(sleeper.pid, tree.started(sleeper.pid) or 0)
    with pytest.raises(OSError):
        runs.adopt(child, "a", str(tmp_path / "runs"))
    assert child not in runs
