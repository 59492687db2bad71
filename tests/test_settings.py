from __future__ import annotations

import pytest

from queuectl.config import load_settings
from queuectl.errors import UnknownName
from queuectl.jobs.states import FINAL, State
from queuectl.settings import SettingEntry, retention
from queuectl.units import DAY_MS


def test_only_final_states_have_a_retention() -> None:
    assert set(retention(load_settings({}, {}))) == FINAL


def test_cancelled_jobs_are_kept_like_completed_ones_and_dead_ones_forever() -> None:
    kept = retention(load_settings({}, {}))
    assert kept == {State.COMPLETED: 30 * DAY_MS, State.CANCELLED: 30 * DAY_MS, State.DEAD: None}
    kept = retention(load_settings({"retain-completed": "forever", "retain-dead": "1d"}, {}))
    assert kept == {State.COMPLETED: None, State.CANCELLED: None, State.DEAD: DAY_MS}


def test_an_entry_is_found_by_key_or_alias() -> None:
    settings = load_settings({"timeout": "90"}, {})
    assert settings.entry("job_timeout") == settings.entry("timeout")
    assert (settings.entry("timeout").text, settings.entry("timeout").source) == ("1m30s", "stored")
    with pytest.raises(UnknownName):
        settings.entry("colour")


def test_a_setting_is_printed_with_its_default_and_source() -> None:
    entry = SettingEntry("max-retries", 5, 3, "stored", "5")
    assert entry.to_dict() == {"key": "max-retries", "value": 5, "default": 3, "source": "stored"}
