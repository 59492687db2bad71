from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuectl.errors import InvalidInput
from queuectl.job.limits import (
    SOON_MS,
    Brake,
    Earlier,
    Rate,
    Rules,
    allowed,
    format_rate,
    parse_rate,
    rules_to_dict,
    share_out,
)
from tests.job.said import assert_well_said

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
def test_a_rate_is_read_as_people_write_it(written: str, rate: Rate | None) -> None:
    assert parse_rate(written, subject="--rate") == rate


@pytest.mark.parametrize(
    "written",
    ["", "10", "/m", "m", "0/m", "-1/m", "10/", "10/0", "10/x", "1.5/s", "10/-5s", "2000000/s", "1/m/s", "1" * 99],
)
def test_what_is_no_rate_is_refused_in_words(written: str) -> None:
    with pytest.raises(InvalidInput, match="--rate") as refusal:
        parse_rate(written, subject="--rate")
    assert_well_said(refusal.value)


def test_a_wrong_unit_of_a_rate_is_answered_with_rates_that_are_right() -> None:
    with pytest.raises(InvalidInput, match="--rate: not a time in which to count: 'month'") as refusal:
        parse_rate("10/month", subject="--rate")
    assert "10/m" in (refusal.value.hint or "")


@given(st.builds(Rate, st.integers(1, 1_000_000), st.integers(1, 10**12)))
def test_a_rate_that_is_written_is_read_back_as_the_same(rate: Rate) -> None:
    assert parse_rate(format_rate(rate), subject="rate") == rate


@pytest.mark.parametrize("written", ["10/m", "1/s", "7/h", "1/d", "5/10s", "3/1h30m"])
def test_a_rate_is_written_in_its_shortest_form(written: str) -> None:
    rate = parse_rate(written, subject="rate")
    assert rate is not None
    assert format_rate(rate) == written


def test_as_many_may_start_as_there_is_room_for_and_then_one_waits() -> None:
    rate = Rate(2, 1000)
    long_ago, lately = Earlier(NOW - 1000, True), Earlier(NOW - 400, True)
    assert allowed(rate, [None, None], now_ms=NOW) == (2, None)
    assert allowed(rate, [long_ago, lately], now_ms=NOW) == (1, NOW + 600)
    assert allowed(rate, [lately, lately], now_ms=NOW) == (0, NOW + 600)
    assert allowed(rate, [], now_ms=NOW) == (0, None)


def test_one_that_is_about_to_start_is_waited_for_a_little() -> None:
    assert allowed(Rate(1, 1000), [Earlier(NOW, False)], now_ms=NOW) == (0, NOW + 1000)
    assert allowed(Rate(1, 1000), [Earlier(NOW - 5000, False)], now_ms=NOW) == (0, NOW + SOON_MS)


@given(
    st.builds(Rate, st.integers(1, 4), st.integers(1, 30)),
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=60),
)
def test_no_window_holds_more_starts_than_the_rate_and_nobody_waits_in_vain(
    rate: Rate, looks: list[tuple[int, int]]
) -> None:
    starts: list[int] = []
    now = 0
    for pause, wanted in looks:
        now += pause
        earlier = [
            Earlier(known[-rate.starts], True) if len(known := starts + [now] * more) >= rate.starts else None
            for more in range(wanted)
        ]
        places, opens_at = allowed(rate, earlier, now_ms=now)
        starts += [now] * places
        assert (opens_at is None) == (places == wanted)
        if opens_at is not None:
            in_window = [start for start in starts if start > now - rate.window_ms]
            assert len(in_window) == rate.starts
            assert opens_at == in_window[0] + rate.window_ms
    for end in range(now + 1):
        assert sum(end - rate.window_ms < start <= end for start in starts) <= rate.starts


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.lists(st.integers(0, 7), max_size=30))
def test_slots_are_shared_out_by_weight_whatever_the_portions(weights: list[int], portions: list[int]) -> None:
    account, given_out = [0] * len(weights), [0] * len(weights)
    for slots in portions:
        shares = share_out(weights, account, slots)
        assert sum(shares) == slots
        given_out = [before + more for before, more in zip(given_out, shares, strict=True)]
        for got, weight in zip(given_out, weights, strict=True):
            assert abs(got - sum(given_out) * weight / sum(weights)) < len(weights)


def test_the_heavier_goes_first_and_turns_are_spread_evenly() -> None:
    account = [0, 0]
    turns = [share_out([3, 1], account, 1).index(1) for _ in range(8)]
    assert turns == [0, 0, 1, 0, 0, 0, 1, 0]
    assert all(after != 1 for before, after in pairwise(turns) if before == 1)


def test_a_queue_is_full_when_as_many_run_as_may() -> None:
    assert Brake(False, 2, 2, None, None).is_full
    assert not Brake(False, 2, 1, None, None).is_full
    assert not Brake(False, None, 9, None, None).is_full


def test_rules_are_shown_in_the_words_of_a_job() -> None:
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
    assert rules_to_dict(Rules()) == nothing
    url = "https://example.org/hidden"
    limits = {"memory": 2**30}
    rules = Rules(True, 2, Rate(5, 10_000), -1, 0, 1500, 3, on_dead=url, limits=limits)
    told = {"concurrency": 2, "per_key": 3, "rate": "5/10s", "priority": -1, "max_retries": 0, "timeout": 1.5}
    assert rules_to_dict(rules) == {**nothing, **told, "on_dead": "https://example.org/…", "limits": limits}
    assert rules_to_dict(rules, show_urls=True)["on_dead"] == url
    assert rules_to_dict(Rules(timeout_ms=0))["timeout"] == 0
