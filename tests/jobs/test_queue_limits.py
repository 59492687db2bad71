from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.jobs.queue_limits import (
    UNSTARTED_RECHECK_MS,
    PriorStart,
    QueueLoad,
    QueueSettings,
    Rate,
    allowed_starts,
    format_rate,
    parse_rate,
    rules_to_dict,
    split_slots,
)
from tests.messages import assert_readable

NOW = 1_000_000


@pytest.mark.parametrize(
    "written, rate",
    [
        ("10/m", Rate(10, 60_000)),
        ("1/s", Rate(1, 1000)),
        (" 5 / H ", Rate(5, 3_600_000)),
        ("1000/d", Rate(1000, 86_400_000)),
        ("5/10s", Rate(5, 10_000)),
        ("5/10", Rate(5, 10_000)),
        ("3/1h30m", Rate(3, 5_400_000)),
        ("none", None),
        ("None", None),
    ],
)
def test_a_rate_is_parsed(written: str, rate: Rate | None) -> None:
    assert parse_rate(written, subject="--rate") == rate


@pytest.mark.parametrize(
    "written",
    ["", "10", "/m", "m", "0/m", "-1/m", "10/", "10/0", "10/x", "1.5/s", "10/-5s", "2000000/s", "1/m/s", "1" * 99],
)
def test_an_invalid_rate_is_rejected(written: str) -> None:
    with pytest.raises(InvalidInput, match="--rate") as refusal:
        parse_rate(written, subject="--rate")
    assert_readable(refusal.value)


def test_an_invalid_unit_of_a_rate_is_rejected_with_valid_examples() -> None:
    with pytest.raises(InvalidInput, match="--rate: invalid window: 'month'") as refusal:
        parse_rate("10/month", subject="--rate")
    assert "10/m" in (refusal.value.hint or "")


@given(st.builds(Rate, st.integers(1, 1_000_000), st.integers(1, 10**12)))
def test_a_formatted_rate_is_parsed_unchanged(rate: Rate) -> None:
    assert parse_rate(format_rate(rate), subject="rate") == rate


@pytest.mark.parametrize("written", ["10/m", "1/s", "7/h", "1/d", "5/10s", "3/1h30m"])
def test_a_rate_is_formatted_in_its_shortest_form(written: str) -> None:
    rate = parse_rate(written, subject="rate")
    assert rate is not None
    assert format_rate(rate) == written


def test_as_many_jobs_start_as_the_rate_admits_and_the_next_one_waits() -> None:
    rate = Rate(2, 1000)
    long_ago, lately = PriorStart(NOW - 1000, True), PriorStart(NOW - 400, True)
    assert allowed_starts(rate, [None, None], now_ms=NOW) == (2, None)
    assert allowed_starts(rate, [long_ago, lately], now_ms=NOW) == (1, NOW + 600)
    assert allowed_starts(rate, [lately, lately], now_ms=NOW) == (0, NOW + 600)
    assert allowed_starts(rate, [], now_ms=NOW) == (0, None)


def test_a_claim_that_has_not_started_is_checked_again_soon() -> None:
    assert allowed_starts(Rate(1, 1000), [PriorStart(NOW, False)], now_ms=NOW) == (0, NOW + 1000)
    assert allowed_starts(Rate(1, 1000), [PriorStart(NOW - 5000, False)], now_ms=NOW) == (0, NOW + UNSTARTED_RECHECK_MS)


@given(
    st.builds(Rate, st.integers(1, 4), st.integers(1, 30)),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=60),
)
def test_no_window_holds_more_starts_than_the_rate_and_no_start_is_later_than_needed(
    rate: Rate, looks: list[tuple[int, int]]
) -> None:
    starts: list[int] = []
    now = 0
    for pause, wanted in looks:
        now += pause
        earlier = [
            PriorStart(known[-rate.starts], True) if len(known := starts + [now] * more) >= rate.starts else None
            for more in range(wanted)
        ]
        places, opens_at = allowed_starts(rate, earlier, now_ms=now)
        starts += [now] * places
        assert (opens_at is None) == (places == wanted)
        if opens_at is not None:
            in_window = [start for start in starts if start > now - rate.window_ms]
            assert len(in_window) == rate.starts
            assert opens_at == in_window[0] + rate.window_ms
    for end in range(now + 1):
        assert sum(end - rate.window_ms < start <= end for start in starts) <= rate.starts


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.lists(st.integers(0, 7), max_size=30))
def test_slots_are_split_by_weight_for_any_number_of_slots(weights: list[int], portions: list[int]) -> None:
    account, given_out = [0] * len(weights), [0] * len(weights)
    for slots in portions:
        shares = split_slots(weights, account, slots)
        assert sum(shares) == slots
        given_out = [before + more for before, more in zip(given_out, shares, strict=True)]
        for got, weight in zip(given_out, weights, strict=True):
            assert abs(got - sum(given_out) * weight / sum(weights)) < len(weights)


def test_the_heavier_queue_is_first_and_turns_are_spread_evenly() -> None:
    account = [0, 0]
    turns = [split_slots([3, 1], account, 1).index(1) for _ in range(8)]
    assert turns == [0, 0, 1, 0, 0, 0, 1, 0]
    assert all(after != 1 for before, after in pairwise(turns) if before == 1)


def test_a_queue_is_full_at_its_concurrency() -> None:
    assert QueueLoad(False, 2, 2, None, None).is_full
    assert not QueueLoad(False, 2, 1, None, None).is_full
    assert not QueueLoad(False, None, 9, None, None).is_full


def test_settings_are_serialized_like_the_fields_of_a_job() -> None:
    nothing = {
        "concurrency": None,
        "per_key": None,
        "rate": None,
        "priority": None,
        "max_retries": None,
        "timeout": None,
        "limits": {},
        "on_success": None,
        "on_failure": None,
        "on_dead": None,
    }
    assert rules_to_dict(QueueSettings()) == nothing
    url = "https://example.org/hidden"
    limits = {"memory": 2**30}
    rules = QueueSettings(True, 2, Rate(5, 10_000), -1, 0, 1500, 3, on_dead=url, limits=limits)
    told = {"concurrency": 2, "per_key": 3, "rate": "5/10s", "priority": -1, "max_retries": 0, "timeout": 1.5}
    assert rules_to_dict(rules) == {**nothing, **told, "on_dead": "https://example.org/…", "limits": limits}
    assert rules_to_dict(rules, show_urls=True)["on_dead"] == url
    assert rules_to_dict(QueueSettings(timeout_ms=0))["timeout"] == 0
