"""The cost of resource limits: `true` jobs with a real worker, with limits and without (SQLite)."""

from __future__ import annotations

import json

from _bench import Figure, Lab, Report, main, median, paired, rounds

JOBS = 1500
ROUNDS, SECONDS = 7, 120.0
TARGETS = {"shell": 0.9, "argv": 0.5}  # without a shell, one is started to set the limits
LIMITS = {"memory": "2GiB", "cpu_time": 30, "open_files": 256, "processes": 4_000_000, "file_size": "1GiB"}

WAYS = {
    "shell": ({"command": "true"}, "sh -c true"),
    "shell, limited": ({"command": "true", **LIMITS}, "the same, five limits"),
    "shell, nice": ({"command": "true", **LIMITS, "nice": 5}, "the same, five limits and nice"),
    "argv": ({"argv": ["/bin/true"]}, "/bin/true"),
    "argv, limited": ({"argv": ["/bin/true"], **LIMITS}, "the same, five limits"),
}
AGAINST = {"shell, limited": "shell", "shell, nice": "shell", "argv, limited": "argv"}


def limits(lab: Lab) -> Report:
    samples = rounds({way: lambda way=way: drain(lab, WAYS[way][0]) for way in WAYS}, count=ROUNDS, seconds=SECONDS)
    report = Report(f"{JOBS:,} jobs, a worker of 4 slots")
    for way, (_, words) in WAYS.items():
        report.row(way, words, f"{JOBS / median(samples[way]):,.0f}/s")
    for limited, plain in AGAINST.items():
        report.figure(
            Figure(f"{limited} / {plain}", paired(samples, plain, limited), TARGETS[plain], more_is_better=True)
        )
    return report


def drain(lab: Lab, job: dict[str, object]) -> float:
    home, lines = lab.new_home(), lab.path / "jobs"
    lines.write_text((json.dumps(job) + "\n") * JOBS, encoding="utf-8")
    lab.run("enqueue", "--file", str(lines), home=home)
    return lab.time("worker", "start", "--count", "4", "--drain", home=home)


if __name__ == "__main__":
    main(limits, __doc__)
