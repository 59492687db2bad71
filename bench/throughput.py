"""`true` jobs a second: 4,000 of them enqueued beforehand, one worker of 8 slots from its start to its end.

In a new data directory, and in the steady state: right after as many jobs that printed something were pruned with their logs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import _peers as peers
from _bench import Figure, Lab, Report, main, median, paired, rounds, time_command

JOBS = 4000
ROUNDS, SECONDS = 7, 150.0
PEER_JOBS, PEER_ROUNDS, PEER_SECONDS = 500, 3, 60.0
TARGET = 0.75


def xargs(jobs: int, folder: Path) -> Callable[[], float]:
    lines = folder / f"lines-{jobs}"
    lines.write_text("".join(f"{number}\n" for number in range(jobs)), encoding="utf-8")
    return lambda: jobs / time_command(["xargs", "-P2", "-I{}", "sh", "-c", "true"], stdin=lines)


def fresh(lab: Lab) -> float:
    return run_jobs(lab, lab.new_home(), "true")


def steady(lab: Lab) -> float:
    """Creating files is slow for a while after many were removed: ext4 passes over inodes that were freed recently."""
    home = lab.new_home()
    run_jobs(lab, home, "echo done")
    lab.run("prune", "--older-than", "0s", "--yes", home=home)
    return run_jobs(lab, home, "true")


def run_jobs(lab: Lab, home: Path, command: str) -> float:
    """Run JOBS copies of `command` and return how many ended per second."""
    commands = lab.path / "commands"
    commands.write_text(f"{command}\n" * JOBS, encoding="utf-8")
    lab.run("enqueue", "--file", str(commands), home=home)
    seconds = lab.time("worker", "start", "--count", "8", "--drain", home=home)
    states = json.loads(lab.run("status", "--json", home=home))["states"]
    assert states["completed"] == JOBS, states
    return JOBS / seconds


def throughput(lab: Lab) -> Report:
    report = Report(f"{JOBS:,} `true` jobs")
    contenders = {"fresh": lambda: fresh(lab), "xargs": xargs(JOBS, lab.path), "steady": lambda: steady(lab)}
    samples = rounds(contenders, count=ROUNDS, seconds=SECONDS, warm_up=0)
    report.row("xargs -P2 sh -c true", f"{median(samples['xargs']):,.0f}/s", "1.00")
    for name, words in (("fresh", "new data directory"), ("steady", "after pruning as many")):
        ratio = paired(samples, over=name, under="xargs")
        report.row(
            f"queuectl worker start --count 8 --drain, {words}", f"{median(samples[name]):,.0f}/s", f"{ratio:.2f}"
        )
        report.figure(Figure(f"queuectl / xargs, {words}", ratio, TARGET, more_is_better=True))

    few = xargs(PEER_JOBS, lab.path)
    for name, peer in found_peers(lab).items():
        # Fewer jobs: the cost per job is the same, and some peers take a minute for 4,000.
        beside = rounds({name: peer, "xargs": few}, count=PEER_ROUNDS, seconds=PEER_SECONDS, warm_up=0)
        share = median([theirs / ours for theirs, ours in zip(beside[name], beside["xargs"], strict=True)])
        report.row(name, f"{median(beside[name]):,.0f}/s", f"{share:.2f}")
    return report


def found_peers(lab: Lab) -> dict[str, Callable[[], float]]:
    found: dict[str, Callable[[], float]] = {}
    if (python := peers.huey_python()) is not None:
        found["huey on SQLite, 8 threads"] = lambda: peers.huey(lab.new_home(), python, PEER_JOBS)
    if shutil.which("tsp"):
        found["task-spooler, 8 slots"] = lambda: peers.task_spooler(lab.new_home(), PEER_JOBS)
    if shutil.which("parallel"):
        found["GNU parallel -j8"] = lambda: peers.gnu_parallel(lab.new_home(), PEER_JOBS)
    return found


if __name__ == "__main__":
    main(throughput, __doc__)
