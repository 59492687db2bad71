"""`batch show` of a batch of a million jobs, beyond the start-up time."""

from __future__ import annotations

from _bench import Figure, Lab, Report, main, median, rounds
from _million import AT_ONCE, new_job

from queuectl.operations.enqueue import gc_paused
from queuectl.store.open import open_store

JOBS = 1_000_000
ROUNDS, SECONDS = 9, 60.0
TARGET = 500.0


def batch_show(lab: Lab) -> Report:
    home = lab.new_home()
    store = open_store(str(home))
    with gc_paused():
        for first in range(0, JOBS, AT_ONCE):
            store.enqueue([new_job(number)._replace(batch="all") for number in range(first, first + AT_ONCE)])
        store.enqueue([new_job(number)._replace(batch="few") for number in range(1_000)])
    store.close()
    samples = rounds(
        {
            "start": lambda: lab.time("--version", home=home),
            **{name: lambda name=name: lab.time("batch", "show", name, home=home) for name in ("few", "all")},
        },
        count=ROUNDS,
        seconds=SECONDS,
    )
    report = Report("how far a batch is, beyond start-up")
    for name, jobs in {"few": 1_000, "all": JOBS}.items():
        beyond = median([taken - start for taken, start in zip(samples[name], samples["start"], strict=True)]) * 1000
        report.row(f"batch show, {jobs:,} jobs", f"{median(samples[name]) * 1000:.0f} ms", f"+ {beyond:.0f} ms")
    report.figure(Figure(f"batch show at {JOBS:,} jobs, beyond start-up", beyond, TARGET, unit=" ms"))
    return report


if __name__ == "__main__":
    main(batch_show, __doc__)
