from __future__ import annotations

from typing import Any

import pytest

from queuectl.jobs.queue_limits import QueueLoad, Rate
from queuectl.jobs.states import FINAL, State
from queuectl.jobs.wait_reason import reason

NOW = 1_767_323_045_000
DUE: dict[str, Any] = {
    "run_at_ms": NOW,
    "now_ms": NOW,
    "attempts": 1,
    "allowed": 3,
    "held": False,
    "served": True,
}


PAUSED = QueueLoad(True, 2, 2, None, None)
FULL = QueueLoad(False, 2, 2, Rate(1, 1000), NOW + 1000)
FAST = QueueLoad(False, 2, 1, Rate(1, 1000), NOW + 1000)
OPEN = QueueLoad(False, 2, 1, Rate(1, 1000), None)
KEYED = QueueLoad(False, None, 0, None, None, 2)


@pytest.mark.parametrize("state", sorted({*FINAL, State.PROCESSING}))
def test_a_job_that_does_not_wait_has_no_reason(state: State) -> None:
    assert reason(state, **{**DUE, "held": True, "served": False, "run_at_ms": NOW + 1}) is None


@pytest.mark.parametrize(
    "state, facts, line",
    [
        (State.BLOCKED, {"held": True}, "waits for other jobs"),
        (State.PENDING, {"held": True, "run_at_ms": NOW + 1}, "held"),
        (State.PENDING, {"held": True, "cron": "s"}, "waits until the job before it of the schedule s has ended"),
        (State.PENDING, {"run_at_ms": NOW + 1}, "not due until 2026-01-02T03:04:05.001Z"),
        (State.FAILED, {"run_at_ms": NOW + 2_000}, "retry at 2026-01-02T03:04:07.000Z, attempt 2 of 3"),
        (State.FAILED, {"served": False}, "no live worker serves its queue"),
        (State.PENDING, {"served": False}, "no live worker serves its queue"),
        (State.PENDING, {"served": False, "load": PAUSED}, "queue paused"),
        (State.PENDING, {"held": True, "load": PAUSED}, "held"),
        (State.PENDING, {"served": False, "load": FULL}, "no live worker serves its queue"),
        (State.FAILED, {"load": FULL}, "limit of the queue reached: 2 of 2 run"),
        (State.PENDING, {"load": FAST}, "rate of the queue reached: next at 2026-01-02T03:04:06.000Z"),
        (State.PENDING, {"load": OPEN}, "waits for a free slot"),
        (State.PENDING, {"load": KEYED, "key": "k", "of_key": ["a", "b"]}, "the key k has its 2 of 2 running: a, b"),
        (
            State.FAILED,
            {"load": KEYED, "key": "k", "of_key": list("abcdefg")},
            "the key k has its 7 of 2 running: a, b, c, d, e and 2 more",
        ),
        (State.PENDING, {"load": KEYED, "key": "k", "of_key": ["a"]}, "waits for a free slot"),
        (State.PENDING, {"key": "array:k", "of_key": ["a"], "places": 1}, "the array has its 1 of 1 running: a"),
        (State.PENDING, {"load": KEYED, "key": "k", "of_key": ["a", "b"], "places": 3}, "waits for a free slot"),
        (State.PENDING, {"load": KEYED, "key": "k", "of_key": ["a", "b"], "held": True}, "held"),
        (State.PENDING, {"served": None}, "waits for a free slot"),
        (State.FAILED, {}, "waits for a free slot"),
    ],
)
def test_a_waiting_job_has_a_reason(state: State, facts: dict[str, Any], line: str) -> None:
    assert reason(state, **{**DUE, **facts}) == line
