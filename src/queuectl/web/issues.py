"""The issues that need attention, for the overview page and the API: what is wrong, and where to fix it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from queuectl.alerts.operations import firing
from queuectl.alerts.rules import Alert, Kind
from queuectl.jobs.model import Worker
from queuectl.jobs.states import State
from queuectl.operations.inspect import without_webhook_queue
from queuectl.store.types import Filter, Sort
from queuectl.store_threads import WebSession
from queuectl.text import WEBHOOK_QUEUE, plural
from queuectl.units import to_ms
from queuectl.web.pages.render import part, span

LATE_AFTER_MS: Final = 5 * 60 * 1000  # a longer wait is an issue
RECENT_MS: Final = 60 * 60 * 1000
MAX_ISSUES: Final = 8
MAX_PAUSED_SHOWN: Final = 2  # each with a button to resume it
_DEAD: Final = Filter(frozenset({State.DEAD}), includes_webhooks=False)


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
    """The most important ones first. One cause is one issue: an alert is not repeated by what it reports, and a queue is not late
    if no worker serves it."""
    kinds = (_alerts, _unserved, _lost, _dead, _paused, _late)
    return [issue for find in kinds for issue in find(overview)][:MAX_ISSUES]


def _alerts(overview: Overview) -> Iterator[Issue]:
    for alert in overview.firing:
        firing_for = span(overview.now_ms - (alert.changed_ms or overview.now_ms))
        text = f"Alert {alert.name} is firing: {alert.describe(alert.value or 0)}"
        more = f"For {firing_for}. It resolves below 80% of its threshold."
        if alert.kind == Kind.DEAD and (dead := _dead_jobs(overview)) is not None:
            more += f" {dead}."
        yield Issue("bad", text, more, *_where(alert))


def _reported(overview: Overview, kind: Kind) -> frozenset[str | None]:
    """The queues that firing alerts of a kind report; None: all queues."""
    return frozenset(alert.queue for alert in overview.firing if alert.kind == kind)


def _where(alert: Alert) -> tuple[str, str]:
    """The page with details of an alert, and the label of the link."""
    of = "" if alert.queue is None else f"&queue={part(alert.queue)}"
    match alert.kind:
        case Kind.DEAD:
            return (f"/jobs?state=dead{of}", "Jobs") if of else ("/dlq", "Dead jobs")
        case Kind.OLDEST:
            return f"/jobs?state=pending{of}&sort=run_at", "Jobs"
        case Kind.NO_WORKER:
            return "/workers", "Workers"


def _waiting(overview: Overview, queue: str) -> int:
    counts = overview.tally.get(queue, {})
    return counts.get(State.PENDING, 0) + counts.get(State.FAILED, 0)


def _are_waiting(jobs: int) -> str:
    return f"{plural(jobs, 'job is', 'jobs are')} waiting"


def _serving(overview: Overview, queue: str) -> list[Worker]:
    """The workers that serve a queue. Any worker runs webhook deliveries."""
    alive = [worker for worker in overview.workers if worker.state == "running"]
    return [worker for worker in alive if worker.queues is None or queue in worker.queues or queue == WEBHOOK_QUEUE]


def _unserved(overview: Overview) -> Iterator[Issue]:
    if None in _reported(overview, Kind.NO_WORKER):
        return
    queues = [queue for queue in without_webhook_queue(overview.oldest) if queue not in overview.paused]
    jobs = sum(_waiting(overview, queue) for queue in queues)
    if queues and not any(worker.state == "running" for worker in overview.workers):
        text = f"No workers are running; {_are_waiting(jobs)}"
        yield Issue("bad", text, "Start one: queuectl worker start", "/workers", "Workers")
        return
    unserved = [queue for queue in queues if not _serving(overview, queue)]
    jobs = sum(_waiting(overview, queue) for queue in unserved)
    if len(unserved) == 1:
        text, more = f"No worker serves the queue {unserved[0]}", f"queuectl worker start --queue {unserved[0]}"
        url = f"/jobs?state=pending&queue={part(unserved[0])}"
        yield Issue("bad", f"{text}; {_are_waiting(jobs)}", f"Start one: {more}", url, "Jobs")
    elif unserved:
        text = f"No worker serves {len(unserved)} queues; {_are_waiting(jobs)}"
        yield Issue("bad", text, _some(unserved), "/workers", "Workers")


def _some(names: Sequence[str], most: int = 6) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _lost(overview: Overview) -> Iterator[Issue]:
    if lost := [worker.id for worker in overview.workers if worker.state == "lost"]:
        text = f"{plural(len(lost), 'worker is', 'workers are')} not responding"
        more = f"No heartbeat from {_some(lost, 3)}. Another worker takes over the running jobs."
        yield Issue("bad", text, more, "/workers", "Workers")


def _dead_jobs(overview: Overview) -> str | None:
    dead = sum(counts.get(State.DEAD, 0) for counts in without_webhook_queue(overview.tally).values())
    return f"{plural(dead, 'job is', 'jobs are')} dead" if dead and overview.last_dead_at is not None else None


def _dead(overview: Overview) -> Iterator[Issue]:
    text = _dead_jobs(overview)
    if text is not None and overview.last_dead_at is not None and None not in _reported(overview, Kind.DEAD):
        since = overview.now_ms - to_ms(overview.last_dead_at)
        more = f"The latest died {span(since)} ago"
        yield Issue("bad" if since < RECENT_MS else "warn", text, more, "/dlq", "Dead jobs")


def _paused(overview: Overview) -> Iterator[Issue]:
    paused = [queue for queue in sorted(overview.paused) if _waiting(overview, queue)]
    if len(paused) > MAX_PAUSED_SHOWN:
        jobs = sum(_waiting(overview, queue) for queue in paused)
        yield Issue(
            "warn", f"{len(paused)} queues are paused; {_are_waiting(jobs)}", _some(paused), "/queues", "Queues"
        )
        return
    for queue in paused:
        text, resume = f"The queue {queue} is paused", f"/queues/{part(queue)}/resume"
        yield Issue("warn", text, _are_waiting(_waiting(overview, queue)), "/queues", "Queues", resume)


def _late(overview: Overview) -> Iterator[Issue]:
    reported = _reported(overview, Kind.OLDEST)
    late = [
        queue
        for queue, waited in sorted(overview.oldest.items(), key=lambda one: -one[1])
        if waited >= LATE_AFTER_MS and not {queue, None} & reported
        if queue not in overview.paused and _serving(overview, queue)
    ]
    if not late:
        return
    serving = {worker.id: worker for queue in late for worker in _serving(overview, queue)}.values()
    is_full = all(worker.busy >= worker.slots for worker in serving)
    hint = "All worker slots are busy: consider adding more." if is_full else "Check the limits of the queue."
    if len(late) == 1:
        text = f"The oldest job in {late[0]} has waited for {span(overview.oldest[late[0]])}"
        more = f"{_are_waiting(_waiting(overview, late[0]))}. {hint}"
        yield Issue("warn", text, more, f"/jobs?state=pending&queue={part(late[0])}&sort=run_at", "Jobs")
        return
    waits = _some([f"{queue} {span(overview.oldest[queue])}" for queue in late])
    jobs = sum(_waiting(overview, queue) for queue in late)
    yield Issue("warn", f"{len(late)} queues are late; {_are_waiting(jobs)}", f"{waits}. {hint}", "/queues", "Queues")


def read_overview(session: WebSession) -> Overview:
    reads, workers = session.reads, sorted(session.workers(), key=lambda worker: worker.id)
    tally, rules, oldest = reads.tally(), reads.queues.rules(), reads.oldest_waiting_ms()
    paused = frozenset(queue for queue, rule in rules.items() if rule.paused)
    has_dead = any(counts.get(State.DEAD) for counts in without_webhook_queue(tally).values())
    latest_dead = reads.jobs(_DEAD, sort=Sort.FINISHED, limit=1) if has_dead else ()
    last_dead_at = next((job.finished_at for job in latest_dead), None)
    return Overview(tally, paused, oldest, workers, last_dead_at, reads.now_ms(), firing(reads))
