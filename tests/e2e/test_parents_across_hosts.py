"""What parents printed on other hosts, where their child can read it."""

from __future__ import annotations

import signal

from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.wait import wait_until

READ = 'for id in $QUEUECTL_PARENTS; do cat "$QUEUECTL_PARENT_LOGS/$id.log"; done'


def printed(scene: Scene, job_id: str) -> list[str]:
    return scene.queuectl("logs", job_id, "--no-markers", check=0).lines


def said(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("---")]


def folders(scene: Scene) -> list[str]:
    return [path.name for path in (scene.home / "logs").glob("*.parents")]


def test_a_child_reads_what_its_parents_printed_on_another_host_and_on_its_own(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.worker("--queue", "of-a")
    b.worker("--queue", "of-b")
    far = a.enqueue("echo far; printf 'no end'", queue="of-a")
    near = a.enqueue("echo near", queue="of-b")
    words = f'{READ}; ls "$QUEUECTL_PARENT_LOGS"; stat -L -c %a "$QUEUECTL_PARENT_LOGS"/*'
    child = a.enqueue(words, queue="of-b", after=[far, near])
    b.wait_for(child, "completed")
    lines = printed(b, child)
    names = sorted([f"{far}.log", f"{near}.log"])
    assert said(lines) == ["far", "no end", "near", *names, "600", "600"]
    frames = [line.split()[1] for line in lines if line.startswith("---")]
    assert frames == ["START", "END", "START", "END"]
    assert folders(b) == []


def test_a_child_reads_the_last_run_of_a_parent_though_a_log_of_an_earlier_one_is_here(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    parent = b.enqueue('echo "run $QUEUECTL_RUN"; [ "$QUEUECTL_RUN" = 2 ]', max_retries=1)
    b.drain()
    b.queuectl("retry", parent, check=0)
    a.drain()
    child = b.enqueue(READ, after=[parent])
    b.drain()
    assert said(printed(b, child)) == ["run 2"]


def test_what_a_parent_printed_elsewhere_is_bounded(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.queuectl("config", "set", "output-limit", "1KiB", check=0)
    a.worker("--queue", "of-a")
    b.worker("--queue", "of-b")
    far = a.enqueue("seq 100000", queue="of-a")
    child = a.enqueue(READ, queue="of-b", after=[far])
    b.wait_for(child, "completed")
    lines = printed(b, child)
    assert lines[1].endswith("bytes not kept ---")
    assert lines[-2] == "100000"
    assert len("\n".join(lines)) < 80 * 1024


def test_a_child_is_put_off_while_what_its_parents_printed_cannot_be_brought(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    a.worker("--queue", "of-a")
    far = a.enqueue("echo far", queue="of-a")
    child = a.enqueue(READ, queue="of-b", after=[far], max_retries=1)
    a.wait_for(far, "completed")
    hosts.execute("alter table queuectl.output rename column data to lost")
    worker = b.worker("--queue", "of-b")
    wait_until(lambda: "released" in b.outcomes(child))
    assert b.job(child)["attempts"] == 0
    hosts.execute("alter table queuectl.output rename column lost to data")
    b.wait_for(child, "completed")
    assert said(printed(b, child)) == ["far"]
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert f"{child}: the output of its parents could not be fetched" in worker.output


def test_what_lies_in_the_place_of_the_files_makes_way(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    far = a.enqueue("echo far")
    a.drain()
    child = b.enqueue(READ, after=[far])
    b.queuectl("enqueue", "true", "--id", "first", check=0)
    b.drain("--queue", "unused")
    (b.home / "logs" / f"{child}.parents").write_text("in the way")
    b.drain()
    assert said(printed(b, child)) == ["far"]


def test_the_files_stay_for_a_run_that_is_adopted_and_go_when_it_has_ended(hosts: Hosts) -> None:
    a, b = hosts("a", "b")
    far = a.enqueue("echo far")
    a.drain()
    child = a.enqueue(f"{b.until('go')}; {READ}", after=[far])
    killed = b.worker()
    b.wait_for(child, "processing")
    wait_until(lambda: folders(b) == [f"{child}.parents"])
    killed.kill()
    b.worker()
    b.open("go")
    b.wait_for(child, "completed")
    assert said(printed(b, child)) == ["far"]
    assert folders(b) == []
