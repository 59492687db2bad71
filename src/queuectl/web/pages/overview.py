"""The overview page: issues that need attention, job counts, trends, queues and workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.operations.inspect import without_webhook_queue
from queuectl.store.types import Filter
from queuectl.store_threads import WebSession
from queuectl.text import WEBHOOK_QUEUE
from queuectl.web.issues import find_issues, read_overview
from queuectl.web.pages.render import PageRequest, View
from queuectl.web.pages.trend import WINDOWS, trend

MAX_RUNNING_SHOWN = 6
MAX_QUEUES_IN_LIST = 200
MAX_QUEUES_SHOWN = 15  # the busiest ones


def show(session: WebSession, ask: PageRequest) -> View:
    overview = read_overview(session)
    reads, tally, oldest = session.reads, overview.tally, overview.oldest
    rules = reads.queues.rules()
    counts = {state: sum(counts.get(state, 0) for counts in without_webhook_queue(tally).values()) for state in State}
    values: dict[str, Any] = {
        "issues": find_issues(overview),
        "counts": {state.value: count for state, count in counts.items()},
        "total": sum(counts.values()),
        "queues": [
            {
                "name": queue,
                "paused": queue in overview.paused,
                "waiting": sum(of_queue.get(state, 0) for state in WAITING),
                "running": of_queue.get(State.PROCESSING, 0),
                "dead": of_queue.get(State.DEAD, 0),
                "oldest_ms": oldest.get(queue),
            }
            for queue in _busiest({*tally, *rules}, tally)
            for of_queue in (tally.get(queue, {}),)
        ],
        "queue_count": len({*tally, *rules} - {WEBHOOK_QUEUE}),
        "workers": overview.workers,
        "running": list(reads.jobs(Filter(frozenset({State.PROCESSING})), limit=MAX_RUNNING_SHOWN)),
        "trend": trend(session, ask.query.one("span"), ask.query.one("queue")),
        "queue_names": sorted({*tally, *rules})[:MAX_QUEUES_IN_LIST],
        "windows": WINDOWS,
    }
    return View("overview.html", "Overview", values)


def _busiest(queues: set[str], tally: Mapping[str, Mapping[State, int]]) -> list[str]:
    """Sorted by name; if there are too many, those with the most waiting, running or dead jobs."""

    def rank(queue: str) -> tuple[int, int, str]:
        counts = tally.get(queue, {})
        under_way = sum(count for state, count in counts.items() if state not in FINAL)
        return -under_way, -counts.get(State.DEAD, 0), queue

    return sorted(sorted(queues, key=rank)[:MAX_QUEUES_SHOWN])
