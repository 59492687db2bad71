"""A log never takes more than its limit, whatever a job prints; the job is not disturbed, and what is gone is counted."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.processes import children, descriptors, is_running
from tests.e2e.scene import Scene
from tests.wait import wait_until

KIB, MIB = 1024, 1024**2
SOME_SECONDS = 2.0
A_LINE = 200


def log_of(scene: Scene, job_id: str) -> Path:
    return scene.home / "logs" / f"{job_id}.log"


def room(log: Path) -> tuple[int, int] | None:
    """The size of the log and the space that it uses, both segments together. None if it changed while we looked."""
    try:
        before = log.stat()
        try:
            older = log.with_name(log.name + ".1").stat()
        except FileNotFoundError:
            older = None
        after = log.stat()
    except FileNotFoundError:
        return None
    if (before.st_ino, before.st_size) != (after.st_ino, after.st_size):
        return None
    both = [after] if older is None else [after, older]
    return sum(one.st_size for one in both), 512 * sum(one.st_blocks for one in both)


def watch_room(log: Path, seconds: float) -> tuple[int, int]:
    """The most that was seen of each."""
    peaks = (0, 0)
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        if found := room(log):
            peaks = max(peaks[0], found[0]), max(peaks[1], found[1])
    return peaks


def left_and_gone(scene: Scene, job_id: str) -> tuple[bytes, int]:
    answer = scene.queuectl("logs", job_id, "--no-markers", check=0)
    found = re.fullmatch(rf"{job_id}: (\d+) bytes of earlier output are gone \(log-limit \w+\)\n", answer.err)
    return answer.raw, int(found[1]) if found else 0


def test_a_job_that_prints_for_ever_never_takes_more_than_its_limit(scene: Scene) -> None:
    scene.configure(log_limit="1MiB")
    job_id = scene.enqueue(f"{scene.note('begun')}; exec yes 0123456789abcdef")
    scene.worker()
    scene.wait_for_file("begun")
    size, blocks = watch_room(log_of(scene, job_id), SOME_SECONDS)
    assert 0.5 * MIB < size <= MIB + A_LINE
    assert blocks <= 1.1 * MIB
    scene.queuectl("cancel", job_id, check=0)
    left, gone = left_and_gone(scene, job_id)
    assert gone > 10 * MIB
    assert len(left) >= MIB // 3
    assert set(left.splitlines()[:-1]) == {b"0123456789abcdef"}


def test_no_log_takes_more_than_its_limit_with_more_jobs_than_the_soft_limit_allows_descriptors(scene: Scene) -> None:
    scene.configure(log_limit="64KiB")
    ids = scene.enqueue_all([{"command": f"{scene.note('begun')}; seq 30000; {scene.until('go')}"}] * 30)
    scene.worker("--count", "30", through=["sh", "-c", 'ulimit -Sn 64; exec "$@"', "-"])
    scene.wait_for_lines("begun", 30)
    scene.open("go")
    scene.wait_for_all()
    for job_id in ids:
        found = wait_until(lambda job_id=job_id: room(log_of(scene, job_id)), what="its size")
        assert found[0] <= 64 * KIB + A_LINE
        left, gone = left_and_gone(scene, job_id)
        assert gone + len(left) == 168_894
        assert left.endswith(b"\n29999\n30000\n")


@pytest.mark.parametrize("limit", ["1KiB", "100KiB", "1MiB", "64MiB"])
def test_what_is_gone_and_what_is_left_is_all_that_was_printed(scene: Scene, limit: str) -> None:
    scene.configure(log_limit=limit)
    job_id = scene.enqueue("seq 1 3000000")
    scene.drain()
    assert scene.job(job_id)["exit_code"] == 0
    left, gone = left_and_gone(scene, job_id)
    assert gone + len(left) == 22_888_896
    assert left.endswith(b"\n2999999\n3000000\n")
    assert (gone == 0) == (limit == "64MiB")
    first, _, rest = scene.queuectl("logs", job_id, check=0).raw.partition(b"\n")
    if gone:
        assert first == f"--- {gone} bytes of earlier output are gone (log-limit {limit}) ---".encode()
    assert rest.startswith(left)
    assert scene.queuectl("logs", job_id, "--tail", "2", check=0).lines[0] == "3000000"
    assert scene.queuectl("show", job_id, "--json", check=0).json["output"].endswith("\n2999999\n3000000\n")


def test_every_run_of_a_job_counts_and_the_last_one_is_there(scene: Scene) -> None:
    scene.configure(log_limit="64KiB", backoff_max="1ms")
    job_id = scene.enqueue("seq 1 8000; exit 1", max_attempts=4)
    scene.drain()
    found = wait_until(lambda: room(log_of(scene, job_id)), what="its size")
    assert found[0] <= 64 * KIB + A_LINE
    left, gone = left_and_gone(scene, job_id)
    assert gone + len(left) == 4 * 38_893
    run = scene.queuectl("logs", job_id, "--run", "4", "--no-markers", check=0)
    assert run.out.endswith("\n8000\n")
    first = scene.queuectl("logs", job_id, "--run", "1", check=0)
    assert first.out == "--- 38893 bytes of earlier output are gone (log-limit 64KiB) ---\n"


def test_who_follows_goes_on_and_is_told_what_was_missed(scene: Scene) -> None:
    scene.configure(log_limit="64KiB")
    job_id = scene.enqueue(f"{scene.until('go')}; seq 1 1000000; sleep 0.1; echo the end")
    scene.worker()
    command = ("logs", "-f", "--no-markers", job_id)
    with scene.queuectl.start(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        scene.open("go")
        out, err = follower.communicate(timeout=50)
    assert follower.returncode == 0
    missed = sum(int(number) for number in re.findall(rb": (\d+) bytes of earlier output are gone", err))
    assert out.endswith(b"\nthe end\n")
    assert len(out) + missed == 6_888_896 + 8


def test_a_worker_that_is_killed_costs_no_byte_and_no_bound(scene: Scene) -> None:
    scene.configure(log_limit="1MiB")
    job_id = scene.enqueue(f"{scene.note('begun')}; {scene.loop('go', 'seq 1 10000')}; echo the end")
    first = scene.worker()
    scene.wait_for_file("begun")
    log = log_of(scene, job_id)
    wait_until(lambda: log.exists() and log.stat().st_size > MIB / 3, what="some output")
    before = scene.job(job_id)["worker"]
    first.kill()
    size, blocks = watch_room(log_of(scene, job_id), SOME_SECONDS / 2)
    assert size <= MIB + A_LINE
    assert blocks <= 1.1 * MIB
    scene.worker()
    wait_until(lambda: scene.job(job_id)["worker"] != before, what="it to be adopted")
    scene.open("go")
    scene.wait_for(job_id, "completed")
    assert scene.outcomes(job_id) == ["completed"]
    left, gone = left_and_gone(scene, job_id)
    assert left.endswith(b"\n10000\nthe end\n")
    assert (gone + len(left) - len("the end\n")) % 48_894 == 0


def test_a_child_left_behind_goes_on_printing_after_the_job_and_after_the_worker(scene: Scene) -> None:
    scene.configure(log_limit="64KiB")
    child = f"{scene.loop('stop', 'echo $$; seq 1 1000; sleep 0.01')}; {scene.note('unharmed')}"
    job_id = scene.enqueue(f"sh -c {scene.shell_word(child)} & echo the job")
    worker = scene.worker("--drain")
    assert worker.wait() == 0  # and did not wait for the child
    assert scene.state(job_id) == "completed"
    log = log_of(scene, job_id)
    for _ in range(3):
        before = log.stat().st_ino
        wait_until(lambda before=before: log.stat().st_ino != before, what="it to be rotated once more")
        found = wait_until(lambda: room(log), what="a look at it")
        assert found[0] <= 64 * KIB + A_LINE
    scene.open("stop")
    scene.wait_for_file("unharmed")
    scene.leftovers_gone()


def test_what_a_child_left_behind_prints_does_not_delay_the_end_of_its_job(scene: Scene) -> None:
    job_id = scene.enqueue(f"yes & echo $! > {scene.quoted('pid')}; echo said")
    scene.worker()
    try:
        scene.wait_for(job_id, "completed")
    finally:
        os.kill(int(scene.wait_for_lines("pid", 1)[0]), 9)


def test_many_that_print_at_once_all_come_to_their_end(scene: Scene) -> None:
    scene.configure(log_limit="256KiB")
    ids = scene.enqueue_all([{"command": "seq 1 400000; echo the end"}] * 8)
    quick = scene.enqueue("echo quick", priority=-1)
    scene.worker("--count", "9")
    scene.wait_for(quick, "completed")
    for job_id in ids:
        scene.wait_for(job_id, "completed", timeout=40)
        left, gone = left_and_gone(scene, job_id)
        assert left.endswith(b"\n400000\nthe end\n")
        assert gone + len(left) == 2_688_895 + 8


def beginning_of(log: Path) -> bytes:
    """Empty while the log is rotated."""
    try:
        return log.read_bytes()[:200]
    except FileNotFoundError:
        return b""


def test_another_limit_holds_for_what_runs_within_a_heartbeat(scene: Scene) -> None:
    scene.configure(log_limit="1MiB", heartbeat="100ms", lease="2s")
    job_id = scene.enqueue(f"{scene.loop('stop', 'seq 1 10000')}")
    scene.worker()
    log = log_of(scene, job_id)
    wait_until(lambda: log.exists() and log.stat().st_size > 200 * KIB, what="some output")
    scene.configure(log_limit="64KiB")
    wait_until(lambda: b"(log-limit 64KiB)" in beginning_of(log), what="the limit to be kept")
    assert watch_room(log, 0.3)[0] <= 1.1 * 64 * KIB
    scene.open("stop")
    scene.wait_for(job_id, "completed")


def test_a_supervisor_leaks_no_descriptor_after_many_jobs_of_all_kinds(scene: Scene) -> None:
    worker = scene.worker("--count", "8")
    (supervisor,) = children(worker.pid)
    kinds = ["true", "echo said", "exec >&- 2>&-; true", "sleep 0.02; echo said", "no-such-program", "seq 1 20000"]

    def do(count: int) -> None:
        jobs = [{"command": kind, "max_attempts": 1} for kind in kinds] * (count // len(kinds))
        scene.enqueue_all_from_file([*jobs, {"argv": ["/no/such"], "max_attempts": 1}])
        scene.wait_for_all()

    do(60)
    wait_until(lambda: not any("/logs/" in path for path in descriptors(supervisor.pid).values()), what="closed logs")
    before = descriptors(supervisor.pid)
    do(600)
    wait_until(lambda: descriptors(supervisor.pid) == before, what="all to be closed")
    assert is_running(supervisor.pid)
