"""What can be said about a queue: that it is paused, how much of it may run, and what its jobs get that do not say otherwise.

New rule? Also: the table `queues` of both dialects, store/limits.py, `queue set` and `queue list`, docs/reference/json.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.job.duration import DAY_MS, HOUR_MS, LONGEST_MS, MINUTE_MS, SECOND_MS, format_duration, parse_duration_ms
from queuectl.job.hooks import shown_url
from queuectl.job.newjob import PackedLimits
from queuectl.job.shown import shown

MOST: Final = 1_000_000  # jobs at a time, and starts in a window
RATE_HINT: Final = "like 10/m, 5/s, 100/h, 1000/d or 5/10s; none takes it away"
# How soon to look again at a claim that counts but whose process is not there yet: it is a matter of milliseconds.
SOON_MS: Final = 50

_UNITS: Final = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}


class Rate(NamedTuple):
    """At most so many starts in every window of this length."""

    starts: int
    window_ms: int


class Rules(NamedTuple):
    """What was said about one queue; None: nothing. Priority, retries and timeout are for jobs that do not say otherwise."""

    paused: bool = False
    concurrency: int | None = None
    rate: Rate | None = None
    priority: int | None = None
    max_retries: int | None = None
    timeout_ms: int | None = None  # 0: none at all
    per_key: int | None = None  # jobs of one key at a time
    on_success: str | None = None  # whom to tell of jobs that do not say otherwise, see job/hooks.py
    on_failure: str | None = None
    on_dead: str | None = None
    limits: PackedLimits | None = None  # what a run may use of a job that does not say otherwise, see job/resources.py


class Brake(NamedTuple):
    """What keeps the jobs of a queue from being started now, or may do so soon."""

    paused: bool
    concurrency: int | None
    running: int  # over all workers; only counted where there is a limit
    rate: Rate | None
    opens_at: int | None  # when its rate lets the next one start; None: it has none, or there is room
    per_key: int | None = None  # jobs of one key at a time

    @property
    def is_full(self) -> bool:
        return self.concurrency is not None and self.running >= self.concurrency


class Earlier(NamedTuple):
    """A start that another one has to keep its distance from."""

    at: int
    is_sure: bool  # False: it was claimed then, and will start at any moment


def parse_rate(text: str, *, subject: str) -> Rate | None:
    """`10/m`, `5/10s`; None for `none`. InvalidInput, which names `subject`, for everything else."""
    wanted = text.strip().lower()
    if wanted == "none":
        return None
    found = re.fullmatch(r"([0-9]{1,9})\s*/\s*(\S.*)", wanted)
    if found is None:
        raise InvalidInput(subject, f"not a rate: {shown(text)}", hint=RATE_HINT)
    starts, per = int(found[1]), found[2]
    try:
        window_ms = _UNITS[per] if per in _UNITS else parse_duration_ms(per, subject=subject)
    except InvalidInput as exc:
        raise InvalidInput(subject, f"not a time in which to count: {shown(per)}", hint=RATE_HINT) from exc
    if not 1 <= starts <= MOST:
        raise InvalidInput(subject, f"expected 1 to {MOST} starts, got {shown(text)}", hint=RATE_HINT)
    if not 1 <= window_ms <= LONGEST_MS:
        raise InvalidInput(subject, f"no time in which to count: {shown(text)}", hint=RATE_HINT)
    return Rate(starts, window_ms)


def format_rate(rate: Rate) -> str:
    """In its shortest form, which is read back as the same."""
    unit = next((name for name, ms in _UNITS.items() if ms == rate.window_ms), None)
    return f"{rate.starts}/{unit or format_duration(rate.window_ms)}"


def allowed(rate: Rate, earlier: Sequence[Earlier | None], *, now_ms: int) -> tuple[int, int | None]:
    """How many may start now, and when the next one may; None if all may that were asked for.

    One of `earlier` for each that wants to start: what was started `rate.starts` starts before it, None if there was none. As
    long as each keeps its distance from that one, no window anywhere holds more.
    """
    for places, before in enumerate(earlier):
        if before is None:
            continue
        opens_at = before.at + rate.window_ms
        if not before.is_sure:
            return places, max(opens_at, now_ms + SOON_MS)
        if opens_at > now_ms:
            return places, opens_at
    return len(earlier), None


def share_out(weights: Sequence[int], account: list[int], slots: int) -> list[int]:
    """How many of these slots go to each, by weight and in turns that are spread evenly. `account` is what is remembered from
    one time to the next; it begins with zeros."""
    shares, total = [0] * len(weights), sum(weights)
    for _ in range(slots):
        for which, weight in enumerate(weights):
            account[which] += weight
        chosen = max(range(len(weights)), key=account.__getitem__)
        account[chosen] -= total
        shares[chosen] += 1
    return shares


def rules_to_dict(rules: Rules, *, show_urls: bool = False) -> dict[str, Any]:
    """The rules in JSON; a timeout is in seconds, and 0 for none at all. Of URLs only where they lead, unless `show_urls`."""
    ms = rules.timeout_ms
    urls = {name: getattr(rules, name) for name in ("on_success", "on_failure", "on_dead")}
    return {
        "concurrency": rules.concurrency,
        "per_key": rules.per_key,
        "rate": None if rules.rate is None else format_rate(rules.rate),
        "priority": rules.priority,
        "max_retries": rules.max_retries,
        "timeout": None if ms is None else ms // 1000 if ms % 1000 == 0 else ms / 1000,
        "limits": dict(rules.limits or {}),
        **{name: url if show_urls or url is None else shown_url(url) for name, url in urls.items()},
    }
