from __future__ import annotations

from queuectl.errors import JobNotFound
from queuectl.jobs.model import BulkResult, Refusal
from queuectl.jobs.serialize import point_to_dict
from queuectl.jobs.stats import Counts, Point, build_histogram


def test_a_bulk_result_has_the_code_and_message_of_each_refusal() -> None:
    result = BulkResult(["a"], [Refusal("b", JobNotFound("b"))])
    assert result.to_dict() == {
        "done": ["a"],
        "refused": [{"id": "b", "code": "job-not-found", "message": "no job 'b'"}],
    }


def test_a_point_has_its_counts_gauges_and_percentiles() -> None:
    run = build_histogram([(0, 2, 10)])
    point = Point(60_000, "mail", 60_000, Counts(enqueued=3), waiting=1, oldest_ms=7, run=run)
    found = point_to_dict(point)
    assert (found["at"], found["enqueued"], found["waiting"]) == ("1970-01-01T00:01:00.000Z", 3, 1)
    assert found["oldest_waiting_ms"] == 7
    assert found["duration_ms"] == {"count": 2, "avg": 5.0, "p50": 5.0, "p95": 9.5, "p99": 9.9}
    assert found["wait_ms"] == {"count": 0, "avg": None, "p50": None, "p95": None, "p99": None}
