"""Keeping house with PostgreSQL: retention on several hosts, a backup in a file, and the way back."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.e2e.hosts import Hosts
from tests.e2e.processes import process
from tests.wait import wait_until


def test_a_prune_by_hand_removes_the_jobs_of_all_hosts_and_the_logs_of_its_own(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    for scene in (a, b):
        scene.enqueue("echo hi")
        scene.queuectl("worker", "start", "--drain", check=0)
    (b.home / "logs").rename(b.home / "far away")  # on one disk every log can be reached
    answer = a.queuectl("prune", "--older-than", "0", "--yes", "--json", check=0).json
    assert answer["jobs"]["completed"] == 2
    assert (answer["logs"]["files"], answer["logs"]["elsewhere"]) == (1, 1)
    assert list((a.home / "logs").iterdir()) == []


def test_a_worker_leaves_what_ran_elsewhere_to_a_worker_of_that_host(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    ids = []
    for scene in (a, b):
        ids.append(scene.enqueue("echo hi"))
        scene.queuectl("worker", "start", "--drain", check=0)
    theirs = b.worker("--queue", "none")
    for _ in range(5):
        theirs.send(signal.SIGSTOP)
        wait_until(lambda: (found := process(theirs.pid)) and found.state == "T", what="the worker to stand still")
        if a.queuectl("config", "set", "retain-completed", "0s").code == 0:
            break
        theirs.send(signal.SIGCONT)  # it stood still in the middle of a transaction, with what we need locked
    a.worker("--queue", "none")
    wait_until(lambda: [job.id for job in a.store.jobs()] == ids[1:], what="that of a to be removed")
    assert list((a.home / "logs").iterdir()) == []
    theirs.send(signal.SIGCONT)
    wait_until(lambda: not list((b.home / "logs").iterdir()), what="that of b to be removed")
    assert a.store.count() == 0


def test_a_store_comes_back_from_a_backup_of_it(hosts: Hosts, tmp_path: Path) -> None:
    (a,) = hosts("a")
    a.configure(max_retries=7)
    a.enqueue("echo hi", id="ran", tags=["t"])
    a.queuectl("worker", "start", "--drain", check=0)
    a.enqueue("sleep 1000", id="long")
    worker = a.worker("--name", "bee")
    wait_until(lambda: a.job("long")["state"] == "processing", what="it to run")
    file = tmp_path / "b.db"
    a.queuectl("backup", file, check=0)
    assert "bee" in a.queuectl("restore", file, "--yes", check=1).err
    worker.kill()
    a.enqueue("true", id="new")
    before = a.queuectl("show", "ran", "--json", check=0).json
    answer = a.queuectl("restore", file, "--yes", "--json", check=0).json
    assert (answer["counts"]["jobs"], answer["given_back"]) == (2, 1)
    assert {job.id: job.state.value for job in a.store.jobs()} == {"ran": "completed", "long": "pending"}
    assert a.queuectl("show", "ran", "--json", check=0).json == before
    assert a.queuectl("config", "get", "max-retries", check=0).out == "7\n"
    kept = a.queuectl("--db", answer["kept"], "list", "--quiet", check=0).lines
    assert sorted(kept) == ["long", "new", "ran"]
    a.queuectl("cancel", "long", check=0)
    a.enqueue("true", id="after")
    a.queuectl("worker", "start", "--drain", check=0)
    assert a.job("after")["state"] == "completed"
