"""What goes wrong in a seed, and how often."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

from tests.sim.stage import Chances


class Theme(enum.Enum):
    MIXED = "of everything something, another mixture each time"  # where all goes wrong at once, nothing gets far
    STILL = "everybody stands still all the time, and no ring is heard"
    NAPS = "one at a time stands still for longer than a lease, just before a settle or just after a claim"
    ALERT = "people see each death, end at once what the dead have left, and are killed over it just after a signal"
    POWER = "the power goes soon after a crash"
    ADOPTION = "workers crash over jobs that take long, most of all when they have just begun them"
    STALLED = "supervisors are stopped before they start what their workers request, and the workers after that, for longer than a lease"
    STORE = "workers crash while the database cannot be written"


# Two of three seeds have one trouble, and much of it: what takes two rare things in a row is hardly ever met otherwise.
THEMES: Final = (
    Theme.MIXED, Theme.NAPS, Theme.STORE, Theme.MIXED, Theme.ADOPTION, Theme.STILL, Theme.MIXED,
    Theme.NAPS, Theme.POWER, Theme.MIXED, Theme.STORE, Theme.ADOPTION, Theme.MIXED, Theme.ALERT,
    Theme.STALLED,
)  # fmt: skip
# In a row, so that a theme meets whatever else goes by the number of the seed.
IN_A_ROW: Final = 3


def theme_of(seed: int) -> Theme:
    return THEMES[seed // IN_A_ROW % len(THEMES)]


def seeds_of(theme: Theme) -> Iterator[int]:
    return (seed for seed in count() if theme_of(seed) is theme)


def chances_of(theme: Theme, chance: Callable[[], float]) -> Chances:
    match theme:
        case Theme.STILL:
            return Chances(freeze=0.03, drop=1.0)
        case Theme.NAPS:
            when = "settling" if chance() < 0.5 else "claimed"
            return Chances(freeze=0.001, least_nap=5.0, one_at_a_time=True, **{when: 0.4})
        case Theme.ALERT:
            return Chances(crash=0.006, ending=0.3)
        case Theme.POWER:
            return Chances(crash=0.008)
        case Theme.ADOPTION:
            return Chances(crash=0.006, ordered=0.05, long=0.7)
        case Theme.STALLED:
            return Chances(freeze=0.001, least_nap=5.0, requested=0.4, stall=0.4)
        case Theme.STORE:
            return Chances(crash=0.005, sleeping=0.05, broken=0.3)
        case Theme.MIXED:
            return _mixture(chance)


def _mixture(chance: Callable[[], float]) -> Chances:
    def some(most: float) -> float:
        return most * chance() if chance() < 0.5 else 0.0

    return Chances(
        crash=some(0.02), freeze=some(0.015), busy=some(0.1), full=some(0.05), broken=some(0.05), log=some(0.1),
        drop=1.0 if chance() < 0.15 else some(1.0), delay=some(0.5), unstartable=some(0.2), supervisor=some(0.3), silence=some(0.4),
    )  # fmt: skip
