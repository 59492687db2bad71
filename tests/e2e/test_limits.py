"""Limits as people live with them: what a queue says, a job says and a host allows, over kills, on both stores."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene, make_scene
from tests.users import me

LOOK = "ulimit -Hn; ulimit -Hf; ulimit -St"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> Iterator[Scene]:
    if request.param == "sqlite":
        yield from make_scene(request.getfixturevalue("queuectl"), request.getfixturevalue("tmp_path"))
    else:
        hosts: Hosts = request.getfixturevalue("hosts")
        yield hosts.add("a")


def allow(scene: Scene, rules: str) -> None:
    scene.home.mkdir(mode=0o700, exist_ok=True)
    policy = scene.home / "policy.toml"
    policy.write_text(f'user = "{me()}"\n{rules}\n')
    policy.chmod(0o600)


def test_what_holds_is_the_least_of_job_queue_and_host(place: Scene) -> None:
    allow(place, 'max-open-files = 90\nmax-cpu-time = "1h"')
    place.queuectl("queue", "set", "q", "--open-files", "70", "--file-size", "1MiB", check=0)
    own, given, free = place.enqueue_all(
        [
            {"command": LOOK, "queue": "q", "open_files": 50, "cpu_time": "7s"},
            {"argv": ["/bin/sh", "-c", LOOK], "queue": "q"},
            {"command": LOOK},
        ]
    )
    more = place.enqueue(LOOK, open_files=91)
    place.drain()
    printed = [place.queuectl("logs", job_id, "--no-markers", check=0).out.split() for job_id in (own, given, free)]
    assert printed == [["50", "2048", "7"], ["70", "2048", "3600"], ["90", "unlimited", "3600"]]
    refused = place.job(more)
    assert (refused["state"], refused["attempts"]) == ("dead", 0)
    assert "max-open-files" in refused["error"]
    told = place.queuectl("audit", "--id", more, "--json", check=0).json
    assert "policy refuse" in {entry["what"] for entry in told}


def test_a_limit_outlives_the_worker_and_the_next_worker_reports_that_it_was_reached(place: Scene) -> None:
    busy = f"{place.note('begun')}; {place.until('go')}; while :; do :; done"
    job_id = place.enqueue(busy, cpu_time="1s", max_attempts=1)
    first = place.worker()
    place.wait_for_lines("begun", 1)
    first.process.send_signal(signal.SIGKILL)
    first.wait()
    place.worker()
    place.open("go")
    job = place.wait_for(job_id, "dead", timeout=60)
    assert (job["error"], job["runs"], job["crashes"]) == ("cpu time limit of 1s reached", 1, 0)
    (run,) = place.history(job_id)
    assert run["cpu_user_ms"] + run["cpu_system_ms"] >= 500


def test_a_job_that_is_changed_while_it_waits_runs_with_its_new_limits(place: Scene) -> None:
    job_id = place.enqueue(LOOK, open_files=50)
    place.queuectl("edit", job_id, "--open-files", "60", "--file-size", "2MiB", check=0)
    copy = place.queuectl("clone", job_id, "--open-files", "0", check=0).lines[0]
    place.drain()
    assert place.queuectl("logs", job_id, "--no-markers", check=0).out.split()[:2] == ["60", "4096"]
    assert place.queuectl("logs", copy, "--no-markers", check=0).out.split()[1] == "4096"
    assert place.job(copy)["limits"] == {"file_size": 2**21}
