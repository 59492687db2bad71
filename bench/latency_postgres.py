"""From enqueue to the job's first instruction on PostgreSQL, with two idle workers of two data directories."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from _bench import Figure, Lab, Report, median, percentile
from _postgres import Server, main_with_server
from latency import PAUSE, floor, wait_for

from queuectl.jobs.spec import NewJob
from queuectl.store.open import open_store

COMMANDS, CALLS = 60, 200
HOSTS = ("one", "two")
P50_TARGET = 20.0


@contextmanager
def worker(lab: Lab, url: str, host: str) -> Iterator[Path]:
    """Start an idle worker with its own data directory and host name."""
    home = lab.new_home()
    lab.run("--db", url, "worker", "start", "--count", "1", "--detach", home=home, QUEUECTL_HOST=host)
    try:
        yield home
    finally:
        lab.run("--db", url, "worker", "stop", home=home, QUEUECTL_HOST=host)


def by_command(lab: Lab, url: str) -> Callable[[str], int]:
    """Enqueue from a shell. Measure from its exit, because `startup.py` measures its start."""
    home = lab.new_home()

    def enqueue(command: str) -> int:
        lab.run("--db", url, "enqueue", command, home=home)
        return time.time_ns()

    return enqueue


def by_call(lab: Lab, url: str) -> Callable[[str], int]:
    """Enqueue from a connected program. Measure from the call, including the commit."""
    store = open_store(str(lab.new_home()), url)

    def enqueue(command: str) -> int:
        began = time.time_ns()
        store.enqueue([a_job(command)])
        return began

    return enqueue


def a_job(command: str) -> NewJob:
    return NewJob(command, None, None, "default", 0, 3, False, 2.0, None, None, None, "/", None, ())


def measure(enqueue: Callable[[str], int], answers: Path, jobs: int) -> list[float]:
    """Return milliseconds."""
    answers.mkdir()
    found = []
    for number in range(jobs):
        answer = answers / str(number)
        began = enqueue(f"date +%s%N >{answer}.part && mv {answer}.part {answer}")
        found.append((wait_for(answer) - began) / 1e6)
        time.sleep(PAUSE)
    return found


def latency(lab: Lab, server: Server) -> Report:
    url = server.new_database()
    with ExitStack() as workers:
        for host in HOSTS:
            workers.enter_context(worker(lab, url, host))
        measure(by_call(lab, url), lab.path / "warm-up", 10)
        commands = measure(by_command(lab, url), lab.path / "commands", COMMANDS)
        calls = measure(by_call(lab, url), lab.path / "calls", CALLS)
        with server.connect(url) as db:
            shares = dict(db.execute("select host, count(*) from queuectl.jobs group by host").fetchall())
        assert set(shares) == set(HOSTS), shares
    report = Report(
        f"from enqueue to the job's first instruction, two idle workers on {server.version()}, stock settings"
    )
    report.row("", f"exit of `enqueue` ({COMMANDS} jobs)", f"call of enqueue() ({CALLS} jobs)")
    for name, part in (("p50", 0.50), ("p95", 0.95), ("p99", 0.99), ("slowest", 1.0)):
        report.row(name, *(f"{percentile(found, part):.2f} ms" for found in (commands, calls)))
    by_itself = f"{median(floor(lab.path / 'floor', 50)):.2f} ms"
    report.row("of it, `sh` and `date` by themselves", by_itself, by_itself)
    report.figure(Figure("p50 from the call of enqueue()", percentile(calls, 0.50), P50_TARGET, unit=" ms"))
    return report


if __name__ == "__main__":
    main_with_server(latency, __doc__)
