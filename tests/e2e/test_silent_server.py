"""A database server that does not answer any more, as one that is frozen: what a worker does without it, it does in time."""

from __future__ import annotations

import signal

from tests.e2e.hosts import Hosts
from tests.e2e.scene import Scene
from tests.program import WorkerProcess
from tests.store.postgres.proxy import Proxy
from tests.wait import wait_until


class Stuck:
    """A worker that waits for an answer of its server, and a job that goes on until it gets SIGTERM."""

    def __init__(self, hosts: Hosts, proxy: Proxy, **fields: object) -> None:
        self.here: Scene = hosts.add("here")
        self.proxy = proxy
        far = hosts.add("far", url=proxy.url)
        note = self.here.note("ended")
        command = f"trap '{note}; exit 3' TERM; {self.here.note('begun')}; while :; do sleep 0.05; done"
        self.job = self.here.enqueue(command, max_retries=1, **fields)
        self.worker: WorkerProcess = far.worker("--name", "far")
        self.here.wait_for_file("begun")
        proxy.swallow()
        wait_until(proxy.answered.is_set, what="the worker to wait for an answer")

    def wait_for_end(self) -> None:
        """Until the job has got SIGTERM. The worker must not have needed the end of its wait for that."""
        self.here.wait_for_file("ended")
        assert not self.proxy.given_up.is_set()


def test_a_time_limit_is_kept_while_the_server_does_not_answer(hosts: Hosts) -> None:
    with Proxy(hosts.url) as proxy:
        stuck = Stuck(hosts, proxy, timeout=2)
        stuck.wait_for_end()
        proxy.cut()
        stuck.here.wait_for(stuck.job, "dead", timeout=40)
        assert stuck.here.outcomes(stuck.job) == ["timeout"]


def test_a_second_signal_ends_the_jobs_while_the_server_does_not_answer(hosts: Hosts) -> None:
    with Proxy(hosts.url) as proxy:
        stuck = Stuck(hosts, proxy)
        stuck.worker.send(signal.SIGTERM)
        stuck.worker.send(signal.SIGINT)  # another one: the kernel may deliver two of the same kind as one
        stuck.wait_for_end()
        proxy.cut()
        assert stuck.worker.wait() in (128 + signal.SIGTERM, 128 + signal.SIGINT)
        stuck.here.wait_for(stuck.job, "pending")
        assert stuck.here.outcomes(stuck.job) == ["released"]
