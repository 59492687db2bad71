"""`true` jobs per second on PostgreSQL: 4,000 enqueued beforehand, one worker with 8 slots from its start to its exit."""

from __future__ import annotations

import json

import _peers as peers
from _bench import Figure, Lab, Report, median, paired, rounds
from _postgres import Server, main_with_server
from throughput import JOBS, PEER_JOBS, ROUNDS, xargs

SECONDS = 120.0  # of each half
XARGS_TARGET, PROCRASTINATE_TARGET = 0.45, 2.0
JIT_TARGET = 1 / 1.2  # of the rate without JIT


def queuectl(lab: Lab, server: Server, jobs: int, **settings: str) -> float:
    home, url, commands = lab.new_home(), server.new_database(), lab.path / "commands"
    server.set(url, **settings)
    commands.write_text("true\n" * jobs, encoding="utf-8")
    lab.run("--db", url, "enqueue", "--file", str(commands), home=home)
    seconds = lab.time("--db", url, "worker", "start", "--count", "8", "--drain", home=home)
    states = json.loads(lab.run("--db", url, "status", "--json", home=home))["states"]
    assert states["completed"] == jobs, states
    return jobs / seconds


def throughput(lab: Lab, server: Server) -> Report:
    report = Report(f"{JOBS:,} `true` jobs on {server.version()}, stock settings")
    ours = {
        "queuectl": lambda: queuectl(lab, server, JOBS),
        "jit off": lambda: queuectl(lab, server, JOBS, jit="off"),
        "xargs": xargs(JOBS, lab.path),
    }
    samples = rounds(ours, count=ROUNDS, seconds=SECONDS, warm_up=0)
    ratio = paired(samples, "queuectl", "xargs")
    report.row("xargs -P2 sh -c true", f"{median(samples['xargs']):,.0f}/s", "1.00")
    report.row("queuectl worker start --count 8 --drain", f"{median(samples['queuectl']):,.0f}/s", f"{ratio:.2f}")
    report.figure(Figure("queuectl / xargs", ratio, XARGS_TARGET, more_is_better=True))
    report.row("the same on a server with jit = off", f"{median(samples['jit off']):,.0f}/s", "")
    same = paired(samples, "queuectl", "jit off")
    report.figure(Figure("stock settings / jit = off", same, JIT_TARGET, more_is_better=True))

    if (python := peers.procrastinate_python()) is None:
        print("skipped: procrastinate (BENCH_PROCRASTINATE=/path/to/python of an environment that has it)")
        return report
    beside = rounds(
        {
            # Fewer jobs for the peer: the cost per job is the same, and 4,000 would take a minute.
            "procrastinate": lambda: peers.procrastinate(lab.new_home(), python, server.new_database(), PEER_JOBS),
            "xargs": xargs(PEER_JOBS, lab.path),
            "queuectl": lambda: queuectl(lab, server, JOBS),
        },
        count=ROUNDS,
        seconds=SECONDS,
        warm_up=0,
    )
    share = paired(beside, "procrastinate", "xargs")
    report.row("procrastinate, concurrency 8", f"{median(beside['procrastinate']):,.0f}/s", f"{share:.2f}")
    times = paired(beside, "queuectl", "procrastinate")
    report.figure(Figure("queuectl / procrastinate", times, PROCRASTINATE_TARGET, more_is_better=True))
    return report


if __name__ == "__main__":
    main_with_server(throughput, __doc__)
