"""The whole queue at a glance: what needs attention, how it goes, who works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queuectl.job.lifecycle import FINAL, WAITING, State
from queuectl.queue.alerts import firing
from queuectl.queue.inspect import without_calls
from queuectl.store.protocol import Filter, Reads, Sort
from queuectl.web.desk import Desk
from queuectl.web.pages.asked import Ask, Shown
from queuectl.web.pages.attention import Sight, concerns
from queuectl.web.pages.trend import WINDOWS, trend
from queuectl.web.pages.workers import workers

RUNNING = 6  # of those that run now
MOST_QUEUES = 15  # the busiest, where there are more


def show(desk: Desk, ask: Ask) -> Shown:
    reads, people = desk.reads, workers(desk)
    tally, rules, oldest = reads.tally(), reads.rules(), reads.oldest_waiting_ms()
    paused = frozenset(queue for queue, rule in rules.items() if rule.paused)
    counts = {state: sum(counts.get(state, 0) for counts in without_calls(tally).values()) for state in State}
    last_dead, now_ms = _last_dead(reads, counts[State.DEAD]), reads.now_ms()
    sight = Sight(tally, paused, oldest, people, last_dead, now_ms, firing(reads))
    values: dict[str, Any] = {
        "concerns": concerns(sight),
        "counts": {state.value: count for state, count in counts.items()},
        "total": sum(counts.values()),
        "queues": [
            {
                "name": queue,
                "paused": queue in paused,
                "waiting": sum(tally.get(queue, {}).get(state, 0) for state in WAITING),
                "running": tally.get(queue, {}).get(State.PROCESSING, 0),
                "dead": tally.get(queue, {}).get(State.DEAD, 0),
                "completed": tally.get(queue, {}).get(State.COMPLETED, 0),
                "oldest_ms": oldest.get(queue),
            }
            for queue in _busiest({*tally, *rules}, tally)
        ],
        "queue_count": len({*tally, *rules}),
        "workers": people,
        "running": list(reads.jobs(Filter(frozenset({State.PROCESSING})), limit=RUNNING)),
        "trend": trend(desk, ask.query.one("span")),
        "windows": WINDOWS,
    }
    return Shown("overview.html", "Overview", values)


def _busiest(queues: set[str], tally: Mapping[str, Mapping[State, int]]) -> list[str]:
    """By name; where there are too many, those in which most waits or runs, or has died."""

    def rank(queue: str) -> tuple[int, int, str]:
        counts = tally.get(queue, {})
        under_way = sum(count for state, count in counts.items() if state not in FINAL)
        return -under_way, -counts.get(State.DEAD, 0), queue

    return sorted(sorted(queues, key=rank)[:MOST_QUEUES])


def _last_dead(reads: Reads, dead: int) -> Any:
    if not dead:
        return None
    latest = reads.jobs(Filter(frozenset({State.DEAD}), calls=False), sort=Sort.FINISHED, limit=1)
    return next((job.finished_at for job in latest), None)
