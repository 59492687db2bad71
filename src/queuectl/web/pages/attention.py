"""What needs attention first: what keeps work from being done, then what went wrong lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from queuectl.job.alert import Alert, Kind
from queuectl.job.lifecycle import State
from queuectl.job.model import to_ms
from queuectl.queue.inspect import without_calls
from queuectl.web.pages.wording import part, plural, span

LATE_MS: Final = 5 * 60 * 1000  # to have waited this long is worth a look
LATELY_MS: Final = 60 * 60 * 1000
MOST: Final = 8


class Concern(NamedTuple):
    kind: str  # bad, or warn
    text: str
    more: str
    url: str
    label: str
    post: str | None = None  # what would mend it, as a form


class Sight(NamedTuple):
    """All that the whole queue shows at a glance."""

    tally: Mapping[str, Mapping[State, int]]
    paused: frozenset[str]
    oldest: Mapping[str, int]
    workers: Sequence[dict[str, Any]]
    last_dead_at: datetime | None
    now_ms: int
    firing: Sequence[Alert] = ()


def concerns(sight: Sight) -> list[Concern]:
    return [*_alerts(sight), *_unserved(sight), *_lost(sight), *_dead(sight), *_paused(sight), *_late(sight)][:MOST]


def _alerts(sight: Sight) -> list[Concern]:
    return [
        Concern(
            "bad",
            f"The alert {alert.name} fires: {alert.describe(alert.value or 0)}",
            f"Since {span(sight.now_ms - (alert.changed_ms or sight.now_ms))}; it is over below four fifths of its threshold",
            *_where(alert),
        )
        for alert in sight.firing
    ]


def _where(alert: Alert) -> tuple[str, str]:
    """Where one sees more of what it fires for."""
    of = "" if alert.queue is None else f"&queue={part(alert.queue)}"
    match alert.kind:
        case Kind.DEAD:
            return (f"/jobs?state=dead{of}", "Jobs") if of else ("/dlq", "Look")
        case Kind.OLDEST:
            return f"/jobs?state=pending{of}&sort=run_at", "Jobs"
        case Kind.NO_WORKER:
            return "/workers", "Workers"


def _waiting(sight: Sight, queue: str) -> int:
    counts = sight.tally.get(queue, {})
    return counts.get(State.PENDING, 0) + counts.get(State.FAILED, 0)


def _unserved(sight: Sight) -> list[Concern]:
    alive = [worker for worker in sight.workers if worker["state"] == "running"]
    # Any worker takes calls, whatever it serves: they wait for it as all else does, and are no more jobs.
    waits = {queue: _waiting(sight, queue) for queue in without_calls(sight.oldest) if queue not in sight.paused}
    if not waits:
        return []
    if not alive:
        text = f"No worker is alive, and {plural(sum(waits.values()), 'job waits', 'jobs wait')}"
        return [Concern("bad", text, "Start one: queuectl worker start", "/workers", "Workers")]
    return [
        Concern(
            "bad",
            f"No worker serves the queue {queue}, and {plural(count, 'job waits', 'jobs wait')}",
            f"Start one: queuectl worker start --queue {queue}",
            f"/jobs?state=pending&queue={part(queue)}",
            "Jobs",
        )
        for queue, count in waits.items()
        if not any(worker["queues"] is None or queue in worker["queues"] for worker in alive)
    ]


def _lost(sight: Sight) -> list[Concern]:
    lost = [worker["id"] for worker in sight.workers if worker["state"] == "lost"]
    if not lost:
        return []
    text = f"{plural(len(lost), 'worker gives', 'workers give')} no sign of life"
    more = f"{', '.join(lost[:3])}: the next worker that is started takes over what it ran"
    return [Concern("bad", text, more, "/workers", "Workers")]


def _dead(sight: Sight) -> list[Concern]:
    dead = sum(counts.get(State.DEAD, 0) for counts in without_calls(sight.tally).values())
    if not dead or sight.last_dead_at is None:
        return []
    since = sight.now_ms - to_ms(sight.last_dead_at)
    text, more = f"{plural(dead, 'job', 'jobs')} failed for good", f"The latest {span(since)} ago"
    return [Concern("bad" if since < LATELY_MS else "warn", text, more, "/dlq", "Look")]


def _paused(sight: Sight) -> list[Concern]:
    return [
        Concern(
            "warn",
            f"The queue {queue} is paused",
            f"{plural(count, 'job waits', 'jobs wait')} in it",
            "/queues",
            "Queues",
            f"/queues/{part(queue)}/resume",
        )
        for queue in sorted(sight.paused)
        if (count := _waiting(sight, queue))
    ]


def _late(sight: Sight) -> list[Concern]:
    return [
        Concern(
            "warn",
            f"The oldest job of {queue} has waited for {span(waited)}",
            f"{plural(_waiting(sight, queue), 'job waits', 'jobs wait')} there; more slots would help",
            f"/jobs?state=pending&queue={part(queue)}&sort=run_at",
            "Jobs",
        )
        for queue, waited in sorted(sight.oldest.items(), key=lambda one: -one[1])
        if waited >= LATE_MS and queue not in sight.paused
    ]
