"""A server that dies, and a standby that takes its place: what the how-to for PostgreSQL says of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.wait import wait_until

JOBS = 40


@pytest.fixture
def pair() -> Iterator[postgres.Pair]:
    with postgres.pair() as made:
        yield made


@pytest.fixture
def hosts(pair: postgres.Pair, tmp_path: Path) -> Iterator[Hosts]:
    """Their address names both servers, and asks for the one that can be written."""
    made = Hosts(pair.standby, pair.url, tmp_path)
    try:
        yield made
    finally:
        killed = made.end()
    assert not killed, killed


def enqueue(scene: Scene, job_id: str, *, effects: Scene) -> bool:
    """Whether it was acknowledged."""
    return scene.queuectl("enqueue", "--id", job_id, effects.note("effects", job_id)).code == 0


def persist(scene: Scene, job_id: str, *, effects: Scene) -> str:
    """Until it is in: if `enqueue` cannot tell, its hint says to look."""
    wait_until(
        lambda: enqueue(scene, job_id, effects=effects) or scene.queuectl("show", job_id).code == 0,
        timeout=30,
        every=0.2,
        what=f"{job_id} to be enqueued",
    )
    return job_id


def test_with_a_synchronous_standby_no_acknowledged_job_is_lost_and_none_runs_twice(
    pair: postgres.Pair, hosts: Hosts
) -> None:
    a, b, c = hosts("a", "b", "c")
    a.configure(poll_interval="200ms")  # makes the store
    pair.follow(is_synchronous=True)
    for host in (a, b):
        host.worker("--count", "2")
    a.enqueue(f"{a.note('begun')}; {a.until('go')}; {a.note('effects', 'long')}", id="long")
    a.wait_for_file("begun")
    acknowledged = ["long"]
    for number in range(JOBS):
        if number == JOBS // 2:
            pair.fail_over()
        acknowledged.append(persist(c, f"j{number}", effects=a))
    a.open("go")
    for job_id in acknowledged:
        c.wait_for(job_id, "completed")
    assert sorted(a.lines("effects")) == sorted(acknowledged)
    assert c.outcomes("long") == ["completed"]


def test_what_an_asynchronous_standby_had_not_got_is_gone_and_the_rest_goes_on(
    pair: postgres.Pair, hosts: Hosts
) -> None:
    a, c = hosts("a", "c")
    a.configure(poll_interval="200ms")
    a.worker()
    assert enqueue(c, "early", effects=a)
    a.wait_for("early", "completed")
    pair.follow(is_synchronous=False)
    pair.standby.halt()
    assert enqueue(c, "late", effects=a)
    a.wait_for("late", "completed")
    pair.primary.halt()
    assert "cannot reach the database" in c.queuectl("enqueue", "true", check=1).err
    pair.standby.start()
    pair.fail_over()
    assert c.state("early") == "completed"
    assert "no job 'late'" in c.queuectl("show", "late", check=1).err
    # Its transactions have the numbers of those that were lost, and the worker has seen those.
    assert enqueue(c, "again", effects=a)
    a.wait_for("again", "completed")
    assert a.lines("effects") == ["early", "late", "again"]
