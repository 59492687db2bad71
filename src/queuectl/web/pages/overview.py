"""The overview page: issues that need attention, job counts, trends, queues and workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from queuectl.alerts.operations import firing
from queuectl.alerts.rules import Alert, Kind
from queuectl.jobs.model import Worker
from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.operations.inspect import without_webhook_queue
from queuectl.store.reads import Reads
from queuectl.store.types import Filter, Sort
from queuectl.store_threads import WebSession
from queuectl.text import plural
from queuectl.units import to_ms
from queuectl.web.pages.charts import WINDOWS, trend
from queuectl.web.pages.render import PageRequest, View, part, span

LATE_AFTER_MS: Final = 5 * 60 * 1000  # a longer wait is an issue
RECENT_MS: Final = 60 * 60 * 1000
MAX_ISSUES: Final = 8


class Issue(NamedTuple):
    kind: str  # bad, or warn
    text: str
    more: str
    url: str
    label: str
    post: str | None = None  # the URL of the form that fixes it


class Overview(NamedTuple):
    """The data of the issues."""

    tally: Mapping[str, Mapping[State, int]]
    paused: frozenset[str]
    oldest: Mapping[str, int]
    workers: Sequence[Worker]
    last_dead_at: datetime | None
    now_ms: int
    firing: Sequence[Alert] = ()


def find_issues(overview: Overview) -> list[Issue]:
    return [
        *_alerts(overview),
        *_unserved(overview),
        *_lost(overview),
        *_dead(overview),
        *_paused(overview),
        *_late(overview),
    ][:MAX_ISSUES]


def _alerts(overview: Overview) -> list[Issue]:
    return [
        Issue(
            "bad",
            f"Alert {alert.name} is firing: {alert.describe(alert.value or 0)}",
            f"Since {span(overview.now_ms - (alert.changed_ms or overview.now_ms))}; it resolves below 80 % of its threshold",
            *_where(alert),
        )
        for alert in overview.firing
    ]


def _where(alert: Alert) -> tuple[str, str]:
    """The page with details of an alert, and the label of the link."""
    of = "" if alert.queue is None else f"&queue={part(alert.queue)}"
    match alert.kind:
        case Kind.DEAD:
            return (f"/jobs?state=dead{of}", "Jobs") if of else ("/dlq", "View")
        case Kind.OLDEST:
            return f"/jobs?state=pending{of}&sort=run_at", "Jobs"
        case Kind.NO_WORKER:
            return "/workers", "Workers"


def _waiting(overview: Overview, queue: str) -> int:
    counts = overview.tally.get(queue, {})
    return counts.get(State.PENDING, 0) + counts.get(State.FAILED, 0)


def _unserved(overview: Overview) -> list[Issue]:
    alive = [worker for worker in overview.workers if worker.state == "running"]
    # Without webhook deliveries: any worker runs them, whichever queues it serves.
    waits = {
        queue: _waiting(overview, queue)
        for queue in without_webhook_queue(overview.oldest)
        if queue not in overview.paused
    }
    if not waits:
        return []
    if not alive:
        text = f"No worker is alive, and {plural(sum(waits.values()), 'job waits', 'jobs wait')}"
        return [Issue("bad", text, "Start one: queuectl worker start", "/workers", "Workers")]
    return [
        Issue(
            "bad",
            f"No worker serves the queue {queue}, and {plural(count, 'job waits', 'jobs wait')}",
            f"Start one: queuectl worker start --queue {queue}",
            f"/jobs?state=pending&queue={part(queue)}",
            "Jobs",
        )
        for queue, count in waits.items()
        if not any(worker.queues is None or queue in worker.queues for worker in alive)
    ]


def _lost(overview: Overview) -> list[Issue]:
    lost = [worker.id for worker in overview.workers if worker.state == "lost"]
    if not lost:
        return []
    text = f"{plural(len(lost), 'worker sends', 'workers send')} no heartbeat"
    more = f"{', '.join(lost[:3])}: the next worker that starts takes over its jobs"
    return [Issue("bad", text, more, "/workers", "Workers")]


def _dead(overview: Overview) -> list[Issue]:
    dead = sum(counts.get(State.DEAD, 0) for counts in without_webhook_queue(overview.tally).values())
    if not dead or overview.last_dead_at is None:
        return []
    since = overview.now_ms - to_ms(overview.last_dead_at)
    text, more = f"{plural(dead, 'job is', 'jobs are')} dead", f"The latest {span(since)} ago"
    return [Issue("bad" if since < RECENT_MS else "warn", text, more, "/dlq", "View")]


def _paused(overview: Overview) -> list[Issue]:
    return [
        Issue(
            "warn",
            f"The queue {queue} is paused",
            f"{plural(count, 'job waits', 'jobs wait')} in it",
            "/queues",
            "Queues",
            f"/queues/{part(queue)}/resume",
        )
        for queue in sorted(overview.paused)
        if (count := _waiting(overview, queue))
    ]


def _late(overview: Overview) -> list[Issue]:
    return [
        Issue(
            "warn",
            f"The oldest job of {queue} has waited for {span(waited)}",
            f"{plural(_waiting(overview, queue), 'job waits', 'jobs wait')} there; more slots would help",
            f"/jobs?state=pending&queue={part(queue)}&sort=run_at",
            "Jobs",
        )
        for queue, waited in sorted(overview.oldest.items(), key=lambda one: -one[1])
        if waited >= LATE_AFTER_MS and queue not in overview.paused
    ]


MAX_RUNNING_SHOWN = 6
MAX_QUEUES_SHOWN = 15  # the busiest ones


def show(session: WebSession, ask: PageRequest) -> View:
    reads, workers = session.reads, sorted(session.workers(), key=lambda worker: worker.id)
    tally, rules, oldest = reads.tally(), reads.queues.rules(), reads.oldest_waiting_ms()
    paused = frozenset(queue for queue, rule in rules.items() if rule.paused)
    counts = {state: sum(counts.get(state, 0) for counts in without_webhook_queue(tally).values()) for state in State}
    last_dead, now_ms = _last_dead(reads, counts[State.DEAD]), reads.now_ms()
    overview = Overview(tally, paused, oldest, workers, last_dead, now_ms, firing(reads))
    values: dict[str, Any] = {
        "issues": find_issues(overview),
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
        "workers": workers,
        "running": list(reads.jobs(Filter(frozenset({State.PROCESSING})), limit=MAX_RUNNING_SHOWN)),
        "trend": trend(session, ask.query.one("span")),
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


def _last_dead(reads: Reads, dead: int) -> Any:
    if not dead:
        return None
    latest = reads.jobs(Filter(frozenset({State.DEAD}), includes_webhooks=False), sort=Sort.FINISHED, limit=1)
    return next((job.finished_at for job in latest), None)
