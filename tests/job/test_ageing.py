from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.job.ageing import format_ageing, parse_ageing
from queuectl.job.duration import LONGEST_MS
from queuectl.job.rank import Ageing, ByEnqueues, ByTime, Strict


@pytest.mark.parametrize(
    "text, ageing",
    [
        ("off", Strict()),
        (" OFF ", Strict()),
        ("enqueues", ByEnqueues()),
        ("10m", ByTime(600_000)),
        ("1", ByTime(1_000)),
    ],
)
def test_ageing_is_off_or_enqueues_or_a_duration(text: str, ageing: Ageing) -> None:
    assert parse_ageing(text, subject="ageing") == ageing


@pytest.mark.parametrize("text", ["", "on", "0", "0s", "-1s", "enqueue"])
def test_other_words_for_ageing_are_refused_with_those_that_exist(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^ageing: ") as caught:
        parse_ageing(text, subject="ageing")
    assert caught.value.hint.startswith("off, enqueues, or")


@given(st.one_of(st.just(Strict()), st.just(ByEnqueues()), st.builds(ByTime, st.integers(1, LONGEST_MS))))
def test_a_written_ageing_reads_back_as_the_same(ageing: Ageing) -> None:
    assert parse_ageing(format_ageing(ageing), subject="x") == ageing
