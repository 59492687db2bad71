"""Claiming and enqueuing at a million waiting jobs, against a thousand."""

from __future__ import annotations

import time
from collections.abc import Callable

from _bench import Figure, Lab, Report, Samples, main, median, paired, rounds
from _million import filled, new_job

from queuectl.job.outcome import Exited
from queuectl.job.retry import RetryPolicy
from queuectl.job.settle import settle
from queuectl.store.protocol import ClaimRequest, End, NewWorker, Store

FEW, MANY = 1_000, 1_000_000
SLOTS = 8
ROUNDS, SECONDS, WARM_UP = 300, 60.0, 20
TARGET = 1.5


class Bench:
    """One store whose number of waiting jobs stays the same: as many come in as are claimed."""

    def __init__(self, store: Store, home: str) -> None:
        self._store = store
        self._logs = home
        self._number = 0
        store.register(NewWorker("w", "host", 1, home, SLOTS, None)).close()

    def claim(self) -> float:
        began = time.perf_counter()
        claims = self._store.exchange("w", claim=ClaimRequest(SLOTS, None, "host", self._logs)).claims
        seconds = time.perf_counter() - began
        assert len(claims) == SLOTS
        policy = RetryPolicy(1000, 0)
        self._store.exchange(
            "w",
            ends=[
                End(claim, settle(claim, Exited(0), policy=policy, chance=0.5), 1, 0.0, 0.0, 0, 0) for claim in claims
            ],
        )
        self._store.enqueue([new_job(number) for number in range(SLOTS)])
        return seconds

    def enqueue(self) -> float:
        self._number += 1
        job = new_job(self._number)
        began = time.perf_counter()
        self._store.enqueue([job])
        return time.perf_counter() - began


def claim_flat(lab: Lab) -> Report:
    benches = {}
    for size in (FEW, MANY):
        home = lab.new_home()
        benches[size] = Bench(filled(home, size), str(home))
    report = Report(f"{SLOTS} claims, and one enqueue, each in a transaction that is on the disk")
    for verb in ("claim", "enqueue"):
        samples = measure({str(size): getattr(bench, verb) for size, bench in benches.items()})
        for size in (FEW, MANY):
            report.row(f"{verb} at {size:,} waiting jobs", f"{median(samples[str(size)]) * 1000:.3f} ms")
        report.figure(Figure(f"{verb}: a million / a thousand", paired(samples, str(MANY), str(FEW)), TARGET))
    return report


def measure(contenders: dict[str, Callable[[], float]]) -> Samples:
    return rounds(contenders, count=ROUNDS, seconds=SECONDS, warm_up=WARM_UP)


if __name__ == "__main__":
    main(claim_flat, __doc__)
