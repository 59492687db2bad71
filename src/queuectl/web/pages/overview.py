"""The overview page: issues that need attention, job counts, trends, queues and workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from queuectl.alerts.operations import firing
from queuectl.alerts.rules import Alert, Kind
from queuectl.jobs.model import Worker
from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.operations.inspect import without_webhook_queue
from queuectl.store.types import Filter, Sort
from queuectl.store_threads import WebSession
from queuectl.text import plural
from queuectl.units import to_ms
from queuectl.web.pages.jobs import DEAD
from queuectl.web.pages.render import PageRequest, View, part, span
from queuectl.web.pages.trend import WINDOWS, trend

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
    """The most important ones first."""
    kinds = (_alerts, _unserved, _lost, _dead, _paused, _late)
    return [issue for find in kinds for issue in find(overview)][:MAX_ISSUES]


def _alerts(overview: Overview) -> Iterator[Issue]:
    for alert in overview.firing:
        firing_for = span(overview.now_ms - (alert.changed_ms or overview.now_ms))
        text = f"Alert {alert.name} is firing: {alert.describe(alert.value or 0)}"
        yield Issue("bad", text, f"For {firing_for}. It resolves below 80% of its threshold.", *_where(alert))


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


def _are_waiting(jobs: int) -> str:
    return f"{plural(jobs, 'job is', 'jobs are')} waiting"


def _unserved(overview: Overview) -> Iterator[Issue]:
    alive = [worker for worker in overview.workers if worker.state == "running"]
    # Without webhook deliveries: any worker runs them, whichever queues it serves.
    queues = [queue for queue in without_webhook_queue(overview.oldest) if queue not in overview.paused]
    if queues and not alive:
        jobs = sum(_waiting(overview, queue) for queue in queues)
        text = f"No workers are running; {_are_waiting(jobs)}"
        yield Issue("bad", text, "Start one: queuectl worker start", "/workers", "Workers")
        return
    for queue in queues:
        if not any(worker.queues is None or queue in worker.queues for worker in alive):
            text = f"No worker serves the queue {queue}; {_are_waiting(_waiting(overview, queue))}"
            more = f"Start one: queuectl worker start --queue {queue}"
            yield Issue("bad", text, more, f"/jobs?state=pending&queue={part(queue)}", "Jobs")


def _lost(overview: Overview) -> Iterator[Issue]:
    if lost := [worker.id for worker in overview.workers if worker.state == "lost"]:
        text = f"{plural(len(lost), 'worker is', 'workers are')} not responding"
        more = f"No heartbeat from {', '.join(lost[:3])}. Another worker takes over the running jobs."
        yield Issue("bad", text, more, "/workers", "Workers")


def _dead(overview: Overview) -> Iterator[Issue]:
    dead = sum(counts.get(State.DEAD, 0) for counts in without_webhook_queue(overview.tally).values())
    if dead and overview.last_dead_at is not None:
        since = overview.now_ms - to_ms(overview.last_dead_at)
        text, more = f"{plural(dead, 'job is', 'jobs are')} dead", f"The latest died {span(since)} ago"
        yield Issue("bad" if since < RECENT_MS else "warn", text, more, "/dlq", "View")


def _paused(overview: Overview) -> Iterator[Issue]:
    for queue in sorted(overview.paused):
        if jobs := _waiting(overview, queue):
            text, resume = f"The queue {queue} is paused", f"/queues/{part(queue)}/resume"
            yield Issue("warn", text, _are_waiting(jobs), "/queues", "Queues", resume)


def _late(overview: Overview) -> Iterator[Issue]:
    for queue, waited in sorted(overview.oldest.items(), key=lambda one: -one[1]):
        if waited >= LATE_AFTER_MS and queue not in overview.paused:
            text = f"The oldest job in {queue} has waited for {span(waited)}"
            more = f"{_are_waiting(_waiting(overview, queue))}. Consider adding worker slots."
            yield Issue("warn", text, more, f"/jobs?state=pending&queue={part(queue)}&sort=run_at", "Jobs")


MAX_RUNNING_SHOWN = 6
MAX_QUEUES_IN_LIST = 200
MAX_QUEUES_SHOWN = 15  # the busiest ones


def show(session: WebSession, ask: PageRequest) -> View:
    reads, workers = session.reads, sorted(session.workers(), key=lambda worker: worker.id)
    tally, rules, oldest = reads.tally(), reads.queues.rules(), reads.oldest_waiting_ms()
    paused = frozenset(queue for queue, rule in rules.items() if rule.paused)
    counts = {state: sum(counts.get(state, 0) for counts in without_webhook_queue(tally).values()) for state in State}
    latest_dead = reads.jobs(DEAD, sort=Sort.FINISHED, limit=1) if counts[State.DEAD] else ()
    last_dead_at = next((job.finished_at for job in latest_dead), None)
    overview = Overview(tally, paused, oldest, workers, last_dead_at, reads.now_ms(), firing(reads))
    values: dict[str, Any] = {
        "issues": find_issues(overview),
        "counts": {state.value: count for state, count in counts.items()},
        "total": sum(counts.values()),
        "queues": [
            {
                "name": queue,
                "paused": queue in paused,
                "waiting": sum(of_queue.get(state, 0) for state in WAITING),
                "running": of_queue.get(State.PROCESSING, 0),
                "dead": of_queue.get(State.DEAD, 0),
                "oldest_ms": oldest.get(queue),
            }
            for queue in _busiest({*tally, *rules}, tally)
            for of_queue in (tally.get(queue, {}),)
        ],
        "queue_count": len({*tally, *rules}),
        "workers": workers,
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
