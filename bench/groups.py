"""The cost of a control group per run: `true` jobs with a real worker, with control groups and without (SQLite).

Without: a mount namespace hides the control groups from the worker. That needs root.
"""

from __future__ import annotations

import json
import sys

from _bench import Figure, Lab, Report, main, median, paired, rounds, time_command

from queuectl.process.cgroups import directory_of, find_parent

JOBS = 1500
ROUNDS, SECONDS = 7, 120.0
TARGET = 0.9
KINDS = {"shell": {"command": "true"}, "argv": {"argv": ["/bin/true"]}}


def groups(lab: Lab) -> Report:
    parent, own = find_parent(), directory_of()
    if parent is None or own is None:
        sys.exit("bench: groups: no control group can be created here")
    covers = {"groups": "exec", "none": f"mount -t tmpfs none '{own}' && exec"}
    report = Report(
        f"{JOBS:,} jobs, a worker of 4 slots; controllers: {', '.join(sorted(parent.controllers)) or 'none'}"
    )
    ways = {f"{kind}, {way}": (job, cover) for kind, job in KINDS.items() for way, cover in covers.items()}
    samples = rounds({way: lambda way=way: drain(lab, *ways[way]) for way in ways}, count=ROUNDS, seconds=SECONDS)
    for way in ways:
        report.row(way, "", f"{JOBS / median(samples[way]):,.0f}/s")
    for kind in KINDS:
        ratio = paired(samples, f"{kind}, none", f"{kind}, groups")
        report.figure(Figure(f"{kind}: with groups / without", ratio, TARGET, more_is_better=True))
    return report


def drain(lab: Lab, job: dict[str, object], cover: str) -> float:
    home, lines = lab.new_home(), lab.path / "jobs"
    lines.write_text((json.dumps(job) + "\n") * JOBS, encoding="utf-8")
    lab.run("enqueue", "--file", str(lines), home=home)
    words = [*lab.queuectl, "worker", "start", "--count", "4", "--drain"]
    return time_command(["unshare", "--mount", "sh", "-c", f'{cover} "$@"', "-", *words], env=lab.environment(home))


if __name__ == "__main__":
    main(groups, __doc__)
