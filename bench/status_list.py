"""`status` and the first page of `list` at a million jobs, beyond the start-up time."""

from __future__ import annotations

from _bench import Figure, Lab, Report, main, median, rounds
from _million import filled

JOBS = 1_000_000
ROUNDS, SECONDS = 15, 60.0
TARGET = 150.0

COMMANDS = {
    "status": ("status",),
    "list": ("list",),
    "list --state pending": ("list", "--state", "pending"),
    "list --queue mail": ("list", "--queue", "mail"),
    "list --limit 50 --json": ("list", "--limit", "50", "--json"),
}
FIGURES = ("status", "list")


def status_list(lab: Lab) -> Report:
    home = lab.new_home()
    filled(home, JOBS).close()
    samples = rounds(
        {
            "start": lambda: lab.time("--version", home=home),
            **{name: lambda words=words: lab.time(*words, home=home) for name, words in COMMANDS.items()},
        },
        count=ROUNDS,
        seconds=SECONDS,
    )
    report = Report(f"looking at {JOBS:,} jobs, beyond start-up")
    report.row("queuectl --version", f"{median(samples['start']) * 1000:.0f} ms", "")
    for name in COMMANDS:
        beyond = median([taken - start for taken, start in zip(samples[name], samples["start"], strict=True)]) * 1000
        report.row(f"queuectl {name}", f"{median(samples[name]) * 1000:.0f} ms", f"+ {beyond:.0f} ms")
        if name in FIGURES:
            report.figure(Figure(f"{name} beyond start-up", beyond, TARGET, unit=" ms"))
    return report


if __name__ == "__main__":
    main(status_list, __doc__)
