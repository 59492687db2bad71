"""Several machines on one PostgreSQL: what one does, all see; what one loses, another takes; and the server may go and come."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter

import pytest

from tests.e2e.hosts import Hosts, server_of
from tests.e2e.processes import carrying, process
from tests.store.postgres.proxy import Proxy
from tests.wait import wait_until

FULL = os.environ.get("QUEUECTL_TEST_FULL") == "1"
JOBS = 2000 if FULL else 300


# ── from any machine ────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_host_enqueues_another_runs_and_a_third_can_cancel(hosts: Hosts) -> None:
    a, b, c = hosts("a", "b", "c")
    b.worker("--name", "wb")
    job_id = a.enqueue(f"{a.note('begun')}; {a.until('never')}")
    a.wait_for_file("begun")
    listed = c.queuectl("worker", "list", "--json", check=0).json
    assert [(found["id"], found["host"], found["busy"], found["state"]) for found in listed] == [
        ("wb", "b", 1, "running")
    ]
    c.queuectl("cancel", job_id, check=0)
    assert a.state(job_id) == "cancelled"
    assert [run["host"] for run in c.history(job_id)] == ["b"]


def test_a_worker_is_stopped_by_its_name_from_anywhere_but_not_by_chance(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    at_a, at_b = a.worker("--name", "wa"), b.worker("--name", "wb")
    b.queuectl("worker", "stop", check=0)  # those of this home
    assert at_b.wait() == 0
    assert at_a.process.poll() is None
    b.queuectl("worker", "stop", "wa", check=0)
    assert at_a.wait() == 0
    again = a.worker("--name", "wa")
    b.queuectl("worker", "stop", "--all", check=0)
    assert again.wait() == 0


def test_what_concerns_workers_of_other_hosts_is_said_with_all(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    job_id = b.enqueue("echo x")
    worker = a.worker("--name", "wa")
    b.wait_for(job_id, "completed")
    assert b.queuectl("reset", "--yes", check=1).err.splitlines()[1] == "hint: queuectl worker stop --all"
    said = b.queuectl("worker", "stop", check=0).out
    assert said == "no worker of this data directory is running; 1 elsewhere: queuectl worker stop --all\n"
    assert b.queuectl("worker", "stop", "--json", check=0).json == {"done": [], "refused": []}
    assert f"database: {hosts.url}" in worker.output
    sheet = b.queuectl("show", job_id, check=0).lines
    assert any("HOST" in line for line in sheet)
    assert any(line.endswith(f"{job_id}.log on a") for line in sheet)
    b.queuectl("worker", "stop", "--all", check=0)
    assert worker.wait() == 0
    assert "other hosts and data directories" in b.queuectl("reset", "--yes", check=0).out
    assert (a.home / "logs" / f"{job_id}.log").exists()


def test_wait_and_run_reach_across_hosts(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    b.worker()
    ran = a.queuectl("run", "--max-retries", "1", "echo across; exit 7")
    assert (ran.code, ran.out) == (7, "across\n")
    job_id = a.enqueue(a.until("go"))
    waiting = a.queuectl.start("wait", job_id)
    a.open("go")
    assert waiting.wait(20) == 0


# ── a host that is gone ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_jobs_of_a_host_that_is_gone_are_taken_after_its_lease(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.configure(heartbeat="200ms", lease="1s")
    said = f"echo run $QUEUECTL_RUN; {a.note('runs', '$QUEUECTL_WORKER')}"
    job_id = a.enqueue(f"{said}; [ $QUEUECTL_RUN = 2 ] || {a.until('never')}")
    worker = a.worker("--name", "wa")
    a.wait_for_lines("runs", 1)
    wait_until(lambda: "run 1" in b.queuectl("logs", job_id).lines, what="the output to arrive")
    b.worker("--name", "wb")
    worker.kill()
    job = b.wait_for(job_id, "completed")
    assert (job["crashes"], job["runs"], job["attempts"]) == (1, 2, 0)
    assert a.lines("runs") == ["wa", "wb"]
    assert [run["last_output"] for run in b.history(job_id)] == ["run 1", "run 2"]
    for pid in carrying(f"QUEUECTL_JOB_ID={job_id}"):  # of host a: only this test can terminate it
        os.kill(pid, signal.SIGKILL)


def test_a_worker_that_slept_past_its_lease_ends_its_copies_and_changes_nothing(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.configure(heartbeat="200ms", lease="1s")
    job_id = a.enqueue(f"{a.note('runs', '$QUEUECTL_WORKER')}; {a.until('go')}; {a.note('ends', '$QUEUECTL_WORKER')}")
    worker = a.worker("--name", "wa")
    a.wait_for_lines("runs", 1)
    (first,) = leaders(job_id)
    worker.send(signal.SIGSTOP)
    b.worker("--name", "wb")
    a.wait_for_lines("runs", 2)
    worker.send(signal.SIGCONT)
    wait_until(lambda: process(first) is None, what="the copy to be ended by who started it")
    a.open("go")
    job = b.wait_for(job_id, "completed")
    assert (job["worker"], job["runs"], job["crashes"]) == ("wb", 2, 1)
    assert a.lines("ends") == ["wb"]
    wait_until(lambda: "other workers took over 1 job" in worker.output, what="the worker to log it")
    wait_until(lambda: a.workers() == {"wa": "running", "wb": "running"}, what="it to have restarted")
    a.wait_for(a.enqueue("true"), "completed")


def leaders(job_id: str) -> list[int]:
    return [pid for pid in carrying(f"QUEUECTL_JOB_ID={job_id}") if (found := process(pid)) and found.session == pid]


# ── the server goes and comes ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_job_that_ends_while_the_server_is_gone_is_settled_when_it_is_back(
    fragile: Hosts, how: signal.Signals
) -> None:
    (a,) = fragile("a")
    job_id = a.enqueue(f"{a.note('begun')}; {a.until('go')}; {a.note('ended')}; exit 3", max_retries=1)
    worker = a.worker()
    a.wait_for_file("begun")
    server_of(fragile).halt(how)
    a.open("go")
    a.wait_for_file("ended")
    wait_until(lambda: "cannot reach the database" in worker.output, what="the worker to say so")
    server_of(fragile).start()
    job = a.wait_for(job_id, "dead")
    assert (job["exit_code"], job["attempts"], job["runs"], job["crashes"]) == (3, 1, 1, 0)
    wait_until(lambda: "answers again" in worker.output, what="the worker to say so")
    a.wait_for(a.enqueue("true"), "completed")
    assert "Traceback" not in worker.output


def test_commands_fail_soon_and_in_one_line_while_the_server_is_gone(fragile: Hosts) -> None:
    (a,) = fragile("a")
    a.enqueue("true")
    server_of(fragile).halt()
    for words in (["enqueue", "true"], ["status"], ["list"], ["worker", "start"]):
        began = time.monotonic()
        said = a.queuectl(*words)
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith("error: cannot reach the database postgresql://")
        assert len(said.err.splitlines()) == 2
        assert time.monotonic() - began < 10


def test_a_worker_that_has_nothing_to_do_can_go_while_the_server_is_gone(fragile: Hosts) -> None:
    a, b = fragile("a", "b")
    a.configure(heartbeat="200ms", lease="500ms")
    first, second = a.worker(), b.worker()
    server_of(fragile).halt()
    first.send(signal.SIGTERM)
    assert first.wait() == 0  # it could not deregister; its heartbeat shows that it is dead
    wait_until(lambda: "cannot reach the database" in second.output, what="the other to notice")
    second.send(signal.SIGTERM)
    wait_until(lambda: "finishing" in second.output, what="the other to hear it")
    second.send(signal.SIGTERM)
    assert second.wait() == 128 + signal.SIGTERM


def test_a_line_that_swallows_everything_costs_no_job(hosts: Hosts) -> None:
    with Proxy(hosts.url) as proxy:
        a, b = hosts.add("a", url=proxy.url), hosts.add("b")
        b.configure(heartbeat="500ms", lease="1m")
        job_id = b.enqueue(f"{b.note('begun')}; {b.until('go')}; {b.note('ended')}")
        worker = a.worker("--name", "wa")
        b.wait_for_file("begun")
        began = time.monotonic()
        a.queuectl("--version")
        start = time.monotonic() - began  # of the program on this host, however busy it is
        proxy.swallow()
        b.open("go")
        b.wait_for_file("ended")
        began = time.monotonic()
        said = a.queuectl("status")
        assert (said.code, said.out) == (1, "")
        assert "cannot reach the database" in said.err
        assert time.monotonic() - began < 10 + start
        wait_until(lambda: "cannot reach the database" in worker.output, what="the worker to say so")
        proxy.cut()  # what was sent may have arrived: only the answers were kept back
        job = b.wait_for(job_id, "completed")
        assert (job["runs"], job["crashes"]) == (1, 0)
        b.wait_for(b.enqueue("true"), "completed")
        b.queuectl("worker", "stop", "wa", check=0)
        assert worker.wait() == 0


def test_three_hosts_a_restart_and_two_kills_run_every_job_once(fragile: Hosts) -> None:
    a, b, c = fragile("a", "b", "c")
    a.configure(heartbeat="500ms", lease="3s")
    marked = f"{a.note('lines', '$QUEUECTL_JOB_ID')}"
    a.enqueue_all_from_file([{"command": marked, "id": f"j{number}"} for number in range(JOBS)])
    workers = {scene: scene.worker("--count", "4") for scene in (a, b, c)}
    for part, scene in ((5, a), (2, b)):
        wait_until(lambda part=part: len(a.lines("lines")) > JOBS // part, timeout=60, what="some to be done")
        workers[scene].kill()
        workers[scene] = scene.worker("--count", "4")
        if scene is a:
            server_of(fragile).halt(signal.SIGKILL)
            server_of(fragile).start()
    a.wait_for_all(timeout=120)
    assert a.count("completed") == JOBS
    seen = Counter(a.lines("lines"))
    assert len(seen) == JOBS
    taken = {job.id for job in a.store.jobs() if job.crashes}
    twice = {job_id for job_id, times in seen.items() if times > 1}
    assert twice <= taken
    assert len(twice) <= 8  # two workers of four slots were killed
    # And what each had claimed ahead, twice as many: another host, which may be sooner, cannot tell it from what ran.
    assert len(taken) <= 24
