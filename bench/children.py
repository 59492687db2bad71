"""The settlement of a job with ten thousand children, compared with that of a job without children."""

from __future__ import annotations

import time
from pathlib import Path

from _bench import Figure, Lab, Report, main, median, paired, rounds
from _million import new_job

from queuectl.jobs.dependencies import Dependency
from queuectl.jobs.outcome import Exited, settle
from queuectl.jobs.retry import RetryPolicy
from queuectl.store.open import open_store
from queuectl.store.store import Store
from queuectl.store.types import ClaimRequest, End, NewWorker

CHILDREN = 10_000
ROUNDS, SECONDS = 9, 60.0
SLOTS = 8
TARGET = 50.0  # ms


class Parents:
    """A worker without processes, in its own store."""

    def __init__(self, store: Store, home: Path) -> None:
        self._store = store
        self._request = ClaimRequest(1, ("parents",), "host", str(home))
        self._number = 0
        self.told: list[float] = []
        home.mkdir(exist_ok=True)
        store.claims.register(NewWorker("w", "host", 1, str(home), SLOTS, None)).close()

    def end_one(self, children: int) -> float:
        """Return the time of the exchange that settles a job with `children` children; `told` is the time until all are updated."""
        self._number += 1
        parent = f"parent-{self._number}"
        child = new_job(0)._replace(queue="children", depends_on=(Dependency(parent),))
        self._store.enqueue([new_job(0)._replace(id=parent, queue="parents"), *[child] * children])
        (claim,) = self._store.claims.exchange("w", claim=self._request).claims
        end = End(claim, settle(claim, Exited(0), policy=RetryPolicy(1000, 0), chance=0.5), 1, 0.0, 0.0, 0, 0)
        began = time.perf_counter()
        answer = self._store.claims.exchange("w", ends=[end])
        seconds = time.perf_counter() - began
        while answer.undecided:
            answer = self._store.claims.exchange("w")
        if children:
            self.told.append(time.perf_counter() - began)
        return seconds


def compare(report: Report, how: str, store: Store, home: Path) -> None:
    parents = Parents(store, home)
    samples = rounds(
        {"none": lambda: parents.end_one(0), "many": lambda: parents.end_one(CHILDREN)}, count=ROUNDS, seconds=SECONDS
    )
    for name, words in {"none": "no children", "many": f"{CHILDREN:,} children"}.items():
        report.row(f"{how}: the end of a job with {words}", f"{median(samples[name]) * 1000:.2f} ms")
    report.row(f"{how}: until all of them know", f"{median(parents.told) * 1000:.0f} ms")
    report.note(f"{how}: {paired(samples, 'many', 'none'):.1f} times the end of a job with none")
    report.figure(
        Figure(
            f"{how}: the end of a job with {CHILDREN:,} children", median(samples["many"]) * 1000, TARGET, unit=" ms"
        )
    )


def children(lab: Lab) -> Report:
    report = Report("the exchange that ends a parent")
    home = lab.new_home()
    compare(report, "SQLite", open_store(str(home)), home)
    return report


if __name__ == "__main__":
    main(children, __doc__)
