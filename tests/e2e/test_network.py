"""A machine whose network is cut: a worker in a network of its own, and a cable between it and the server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres
from tests.e2e.hosts import Hosts
from tests.needs import require
from tests.wait import wait_until

SERVER, WORKER = "10.213.7.1", "10.213.7.2"  # addresses of these two namespaces only


class Cable:
    """Two namespaces with nothing in them but the two ends of a cable."""

    def __init__(self) -> None:
        self.server, self.worker = (f"queuectl-{os.getpid()}-{end}" for end in ("s", "w"))
        _ip("netns", "add", self.server)
        _ip("netns", "add", self.worker)
        _ip("-n", self.server, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", self.worker)
        for place, address in ((self.server, SERVER), (self.worker, WORKER)):
            _ip("-n", place, "address", "add", f"{address}/30", "dev", "cable")
            _ip("-n", place, "link", "set", "cable", "up")

    def cut(self) -> None:
        """Drop all packets without an error."""
        _ip("-n", self.server, "link", "set", "cable", "down")

    def mend(self) -> None:
        _ip("-n", self.server, "link", "set", "cable", "up")

    def remove(self) -> None:
        for place in (self.server, self.worker):
            _ip("netns", "delete", place)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def cable() -> Iterator[Cable]:
    try:
        made = Cable()
    except (OSError, subprocess.CalledProcessError) as exc:
        said = exc.stderr.decode() if isinstance(exc, subprocess.CalledProcessError) else str(exc)
        require("network namespaces", False, f"ip netns: {said.strip()}")
        raise
    yield made
    made.remove()


def test_a_worker_whose_network_is_cut_keeps_its_job_and_settles_it_afterwards(cable: Cable, tmp_path: Path) -> None:
    with postgres.fragile_server(inside=cable.server, listen=SERVER) as server:
        url = server.database(server.create())
        hosts = Hosts(server, url, tmp_path)
        here, far = hosts.add("here"), hosts.add("far", url=url.replace("@/", f"@{SERVER}/").partition("?")[0])
        here.configure(heartbeat="500ms", lease="2m")
        job_id = here.enqueue(f"{here.note('begun')}; {here.until('go')}; {here.note('ended')}; exit 4", max_retries=1)
        worker = far.worker("--name", "far", through=["ip", "netns", "exec", cable.worker], ready=False)
        try:
            here.wait_for_file("begun")
            cable.cut()
            here.open("go")
            here.wait_for_file("ended")
            wait_until(lambda: "cannot reach the database" in worker.output, what="the worker to say so")
            assert here.state(job_id) == "processing"
            cable.mend()
            job = here.wait_for(job_id, "dead", timeout=40)
            assert (job["exit_code"], job["runs"], job["crashes"]) == (4, 1, 0)
            here.queuectl("worker", "stop", "far", check=0)
            assert worker.wait() == 0
        finally:
            assert hosts.end() == []
