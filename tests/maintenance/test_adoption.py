"""The death of a worker does not interrupt its jobs: the next worker of its data directory adopts them, and each runs once."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
from collections import deque
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from queuectl.clock import SystemClock
from queuectl.jobs.model import Worker
from queuectl.jobs.outcome import Exited, Signalled
from queuectl.maintenance.adoption import Adopter, adoptable, hand_over
from queuectl.paths import kept_file, runs_file
from queuectl.process.journal import Exit, Journal, Record, Termination, read_journal
from queuectl.process.model import Identity
from queuectl.process.system import system
from queuectl.process.tree import started
from queuectl.store.sqlite.connection import MEMORY
from queuectl.store.sqlite.store import SqliteStore
from queuectl.units import from_ms
from tests.e2e.processes import children, is_running
from tests.e2e.scene import Scene, family_of
from tests.factories import unknown_claim
from tests.program import WorkerProcess
from tests.wait import wait_until


def begun(scene: Scene, command: str, *options: str, **fields: object) -> tuple[WorkerProcess, str]:
    """A worker w1 whose job has begun, and waits for `go`."""
    job_id = scene.enqueue_all([{"command": f"{scene.note('begun')}; {command}", **fields}])[0]
    worker = scene.worker("--name", "w1", *options)
    scene.wait_for_file("begun")
    return worker, job_id


@pytest.mark.parametrize(
    "command, state, end",
    [("echo said; exit 0", "completed", (0, None)), ("exit 7", "dead", (7, None)), ("kill -9 $$", "dead", (None, 9))],
    ids=["success", "failure", "signal"],
)
def test_a_job_continues_when_its_worker_is_killed_and_its_real_end_is_recorded(
    scene: Scene, command: str, state: str, end: tuple[int | None, int | None]
) -> None:
    worker, job_id = begun(scene, f"{scene.until('go')}; {command}", max_retries=1)
    worker.kill()
    adopter = scene.worker("--name", "w2")
    wait_until(lambda: "adopted" in adopter.output, what="it to be adopted")
    assert scene.workers() == {"w2": "running"}
    scene.open("go")
    job = scene.wait_for(job_id, state)
    assert (job["exit_code"], job["signal"]) == end
    assert (job["runs"], job["crashes"], job["worker"]) == (1, 0, "w2")
    assert len(scene.lines("begun")) == 1
    lines = scene.queuectl("logs", job_id, check=0).lines
    assert lines[0].startswith("--- START")
    assert lines[-1].startswith("--- END")
    assert ("said" in lines) is (state == "completed")
    wait_until(lambda: not list((scene.home / "workers").glob("*.kept")), what="the old journal to be removed")


def test_a_job_that_ends_while_there_is_no_worker_has_run_once(scene: Scene) -> None:
    worker, job_id = begun(scene, f"{scene.until('go')}; exit 5", max_retries=1)
    (supervisor,) = children(worker.pid)
    worker.kill()
    scene.open("go")
    wait_until(lambda: not is_running(supervisor.pid), what="the supervisor to exit after the last of its jobs")
    scene.drain()
    job = scene.job(job_id)
    assert (job["state"], job["exit_code"], job["runs"], job["crashes"]) == ("dead", 5, 1, 0)
    assert job["duration_ms"] < 60_000


def test_an_end_that_could_not_be_recorded_is_known_though_worker_and_supervisor_are_killed(scene: Scene) -> None:
    worker, job_id = begun(scene, f"{scene.until('go')}; exit 5", max_retries=1)
    journal = runs_file(str(scene.home), "w1")
    with closing(sqlite3.connect(scene.home / "queue.db", isolation_level=None, timeout=10)) as other:
        other.execute("begin immediate")
        scene.open("go")
        wait_until(lambda: any(run.exit for run in read_journal(journal).runs.values()), what="it to be written")
        worker.crash()
    scene.drain()
    job = scene.job(job_id)
    assert (job["state"], job["exit_code"], job["runs"], job["crashes"]) == ("dead", 5, 1, 0)
    assert len(scene.lines("begun")) == 1
    assert scene.queuectl("logs", job_id, "--no-markers", check=0).lines == []


APART_MS = 500  # two moments that differ by less are the same, on a busy machine


def test_a_job_that_ended_long_before_it_was_adopted_is_shown_to_have_ended_then(scene: Scene) -> None:
    worker, job_id = begun(scene, scene.until("go"), timeout=1)
    (supervisor,) = children(worker.pid)
    worker.kill()
    scene.open("go")
    wait_until(lambda: not is_running(supervisor.pid), what="the supervisor to exit after the last of its jobs")
    over_ms = SystemClock().now_ms()
    wait_until(
        lambda: SystemClock().now_ms() > over_ms + 2 * APART_MS, what="its end and its time limit to be in the past"
    )
    scene.drain()
    job, (first, last) = scene.job(job_id), scene.queuectl("logs", job_id, check=0).lines
    assert job["state"] == "completed"
    assert abs(_ms(job["started_at"]) - _ms(first.split()[2])) < APART_MS
    assert _ms(job["finished_at"]) <= over_ms + APART_MS
    assert _ms(last.split()[2]) <= over_ms + APART_MS
    assert job["wait_ms"] < 60_000


def _ms(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp() * 1000


def test_a_worker_under_the_same_name_adopts_its_own(scene: Scene) -> None:
    worker, job_id = begun(scene, scene.until("go"))
    worker.kill()
    again = scene.worker("--name", "w1")
    wait_until(lambda: "adopted" in again.output, what="it to be adopted")
    scene.open("go")
    job = scene.wait_for(job_id, "completed")
    assert (job["runs"], job["crashes"]) == (1, 0)


def test_a_job_is_adopted_again_when_its_adopter_dies(scene: Scene) -> None:
    worker, job_id = begun(scene, f"{scene.until('go')}; exit 3", max_retries=1)
    for name in ("w2", "w3"):
        worker.kill()
        worker = scene.worker("--name", name)
        wait_until(lambda: "adopted" in worker.output, what="it to be adopted")  # noqa: B023 - called at once
    scene.open("go")
    job = scene.wait_for(job_id, "dead")
    assert (job["exit_code"], job["runs"], job["worker"]) == (3, 1, "w3")


def test_a_job_is_adopted_again_when_its_adopter_died_before_it_wrote_that_down(scene: Scene) -> None:
    worker, job_id = begun(scene, f"{scene.until('go')}; exit 5", max_retries=1)
    (supervisor,) = children(worker.pid)
    worker.kill()
    # All that such an adopter has done.
    os.rename(runs_file(str(scene.home), "w1"), kept_file(str(scene.home), "w1", supervisor.pid))
    again = scene.worker("--name", "w1")
    wait_until(lambda: "adopted" in again.output, what="it to be adopted")
    scene.open("go")
    job = scene.wait_for(job_id, "dead")
    assert (job["exit_code"], job["runs"], job["crashes"]) == (5, 1, 0)
    wait_until(lambda: not list((scene.home / "workers").glob("*.kept")), what="the old journal to be removed")


def test_a_termination_by_an_adopter_is_known_after_a_worker_of_its_name_that_died_at_once(
    tmp_path: Path,
) -> None:
    (tmp_path / "workers").mkdir()
    home, claim, termination = str(tmp_path), unknown_claim("a"), Termination("timeout", 7)
    kept = Journal(kept_file(home, "w1", 1))
    kept.sign(Identity(1, 2, system.boot_id()))
    kept.write(0, claim.token, Record(1, 2, 0, Exit(Signalled(signal.SIGTERM), 8)))
    adopter = Journal(runs_file(home, "w2"))
    adopter.write(0, claim.token, Record(1, 2, 0, journal="w1.1.kept"))
    adopter.write_termination(0, claim.token, termination)
    dead = Worker("w2", "here", 0, home, "running", 1, 0, None, from_ms(0), from_ms(0), 0, 0)
    with closing(SqliteStore(MEMORY, clock=SystemClock())) as store:
        assert hand_over(dead, [claim], to=Adopter("w2", home, deque()), store=store) == {claim.token}
    Journal(runs_file(home, "w2")).close()  # all that the next w2 has done
    assert adoptable(dead, [claim])[claim.token].termination == termination


def test_the_timeout_of_an_adopted_job_counts_from_its_start(scene: Scene) -> None:
    worker, job_id = begun(scene, f"sleep 1000 & {scene.until('never')}", timeout="3s", max_retries=1)
    worker.kill()
    scene.worker("--name", "w2")
    job = scene.wait_for(job_id, "dead")
    assert job["error"].startswith("timeout after 3s")
    assert 2900 <= job["duration_ms"] < 30_000
    assert job["runs"] == 1


@pytest.mark.parametrize("has_adopter", [True, False], ids=["by the adopter", "without a worker"])
def test_an_adopted_job_can_be_cancelled_with_all_its_processes(scene: Scene, has_adopter: bool) -> None:
    tag = str(scene.directory)
    worker, job_id = begun(scene, f"sleep 1000 & sleep 1000 & {scene.until('never')}", env={"FAMILY": tag})
    wait_until(lambda: len(family_of(tag)) >= 3, what="the process tree to grow")
    worker.kill()
    if has_adopter:
        adopter = scene.worker("--name", "w2")
        wait_until(lambda: "adopted" in adopter.output, what="it to be adopted")
    scene.queuectl("cancel", job_id, check=0, timeout=30)
    assert scene.state(job_id) == "cancelled"
    assert family_of(tag) == []


@pytest.mark.parametrize("ends_before", [True, False], ids=["ended before it is adopted", "ended by the adopter"])
def test_a_job_that_a_dead_worker_was_terminating_to_stop_is_requeued_without_an_attempt(
    scene: Scene, ends_before: bool
) -> None:
    scene.configure(kill_grace="1s" if not ends_before else "20s")
    asked = f"trap '{scene.note('asked')}; {scene.until('go')}; exit 9' TERM"
    worker, job_id = begun(scene, f"[ $QUEUECTL_RUN = 2 ] && exit 0; {asked}; {scene.until('never')}", max_retries=1)
    for said in ("finishing 1 job", "ending 1 job"):
        worker.send(signal.SIGTERM)
        wait_until(lambda: said in worker.output, what="it to react")  # noqa: B023 - called at once
    scene.wait_for_file("asked")
    (supervisor,) = children(worker.pid)
    worker.kill()
    if ends_before:
        scene.open("go")
        wait_until(lambda: not is_running(supervisor.pid), what="the supervisor to exit after the last of its jobs")
    scene.worker("--name", "w2")
    job = scene.wait_for(job_id, "completed")
    assert (job["attempts"], job["crashes"], scene.outcomes(job_id)) == (0, 0, ["released", "completed"])


def test_a_job_that_a_dead_worker_was_terminating_at_its_timeout_has_timed_out(scene: Scene) -> None:
    scene.configure(kill_grace="20s")
    asked = f"trap '{scene.note('asked')}; {scene.until('go')}; exit 0' TERM"
    worker, job_id = begun(scene, f"{asked}; {scene.until('never')}", max_retries=1, timeout="500ms")
    scene.wait_for_file("asked")
    (supervisor,) = children(worker.pid)
    worker.kill()
    scene.open("go")
    wait_until(lambda: not is_running(supervisor.pid), what="the supervisor to exit after the last of its jobs")
    scene.drain()
    job = scene.job(job_id)
    assert (job["state"], job["runs"], scene.outcomes(job_id)) == ("dead", 1, ["timeout"])


def test_a_full_worker_adopts_over_its_count_and_claims_nothing_until_below_it(scene: Scene) -> None:
    scene.enqueue_all([{"command": f"{scene.note('begun')}; {scene.until('go')}"}] * 3)
    worker = scene.worker("--name", "w1", "--count", "3")
    scene.wait_for_lines("begun", 3)
    worker.kill()
    waiting = scene.enqueue("true")
    adopter = scene.worker("--name", "w2", "--count", "1")
    wait_until(lambda: adopter.output.count("adopted") == 3, what="all to be adopted")
    listed = scene.queuectl("worker", "list", "--json", check=0).json
    assert [(one["id"], one["busy"], one["slots"]) for one in listed] == [("w2", 3, 1)]
    assert scene.state(waiting) == "pending"
    scene.open("go")
    scene.wait_for_all()
    assert scene.state(waiting) == "completed"


def test_adopted_jobs_are_finished_at_the_first_term_and_requeued_at_the_second(scene: Scene) -> None:
    worker, job_id = begun(scene, scene.until("go"))
    worker.kill()
    adopter = scene.worker("--name", "w2")
    wait_until(lambda: "adopted" in adopter.output, what="it to be adopted")
    adopter.send(signal.SIGTERM)
    wait_until(lambda: "finishing 1 job" in adopter.output, what="it to react")
    adopter.send(signal.SIGTERM)
    assert adopter.wait() == 128 + signal.SIGTERM
    job = scene.job(job_id)
    assert (job["state"], job["attempts"], job["crashes"]) == ("pending", 0, 0)


def test_a_job_whose_supervisor_died_after_its_worker_runs_again_with_a_crash(scene: Scene) -> None:
    worker, job_id = begun(scene, f"[ $QUEUECTL_RUN = 2 ] || {scene.until('never')}")
    (supervisor,) = children(worker.pid)
    worker.kill()
    adopter = scene.worker("--name", "w2")
    wait_until(lambda: "adopted" in adopter.output, what="it to be adopted")
    os.kill(supervisor.pid, signal.SIGKILL)
    os.kill(int(scene.history(job_id)[0]["pid"]), signal.SIGKILL)
    job = scene.wait_for(job_id, "completed")
    assert (job["runs"], job["crashes"]) == (2, 1)
    assert scene.outcomes(job_id) == ["lost", "completed"]


def test_nothing_is_left_of_a_run_with_an_unknown_end_when_its_job_runs_again(scene: Scene) -> None:
    child = scene.quoted("child")
    # Not by a signal: a process that has ended may not be reaped yet.
    second = f"grep -qs 'State:.[RSD]' /proc/$(cat {child})/status && {scene.note('both')}; exit 0"
    command = f"[ $QUEUECTL_RUN = 1 ] || {{ {second}; }}; sleep 1000 & echo $! > {child}; {scene.note('up')}; wait"
    worker, job_id = begun(scene, command)
    scene.wait_for_file("up")
    (supervisor,) = children(worker.pid)
    worker.kill()
    adopter = scene.worker("--name", "w2")
    wait_until(lambda: "adopted" in adopter.output, what="it to be adopted")
    os.kill(supervisor.pid, signal.SIGKILL)
    os.kill(int(scene.history(job_id)[0]["pid"]), signal.SIGKILL)
    assert scene.wait_for(job_id, "completed")["crashes"] == 1
    assert not scene.path("both").exists()


def test_a_worker_replaces_a_supervisor_that_was_killed(scene: Scene) -> None:
    worker, job_id = begun(scene, f"[ $QUEUECTL_RUN = 2 ] || {scene.until('never')}")
    (supervisor,) = children(worker.pid)
    os.kill(supervisor.pid, signal.SIGKILL)
    job = scene.wait_for(job_id, "completed")
    # It ran alone, so it may be what killed the supervisor.
    assert (job["runs"], job["crashes"], job["attempts"], job["worker"]) == (2, 1, 0, "w1")
    assert scene.outcomes(job_id) == ["lost", "completed"]
    assert worker.process.poll() is None


def test_after_a_reboot_a_job_runs_again_and_processes_with_its_pids_are_left_alone(scene: Scene) -> None:
    worker, job_id = begun(scene, f"test $QUEUECTL_RUN = 2 || {scene.until('go')}")
    path = runs_file(str(scene.home), "w1")
    ((token, found),) = read_journal(path).runs.items()
    worker.crash()
    os.killpg(found.pid, signal.SIGKILL)
    wait_until(lambda: not is_running(found.pid), what="all of it to be gone, as after a loss of power")
    with subprocess.Popen(["sleep", "60"]) as other:
        # What a reboot leaves: a journal whose PIDs and start times are those of another process now.
        now_of = Identity(other.pid, started(other.pid) or 0, "another-boot")
        journal = Journal(path)
        journal.sign(now_of)
        journal.write(0, token, found._replace(pid=now_of.pid, started=now_of.started))
        journal.close()
        scene.drain()
        assert other.poll() is None
        other.kill()
    job = scene.job(job_id)
    assert (job["state"], job["runs"], job["crashes"], job["attempts"]) == ("completed", 2, 1, 0)
    assert scene.outcomes(job_id) == ["lost", "completed"]
    assert "adopted" not in scene.queuectl("logs", job_id, check=0).out


def test_the_journal_is_private(scene: Scene) -> None:
    worker, _ = begun(scene, scene.until("go"))
    path = scene.home / "workers" / "w1.runs"
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_journal(str(path)).supervisor is not None
    scene.open("go")
    scene.wait_for_all()
    worker.end()
    assert json.dumps([one.name for one in (scene.home / "workers").iterdir()]) == "[]"


def test_a_run_in_a_journal_that_its_supervisor_could_not_sign_is_not_adopted(tmp_path: Path) -> None:
    (tmp_path / "workers").mkdir()
    home, claim = str(tmp_path), unknown_claim("a")
    journal = Journal(runs_file(home, "w1"))
    journal.write(0, claim.token, Record(1, 2, 0, Exit(Exited(0), 8)))
    dead = Worker("w1", "here", 0, home, "running", 1, 0, None, from_ms(0), from_ms(0), 0, 0)
    assert adoptable(dead, [claim]) == {}, "the disk was full: it may be of an earlier boot"
    journal.sign(Identity(1, 2, system.boot_id()))
    assert list(adoptable(dead, [claim])) == [claim.token]
    journal.close()
