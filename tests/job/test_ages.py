from __future__ import annotations

import pytest

from queuectl.job.ages import age, rough, took

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    "distance_ms, said",
    [(0, "now"), (-999, "now"), (999, "now"), (-1_000, "1s ago"), (20_000, "in 20s"), (-180_000, "3m ago")],
)
def test_a_moment_is_told_as_seen_from_now(distance_ms: int, said: str) -> None:
    assert age(NOW + distance_ms, NOW) == said


@pytest.mark.parametrize(
    "ms, said",
    [(0, "0s"), (59_999, "59s"), (60_000, "1m"), (3_599_999, "59m"), (18_000_000, "5h"), (12 * 86_400_000, "12d")],
)
def test_a_rough_duration_is_in_its_largest_unit_rounded_down(ms: int, said: str) -> None:
    assert rough(ms) == said


@pytest.mark.parametrize(
    "ms, said",
    [
        (0, "0ms"),
        (340, "340ms"),
        (1_250, "1.25s"),
        (9_999, "9.99s"),
        (12_500, "12.5s"),
        (59_999, "59.9s"),
        (125_000, "2m 05s"),
        (11_040_000, "3h 04m"),
        (2 * 86_400_000 + 3 * 3_600_000, "2d 03h"),
    ],
)
def test_a_duration_has_about_three_digits_and_is_never_rounded_up(ms: int, said: str) -> None:
    assert took(ms) == said
