"""The whole queue at a glance, and its figures."""

from __future__ import annotations

from typing import Any, Final

from queuectl.job.points import ALL, OTHERS, Counts, Span
from queuectl.queue import inspect
from queuectl.queue.filters import parse_filter
from queuectl.queue.history import point_to_dict
from queuectl.queue.queues import check_queue
from queuectl.web.api.operation import Call, Operation, Param
from queuectl.web.api.schemas import COUNT, MOMENT, array, exactly, maybe, ref
from queuectl.web.desk import Desk


def status(desk: Desk, call: Call) -> Any:
    return inspect.status(desk.reads, is_alive=desk.is_serving()).to_dict()


def metrics(desk: Desk, call: Call) -> Any:
    return inspect.metrics(desk.reads).to_dict()


def history(desk: Desk, call: Call) -> Any:
    """All that is kept of it, or since a moment: some two thousand points at most."""
    queue, since = call.query["queue"], call.query["since"]
    queue = ALL if queue is None else queue if queue == OTHERS else check_queue(queue)
    begin = parse_filter(since=since, now_ms=desk.reads.now_ms).since_ms
    points = desk.reads.points(Span(call.query["span"]), since_ms=begin or 0, queue=queue)
    return [point_to_dict(point) for point in points]


_TIMES: Final = exactly(count=COUNT, **{name: maybe("number") for name in ("avg", "p50", "p95", "p99")})
_POINT: Final = {
    **exactly(
        at=MOMENT,
        covers_ms={**COUNT, "description": "More than the span if nobody was there to look before."},
        **dict.fromkeys(Counts._fields, COUNT),
        waiting=COUNT,
        running=COUNT,
        oldest_waiting_ms=maybe("integer"),
        duration_ms=_TIMES,
        wait_ms=_TIMES,
    ),
    "description": "What happened until somebody looked, in the minute or hour that begins at `at`, and how things stood then.",
}

OPERATIONS: Final = (
    Operation(
        "GET", "/status", status, "How many jobs are in each state, and who works.", ref("Status"), tag="figures"
    ),
    Operation(
        "GET", "/metrics", metrics, "Success, durations, waiting times, throughput.", ref("Metrics"), tag="figures"
    ),
    Operation(
        "GET",
        "/history",
        history,
        "What happened in each minute of the last day, or in each hour of the last 90 days, oldest first: what charts are drawn of.",
        array(_POINT),
        (
            Param("span", "How much a point is of.", {"type": "string", "enum": list(Span), "default": "minute"}),
            Param("since", "Begun then or later: a time, or a duration for so long ago."),
            Param("queue", f"Of this queue; {OTHERS} for those beyond the busiest. Without it of all together."),
        ),
        tag="figures",
    ),
)
