"""Claiming and enqueuing at a million waiting jobs, compared with a thousand: without limits, and with all kinds of limits."""

from __future__ import annotations

from collections.abc import Callable

from _bench import Figure, Lab, Report, Samples, main, median, paired, rounds
from _crowd import SLOTS, Worker, crowded
from _million import filled

from queuectl.store.open import open_store

FEW, MANY = 1_000, 1_000_000
ROUNDS, SECONDS, WARM_UP = 300, 30.0, 20
TARGET = 1.5


def claim_flat(lab: Lab) -> Report:
    report = Report(f"{SLOTS} claims, and one enqueue, each in a transaction that is on the disk")
    compare(report, "", {size: plain(lab, size) for size in (FEW, MANY)})
    compare(report, ", all in use", {size: in_use(lab, size) for size in (FEW, MANY)})
    return report


def plain(lab: Lab, size: int) -> Worker:
    home = lab.new_home()
    return Worker(filled(home, size), str(home))


def in_use(lab: Lab, size: int, url: str | None = None) -> Worker:
    home = lab.new_home()
    home.mkdir()
    return crowded(open_store(str(home), url), str(home), size)


def compare(report: Report, how: str, workers: dict[int, Worker]) -> None:
    few, many = workers
    for verb in ("claim", "enqueue"):
        samples = measure({str(size): getattr(worker, verb) for size, worker in workers.items()})
        for size in workers:
            report.row(f"{verb} at {size:,} waiting jobs{how}", f"{median(samples[str(size)]) * 1000:.3f} ms")
        ratio = paired(samples, str(many), str(few))
        report.figure(Figure(f"{verb}{how}: {many:,} / {few:,}", ratio, TARGET))


def measure(contenders: dict[str, Callable[[], float]]) -> Samples:
    return rounds(contenders, count=ROUNDS, seconds=SECONDS, warm_up=WARM_UP)


if __name__ == "__main__":
    main(claim_flat, __doc__)
