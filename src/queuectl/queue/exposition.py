"""The figures in Prometheus' text format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.job.lifecycle import State
from queuectl.job.model import Worker
from queuectl.job.points import OTHERS
from queuectl.queue.inspect import count_workers
from queuectl.store.protocol import Histogram, Reads

_TOTALS: Final = {
    "enqueued": "Jobs ever enqueued.",
    "started": "Runs ever started.",
    "completed": "Jobs ever completed.",
    "failed": "Runs that ever failed.",
    "dead": "Jobs that ever failed for good.",
    "retried": "Failed jobs that ever got another chance, by the backoff or by hand.",
    "rescued": "Jobs ever taken back from a worker that died.",
}

# By name; what is beyond them is one together. Whoever may enqueue may make queues, and every label is kept for as long as Prometheus
# keeps anything.
MOST_QUEUES: Final = 100


class _Seen(NamedTuple):
    tally: Mapping[str, Mapping[State, int]]
    totals: Mapping[str, Mapping[str, int]]
    histograms: dict[str, tuple[Histogram, Histogram]]
    workers: list[Worker]
    oldest_waiting_ms: Mapping[str, int]


def exposition(
    store: Reads, *, is_alive: Callable[[Worker], bool], clock: Clock, most_queues: int = MOST_QUEUES
) -> str:
    """Asked every few seconds: nothing here costs more at a million jobs than at a thousand."""
    began = clock.monotonic()
    seen = _Seen(store.tally(), store.totals(), store.histograms(), store.workers(), store.oldest_waiting_ms())
    took = clock.monotonic() - began
    return "".join(line + "\n" for line in _lines(_bounded(seen, most_queues), is_alive, took))


def _bounded(seen: _Seen, most: int) -> _Seen:
    """Those queues by name to which most was ever enqueued, which seldom are others; the rest as one."""
    known = sorted(
        {*seen.tally, *seen.totals}, key=lambda queue: (-seen.totals.get(queue, {}).get("enqueued", 0), queue)
    )
    if len(known) <= most:
        return seen
    names = {queue: queue if place < most else OTHERS for place, queue in enumerate(known)}
    tally: dict[str, Counter[State]] = {}
    totals: dict[str, Counter[str]] = {}
    histograms: dict[str, tuple[Histogram, Histogram]] = {}
    oldest: dict[str, int] = {}
    for queue, name in names.items():
        tally.setdefault(name, Counter()).update(seen.tally.get(queue, {}))
        totals.setdefault(name, Counter()).update(seen.totals.get(queue, {}))
        oldest[name] = max(oldest.get(name, 0), seen.oldest_waiting_ms.get(queue, 0))
    for queue, (run, wait) in seen.histograms.items():
        name = names.get(queue, OTHERS)
        there = histograms.get(name)
        histograms[name] = (run, wait) if there is None else (_together(there[0], run), _together(there[1], wait))
    return seen._replace(tally=dict(tally), totals=dict(totals), histograms=histograms, oldest_waiting_ms=oldest)


def _together(one: Histogram, other: Histogram) -> Histogram:
    buckets = tuple((bound, a + b) for (bound, a), (_, b) in zip(one.buckets, other.buckets, strict=True))
    return Histogram(buckets, one.sum + other.sum, one.count + other.count)


def _lines(seen: _Seen, is_alive: Callable[[Worker], bool], took: float) -> Iterator[str]:
    yield from _head("queuectl_jobs", "gauge", "Jobs by state and queue.")
    for queue, counts in sorted(seen.tally.items()):
        for state in State:
            yield _sample("queuectl_jobs", counts.get(state, 0), state=state.value, queue=queue)

    for what, about in _TOTALS.items():
        name = f"queuectl_jobs_{what}_total"
        yield from _head(name, "counter", about)
        for queue, counted in sorted(seen.totals.items()):
            yield _sample(name, counted.get(what, 0), queue=queue)

    histograms = sorted(seen.histograms.items())
    yield from _head("queuectl_run_seconds", "histogram", "How long completed jobs ran.")
    for queue, (run, _) in histograms:
        yield from _histogram("queuectl_run_seconds", run, queue=queue)
    yield from _head("queuectl_wait_seconds", "histogram", "How long completed jobs waited to be started once due.")
    for queue, (_, wait) in histograms:
        yield from _histogram("queuectl_wait_seconds", wait, queue=queue)

    workers = count_workers(list(filter(is_alive, seen.workers)))
    yield from _head("queuectl_workers", "gauge", "Workers alive.")
    yield _sample("queuectl_workers", workers.live)
    yield from _head("queuectl_slots", "gauge", "Slots of the workers alive.")
    yield _sample("queuectl_slots", workers.busy, busy="true")
    yield _sample("queuectl_slots", workers.slots - workers.busy, busy="false")

    yield from _head("queuectl_oldest_waiting_seconds", "gauge", "For how long the oldest job that is due has waited.")
    for queue in sorted(seen.tally):
        age = seen.oldest_waiting_ms.get(queue, 0)
        yield _sample("queuectl_oldest_waiting_seconds", age / 1000, queue=queue)

    yield from _head("queuectl_store_seconds", "gauge", "How long the store took to answer for these figures.")
    yield _sample("queuectl_store_seconds", round(took, 6))


def _head(name: str, kind: str, about: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _histogram(name: str, histogram: Histogram, *, queue: str) -> Iterator[str]:
    for bound, count in histogram.buckets:
        yield _sample(f"{name}_bucket", count, queue=queue, le=f"{bound:g}")
    yield _sample(f"{name}_bucket", histogram.count, queue=queue, le="+Inf")
    yield _sample(f"{name}_sum", histogram.sum, queue=queue)
    yield _sample(f"{name}_count", histogram.count, queue=queue)


def _sample(name: str, value: float, **labels: str) -> str:
    return f"{name}{_labels(labels)} {value!r}"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{escape(value)}"' for name, value in labels.items()) + "}"


def escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
