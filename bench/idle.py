"""CPU time and memory of an idle worker."""

from __future__ import annotations

import json
import time
from pathlib import Path

from _bench import Figure, Lab, Report, main

SETTLE, SECONDS = 3.0, 30.0
CPU_TARGET, MEMORY_TARGET = 0.2, 45.0


def idle(lab: Lab) -> Report:
    home = lab.new_home()
    lab.run("enqueue", "true", home=home)  # run one job first, so that all modules are loaded
    pid = int(json.loads(lab.run("worker", "start", "--count", "8", "--detach", "--json", home=home))["pid"])
    try:
        time.sleep(SETTLE)
        began, before = time.perf_counter(), on_core(pid)
        time.sleep(SECONDS)
        share = (on_core(pid) - before) / (time.perf_counter() - began) * 100
        memory = resident(pid)
    finally:
        lab.run("worker", "stop", home=home)
    report = Report(f"a worker of 8 slots that waits, over {SECONDS:.0f} s")
    report.figure(Figure("time on a core", share, CPU_TARGET, unit=" %"))
    report.figure(Figure("resident memory", memory, MEMORY_TARGET, unit=" MB"))
    return report


def on_core(pid: int) -> float:
    """Return seconds from schedstat, which counts nanoseconds. stat counts in steps of 10 ms, half of the expected value."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    main(idle, __doc__)
