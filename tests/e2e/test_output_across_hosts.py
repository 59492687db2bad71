"""What a job prints on one host, read on another."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from queuectl import Queue
from tests import postgres
from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.wait import wait_until

KIB = 1024
STAMP = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def logs(scene: Scene, job_id: str, *options: str) -> bytes:
    return scene.queuectl("logs", *options, job_id, check=0).raw


def test_a_job_of_another_host_has_its_log_with_the_same_frames(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.worker("--name", "wa")
    job_id = b.enqueue("echo one; printf two; exit 3", max_retries=1)
    b.wait_for(job_id, "dead")
    found = logs(b, job_id)
    frames = rb"--- START %s run=1 worker=wa ---\none\ntwo\n--- END %s rc=3 duration=\d+\.\d{3}s ---\n" % (STAMP, STAMP)
    assert re.fullmatch(frames, found), found
    assert re.fullmatch(frames, logs(a, job_id))
    assert logs(b, job_id, "--no-markers") == logs(a, job_id, "--no-markers") == b"one\ntwo"
    assert logs(b, job_id, "--no-markers", "--tail", "1") == b"two"
    assert logs(b, job_id, "--tail", "2").startswith(b"two\n--- END ")
    assert b.queuectl("show", "--json", job_id, check=0).json["output"] == "one\ntwo"


def test_a_job_that_printed_nothing_elsewhere_has_empty_output(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.worker()
    job_id = b.enqueue("true")
    b.wait_for(job_id, "completed")
    assert b.queuectl("show", "--json", job_id, check=0).json["output"] == ""
    assert hosts.execute("select count(*) from queuectl.output") == [(0,)]


def test_runs_on_several_hosts_are_one_log(hosts: Hosts) -> None:
    a, b, c = hosts("a", "b", "c")
    job_id = c.enqueue('echo "run $QUEUECTL_RUN"; exit 1', max_retries=3, backoff_base=1)
    for number, scene in enumerate((a, b, a), start=1):
        worker = scene.worker("--name", f"w{number}")
        wait_until(lambda number=number: len(c.outcomes(job_id)) == number and c.state(job_id) != "processing")
        worker.end()
        c.queuectl("retry", job_id)
    for scene in (a, b, c):
        found = logs(scene, job_id)
        words = re.findall(rb"^run \d$|worker=w\d|rc=\d", found, re.MULTILINE)
        assert words == [
            word for number in (1, 2, 3) for word in (b"worker=w%d" % number, b"run %d" % number, b"rc=1")
        ], found
        assert logs(scene, job_id, "--no-markers", "--run", "2") == b"run 2\n"


def test_following_prints_every_byte_once_while_it_comes_and_ends_with_the_job(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    job_id = b.enqueue(f"echo one; {b.until('go')}; seq 1 5000; {b.until('end')}; printf '\\377\\000last'")
    with b.queuectl.start("logs", "-f", "--no-markers", job_id, stdout=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        a.worker()
        assert follower.stdout.readline() == b"one\n"
        b.open("go")
        assert follower.stdout.readline() == b"1\n"
        b.open("end")
        rest = follower.stdout.read()
        assert follower.wait(20) == 0
    assert rest == b"".join(b"%d\n" % number for number in range(2, 5001)) + b"\xff\0last"
    assert logs(b, job_id, "-f", "--no-markers") == b"one\n1\n" + rest
    with_frames = logs(b, job_id, "-f")
    assert with_frames == logs(b, job_id)
    assert with_frames.count(b"--- END ") == 1


def test_running_on_another_host_is_as_running_here(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.worker()
    done = b.queuectl("run", "--retries", "0", "echo out; echo err >&2; exit 7")
    assert (done.code, done.out) == (7, "out\nerr\n")
    shown = b.queuectl("run", "--json", "printf 'a\\377b'").json
    assert (shown["state"], shown["output"]) == ("completed", "a\ufffdb")


def test_the_last_bytes_of_a_long_output_stay(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    path = b.path("noise")
    path.write_bytes(os.urandom(3 * KIB * KIB))
    a.worker()
    job_id = b.enqueue(f"cat {b.quoted('noise')}")
    b.wait_for(job_id, "completed")
    kept = logs(b, job_id, "--no-markers")
    assert 64 * KIB <= len(kept) <= 128 * KIB
    assert path.read_bytes().endswith(kept)
    missing = 3 * KIB * KIB - len(kept)
    assert logs(b, job_id).split(b"\n", 2)[1] == b"--- %d bytes not kept ---" % missing
    output = b.queuectl("show", "--json", job_id, check=0).json["output"]
    assert output == path.read_bytes()[-64 * KIB :].decode("utf-8", "replace")
    assert f"{missing:,} bytes of earlier output of run 1 are gone" in b.queuectl("show", job_id, check=0).out
    assert "of earlier output" not in a.queuectl("show", job_id, check=0).out
    assert logs(a, job_id, "--no-markers") == path.read_bytes()


def test_output_limit_says_how_much_stays(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.configure(output_limit="200KiB")
    a.worker()
    job_id = b.enqueue("yes 123456789 | head -c 1000000")
    b.wait_for(job_id, "completed")
    assert 200 * KIB <= len(logs(b, job_id, "--no-markers")) <= 264 * KIB


def test_what_a_killed_worker_had_sent_is_there(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    worker = a.worker("--name", "wa")
    job_id = b.enqueue(f"echo sent; {b.until('never')}", max_retries=0)
    wait_until(lambda: b"sent\n" in logs(b, job_id), what="the output to arrive")
    worker.crash()
    successor = a.worker("--name", "wa2")
    wait_until(lambda: "lost" in b.outcomes(job_id), what="the job to be taken from the dead")
    found = logs(b, job_id, "--run", "1")
    assert re.fullmatch(rb"--- START %s run=1 worker=wa ---\nsent\n--- END %s lost ---\n" % (STAMP, STAMP), found), (
        found
    )
    b.queuectl("cancel", job_id)
    successor.end()


def test_a_removed_log_is_read_from_the_database(hosts: Hosts) -> None:
    (a,) = hosts("a")
    a.worker()
    job_id = a.enqueue("echo here")
    a.wait_for(job_id, "completed")
    for log in (a.home / "logs").iterdir():
        log.unlink()
    assert logs(a, job_id, "--no-markers") == b"here\n"


def test_the_python_api_reads_what_another_host_printed(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.worker()
    with Queue(home=b.home, db=b.db) as queue:
        job = queue.enqueue("echo one; echo two")
        assert b"".join(queue.follow(job.id)) == b"one\ntwo\n"
        assert queue.logs(job.id, markers=False, tail=1) == "two\n"


def test_what_was_printed_while_the_server_was_away_comes_when_it_is_back(tmp_path: Path) -> None:
    with postgres.fragile_server() as server:
        hosts = Hosts(server, server.database(server.create()), tmp_path)
        a, b = hosts("a", "b")
        job_id = b.enqueue(f"echo before; {b.until('down')}; echo meanwhile; {b.note('printed')}; {b.until('up')}")
        worker = a.worker()
        wait_until(lambda: logs(b, job_id, "--no-markers") == b"before\n", what="the output to arrive")
        server.halt()
        b.open("down")
        b.wait_for_file("printed")
        server.start()
        wait_until(lambda: logs(b, job_id, "--no-markers") == b"before\nmeanwhile\n", what="the rest to arrive")
        b.open("up")
        b.wait_for(job_id, "completed")
        worker.end()
        assert hosts.end() == []
