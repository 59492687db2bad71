"""The settings of a queue: paused, concurrency, rate limit, defaults of its jobs; and how limits apply.

A new setting also needs: the table `queues` of both dialects, store/admission.py, `queue set` and `queue list`, docs/reference/json.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.jobs.spec import PackedLimits
from queuectl.text import short_repr
from queuectl.units import (
    DAY_MS,
    HOUR_MS,
    MAX_DURATION_MS,
    MINUTE_MS,
    SECOND_MS,
    format_duration,
    parse_duration_ms,
    to_seconds,
)
from queuectl.webhooks.rules import redact_url

MAX_QUEUE_LIMIT: Final = 1_000_000  # jobs at a time, and starts in a window
RATE_HINT: Final = "for example, 10/m, 5/s, 100/h, 1000/d or 5/10s; none removes it"
# When to check again a claim that counts against the rate, but whose process has not started yet.
UNSTARTED_RECHECK_MS: Final = 50

_UNITS: Final = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}


class Rate(NamedTuple):
    """A rate limit: at most `starts` starts in every window of this length."""

    starts: int
    window_ms: int


class QueueSettings(NamedTuple):
    """The settings of one queue; None: not set. Priority to timeout, webhooks and limits are defaults for its jobs."""

    paused: bool = False
    concurrency: int | None = None
    rate: Rate | None = None
    priority: int | None = None
    max_retries: int | None = None
    timeout_ms: int | None = None  # 0: none at all
    per_key: int | None = None  # jobs of one key at a time
    on_success: str | None = None  # webhooks, see webhooks/rules.py
    on_failure: str | None = None
    on_dead: str | None = None
    limits: PackedLimits | None = None  # resource limits of a run, see jobs/resources.py


class QueueLoad(NamedTuple):
    """The limits of a queue and how far they are used now."""

    paused: bool
    concurrency: int | None
    running: int  # on all workers; counted only if there is a limit
    rate: Rate | None
    opens_at: int | None  # when the rate limit admits the next start; None: now
    per_key: int | None = None  # jobs of one key at a time

    @property
    def is_full(self) -> bool:
        return self.concurrency is not None and self.running >= self.concurrency


class PriorStart(NamedTuple):
    """An earlier start that counts against the rate limit."""

    at: int
    is_sure: bool  # False: claimed at that time, not started yet


def parse_rate(text: str, *, subject: str) -> Rate | None:
    """Parse `10/m`, `5/10s`; None for `none`. Raises InvalidInput for `subject`."""
    wanted = text.strip().lower()
    if wanted == "none":
        return None
    found = re.fullmatch(r"([0-9]{1,9})\s*/\s*(\S.*)", wanted)
    if found is None:
        raise InvalidInput(subject, f"expected a rate, got {short_repr(text)}", hint=RATE_HINT)
    starts, per = int(found[1]), found[2]
    try:
        window_ms = _UNITS[per] if per in _UNITS else parse_duration_ms(per, subject=subject)
    except InvalidInput as exc:
        raise InvalidInput(subject, f"invalid window: {short_repr(per)}", hint=RATE_HINT) from exc
    if not 1 <= starts <= MAX_QUEUE_LIMIT:
        raise InvalidInput(subject, f"expected 1 to {MAX_QUEUE_LIMIT} starts, got {short_repr(text)}", hint=RATE_HINT)
    if not 1 <= window_ms <= MAX_DURATION_MS:
        raise InvalidInput(subject, f"window out of range: {short_repr(text)}", hint=RATE_HINT)
    return Rate(starts, window_ms)


def format_rate(rate: Rate) -> str:
    """The shortest form that `parse_rate` accepts."""
    unit = next((name for name, ms in _UNITS.items() if ms == rate.window_ms), None)
    return f"{rate.starts}/{unit or format_duration(rate.window_ms)}"


def allowed_starts(rate: Rate, earlier: Sequence[PriorStart | None], *, now_ms: int) -> tuple[int, int | None]:
    """How many jobs may start now, and when the next one may; None if all of them may.

    `earlier` has an element for each job: the start that is `rate.starts` starts before it, None if there was none. If each start
    is a whole window after that one, no window holds more than `rate.starts`.
    """
    for places, before in enumerate(earlier):
        if before is None:
            continue
        opens_at = before.at + rate.window_ms
        if not before.is_sure:
            return places, max(opens_at, now_ms + UNSTARTED_RECHECK_MS)
        if opens_at > now_ms:
            return places, opens_at
    return len(earlier), None


def split_slots(weights: Sequence[int], account: list[int], slots: int) -> list[int]:
    """Distribute slots by weight (smooth weighted round robin). `account` keeps the state between calls, initially zeros."""
    shares, total = [0] * len(weights), sum(weights)
    for _ in range(slots):
        for which, weight in enumerate(weights):
            account[which] += weight
        chosen = max(range(len(weights)), key=account.__getitem__)
        account[chosen] -= total
        shares[chosen] += 1
    return shares


def rules_to_dict(rules: QueueSettings, *, show_urls: bool = False) -> dict[str, Any]:
    """The JSON of the settings; a timeout is in seconds, 0 for none. URLs are redacted without `show_urls`."""
    urls = {name: getattr(rules, name) for name in ("on_success", "on_failure", "on_dead")}
    return {
        "concurrency": rules.concurrency,
        "per_key": rules.per_key,
        "rate": None if rules.rate is None else format_rate(rules.rate),
        "priority": rules.priority,
        "max_retries": rules.max_retries,
        "timeout": to_seconds(rules.timeout_ms),
        "limits": dict(rules.limits or {}),
        **{name: url if show_urls or url is None else redact_url(url) for name, url in urls.items()},
    }
