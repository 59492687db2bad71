"""From the exit of `enqueue` to the first instruction of the job, with an idle worker."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from _bench import Figure, Lab, Report, main, median, percentile

JOBS, SECONDS = 200, 90.0
PAUSE = 0.05  # between jobs, until the worker sleeps again
DEADLINE = 10.0
P50_TARGET, P99_TARGET = 10.0, 50.0


def latency(lab: Lab) -> Report:
    home, times = lab.new_home(), lab.path / "times"
    times.mkdir()
    lab.run("worker", "start", "--count", "2", "--detach", home=home)
    try:
        began = time.perf_counter()
        found = []
        for number in range(JOBS):
            found.append(one(lab, home, times / str(number)))
            if time.perf_counter() - began > SECONDS:
                break
            time.sleep(PAUSE)
    finally:
        lab.run("worker", "stop", home=home)
    p50, p99 = percentile(found, 0.50), percentile(found, 0.99)
    report = Report(f"from the exit of enqueue to the job's first instruction, {len(found)} jobs")
    report.row("p50", f"{p50:.2f} ms")
    report.row("p95", f"{percentile(found, 0.95):.2f} ms")
    report.row("p99", f"{p99:.2f} ms")
    report.row("slowest", f"{max(found):.2f} ms")
    report.row("of it, `sh` and `date` by themselves", f"{median(floor(lab.path / 'floor', 50)):.2f} ms")
    report.figure(Figure("p50", p50, P50_TARGET, unit=" ms"))
    report.figure(Figure("p99", p99, P99_TARGET, unit=" ms"))
    return report


def one(lab: Lab, home: Path, answer: Path) -> float:
    """Return milliseconds. Negative if the job started before `enqueue` exited."""
    lab.run("enqueue", f"date +%s%N >{answer}.part && mv {answer}.part {answer}", home=home)
    ended = time.time_ns()
    return (wait_for(answer) - ended) / 1e6


def floor(answer: Path, count: int) -> list[float]:
    """Return the cost of reading the clock in the job, which every sample includes."""
    found = []
    for _ in range(count):
        began = time.time_ns()
        subprocess.run(["/bin/sh", "-c", f"date +%s%N >{answer}"], check=True)
        found.append((int(answer.read_text()) - began) / 1e6)
    return found


def wait_for(answer: Path) -> int:
    deadline = time.monotonic() + DEADLINE
    while not answer.exists():
        if time.monotonic() > deadline:
            raise TimeoutError(f"no job wrote {answer}")
        time.sleep(0.005)
    return int(answer.read_text())


if __name__ == "__main__":
    main(latency, __doc__)
