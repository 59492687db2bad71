from __future__ import annotations

from queuectl.config import load_settings
from queuectl.job.duration import DAY_MS
from queuectl.job.lifecycle import FINAL, State
from queuectl.job.retention import retention


def test_every_final_state_has_its_time_and_no_other_state_has_one() -> None:
    assert set(retention(load_settings({}, {}))) == FINAL


def test_cancelled_jobs_are_kept_as_long_as_completed_ones_and_dead_ones_for_ever() -> None:
    kept = retention(load_settings({}, {}))
    assert kept == {State.COMPLETED: 30 * DAY_MS, State.CANCELLED: 30 * DAY_MS, State.DEAD: None}
    kept = retention(load_settings({"retain-completed": "forever", "retain-dead": "1d"}, {}))
    assert kept == {State.COMPLETED: None, State.CANCELLED: None, State.DEAD: DAY_MS}
