"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.jobs.model import Worker
from queuectl.jobs.states import State
from queuectl.jobs.stats import OTHER_QUEUES, TimeBuckets, add_histograms
from queuectl.operations.inspect import count_workers
from queuectl.store.reads import Reads

_TOTALS: Final = {
    "enqueued": "Enqueued jobs.",
    "started": "Started runs.",
    "completed": "Completed jobs.",
    "failed": "Failed runs.",
    "dead": "Jobs that became dead.",
    "retried": "Retries of failed jobs, automatic or by a user.",
    "rescued": "Jobs rescued from dead workers.",
}

# Queues with a label of their own; the others share one. Every user who may enqueue can create queues, and Prometheus keeps each label.
MAX_QUEUES: Final = 100


class _Snapshot(NamedTuple):
    tally: Mapping[str, Mapping[State, int]]
    totals: Mapping[str, Mapping[str, int]]
    histograms: dict[str, tuple[TimeBuckets, TimeBuckets]]
    workers: list[Worker]
    oldest_waiting_ms: Mapping[str, int]


def format_metrics(
    store: Reads, *, is_alive: Callable[[Worker], bool], clock: Clock, most_queues: int = MAX_QUEUES
) -> str:
    """The metrics as text. Called every few seconds, so the cost does not depend on the number of jobs."""
    began = clock.monotonic()
    snapshot = _Snapshot(
        store.tally(), store.totals(), store.samples.histograms(), store.workers(), store.oldest_waiting_ms()
    )
    took = clock.monotonic() - began
    return "".join(line + "\n" for line in _lines(_bounded(snapshot, most_queues), is_alive, took))


def _bounded(snapshot: _Snapshot, most: int) -> _Snapshot:
    """Keep the queues with the most enqueued jobs by name, which rarely change, and merge the rest."""
    known = sorted(
        {*snapshot.tally, *snapshot.totals},
        key=lambda queue: (-snapshot.totals.get(queue, {}).get("enqueued", 0), queue),
    )
    if len(known) <= most:
        return snapshot
    names = {queue: queue if place < most else OTHER_QUEUES for place, queue in enumerate(known)}
    tally: dict[str, Counter[State]] = {}
    totals: dict[str, Counter[str]] = {}
    histograms: dict[str, tuple[TimeBuckets, TimeBuckets]] = {}
    oldest: dict[str, int] = {}
    for queue, name in names.items():
        tally.setdefault(name, Counter()).update(snapshot.tally.get(queue, {}))
        totals.setdefault(name, Counter()).update(snapshot.totals.get(queue, {}))
        oldest[name] = max(oldest.get(name, 0), snapshot.oldest_waiting_ms.get(queue, 0))
    for queue, (run, wait) in snapshot.histograms.items():
        name = names.get(queue, OTHER_QUEUES)
        runs, waits = histograms.get(name, (TimeBuckets(), TimeBuckets()))
        histograms[name] = (add_histograms(runs, run), add_histograms(waits, wait))
    return snapshot._replace(tally=dict(tally), totals=dict(totals), histograms=histograms, oldest_waiting_ms=oldest)


def _lines(snapshot: _Snapshot, is_alive: Callable[[Worker], bool], took: float) -> Iterator[str]:
    yield from _head("queuectl_jobs", "gauge", "Jobs by state and queue.")
    for queue, counts in sorted(snapshot.tally.items()):
        for state in State:
            yield _sample("queuectl_jobs", counts.get(state, 0), state=state.value, queue=queue)

    for what, about in _TOTALS.items():
        name = f"queuectl_jobs_{what}_total"
        yield from _head(name, "counter", about)
        for queue, counted in sorted(snapshot.totals.items()):
            yield _sample(name, counted.get(what, 0), queue=queue)

    histograms = sorted(snapshot.histograms.items())
    yield from _head("queuectl_run_seconds", "histogram", "How long completed jobs ran.")
    for queue, (run, _) in histograms:
        yield from _histogram("queuectl_run_seconds", run, queue=queue)
    yield from _head("queuectl_wait_seconds", "histogram", "How long completed jobs waited to be started once due.")
    for queue, (_, wait) in histograms:
        yield from _histogram("queuectl_wait_seconds", wait, queue=queue)

    workers = count_workers(list(filter(is_alive, snapshot.workers)))
    yield from _head("queuectl_workers", "gauge", "Workers alive.")
    yield _sample("queuectl_workers", workers.live)
    yield from _head("queuectl_slots", "gauge", "Slots of live workers.")
    yield _sample("queuectl_slots", workers.busy, busy="true")
    yield _sample("queuectl_slots", workers.slots - workers.busy, busy="false")

    yield from _head("queuectl_oldest_waiting_seconds", "gauge", "Waiting time of the oldest due job.")
    for queue in sorted(snapshot.tally):
        age = snapshot.oldest_waiting_ms.get(queue, 0)
        yield _sample("queuectl_oldest_waiting_seconds", age / 1000, queue=queue)

    yield from _head("queuectl_store_seconds", "gauge", "Time to read these metrics from the database.")
    yield _sample("queuectl_store_seconds", round(took, 6))


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _histogram(name: str, times: TimeBuckets, *, queue: str) -> Iterator[str]:
    for bound, count in times.cumulative:
        yield _sample(f"{name}_bucket", count, queue=queue, le=f"{bound:g}")
    yield _sample(f"{name}_bucket", times.jobs, queue=queue, le="+Inf")
    yield _sample(f"{name}_sum", times.total_ms / 1000, queue=queue)
    yield _sample(f"{name}_count", times.jobs, queue=queue)


def _sample(name: str, value: float, **labels: str) -> str:
    return f"{name}{_labels(labels)} {value!r}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{escape_label(value)}"' for name, value in labels.items()) + "}"


def escape_label(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
