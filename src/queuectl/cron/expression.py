"""Schedule expressions: five cron fields, six with seconds first, `@daily` and the like, or `every 90s`.

cronsim parses the fields and finds the next match on a wall clock without a time zone. This module adds the time zone. Clock
changes (DST) follow Debian's cron:

- Fixed times (neither minute nor hour starts with `*`): times inside a gap run once, at the first moment after it. Times that
  occur twice run the first time only.
- Other schedules follow elapsed time: times inside a gap do not run, times that occur twice run twice, so `*/5 * * * *` keeps its
  five minutes.

cronsim's own handling of zones is not used: it skips runs around changes of half an hour or at midnight, and it applies Debian's
rules to five fields only. See ADR 50.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.text import closest_match, short_repr
from queuectl.units import SECOND_MS, format_duration, parse_duration_ms

SUBJECT: Final = "schedule"
MAX_EXPRESSION_LENGTH: Final = 1000
HINT: Final = (
    "for example, '*/5 * * * *' (minute hour day month weekday), '0 */5 * * * *' with seconds, @daily, 'every 90s'"
)

NICKNAMES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

# Narrower than cronsim: `5/15` means a range to some tools and a single number to others, `L` and `#` are not documented here.
_NUMBER: Final = "(?:[0-9]{1,9}|[A-Z]{3})"
_TERM: Final = re.compile(rf"(?:\*|{_NUMBER}-{_NUMBER})(?:/0*([1-9][0-9]{{0,8}}))?|{_NUMBER}")

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - wall clock without a zone, as cronsim takes it
# Dates after it cannot be written in every time zone.
LAST_MS: Final = int((datetime(9998, 12, 31, tzinfo=UTC) - _EPOCH.replace(tzinfo=UTC)).total_seconds()) * 1000

NextRun = Callable[[int], int | None]  # the next run after a time, both in milliseconds since 1970; None: no more runs


class Field(NamedTuple):
    """A field of an expression: its name, its lowest and highest number, and names for numbers."""

    name: str
    low: int
    high: int
    names: str = ""

    @property
    def range(self) -> str:
        return f"{self.low}-{self.high}{self.names and f' or {self.names}'}"


_FIELDS: Final = (
    Field("second", 0, 59),
    Field("minute", 0, 59),
    Field("hour", 0, 23),
    Field("day of month", 1, 31),
    Field("month", 1, 12, "JAN-DEC"),
    Field("day of week", 0, 7, "SUN-SAT"),  # 0 and 7 are Sunday
)


class Every(NamedTuple):
    """Equal periods since the schedule was added, independent of time zones."""

    period_ms: int


class Cron(NamedTuple):
    """Six fields as cronsim takes them."""

    fields: str
    has_fixed_times: bool  # how clock changes are handled, see above


Expression = Every | Cron


def normalize(text: str) -> str:
    """Return the expression with single blanks, as it is stored and shown."""
    return " ".join(text.split())


# ── parse ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def parse_expression(text: str) -> Expression:
    """Raise InvalidInput with the field, its value and its range. Whether it ever runs: see `require_a_run`."""
    words = text.split()
    if not words or len(text) > MAX_EXPRESSION_LENGTH:
        problem = "empty" if not words else f"{len(text)} characters, at most {MAX_EXPRESSION_LENGTH} are allowed"
        raise InvalidInput(SUBJECT, problem, hint=HINT)
    if words[0].lower() == "every":
        return _parse_every(" ".join(words[1:]))
    if words[0].startswith("@"):
        words = _parse_nickname(words)
    if len(words) not in {5, 6}:
        count = "1 field" if len(words) == 1 else f"{len(words)} fields"
        raise InvalidInput(SUBJECT, f"found {count} in {short_repr(text)}, expected 5, or 6 with seconds", hint=HINT)
    if len(words) == 5:
        words = ["0", *words]
    words = [
        ",".join(_parse_term(term, field) for term in word.split(","))
        for word, field in zip(words, _FIELDS, strict=True)
    ]
    return Cron(" ".join(words), has_fixed_times=not words[1].startswith("*") and not words[2].startswith("*"))


def _parse_every(text: str) -> Every:
    if not text:
        raise InvalidInput(SUBJECT, "every: duration is missing", hint="for example, 'every 90s' or 'every 1h30m'")
    period_ms = parse_duration_ms(text, subject=f"{SUBJECT}: every")
    if period_ms < SECOND_MS:
        raise InvalidInput(
            SUBJECT, f"every: found {short_repr(text)}, expected at least 1s", hint="for example, 'every 90s'"
        )
    return Every(period_ms)


def _parse_nickname(words: list[str]) -> list[str]:
    name = words[0].lower()
    if name not in NICKNAMES or len(words) > 1:
        meant = closest_match(name, NICKNAMES)
        hint = f"did you mean {meant!r}?" if meant and meant != name else f"known names: {', '.join(NICKNAMES)}"
        raise InvalidInput(SUBJECT, f"found {short_repr(' '.join(words))}, expected a name like @daily", hint=hint)
    return NICKNAMES[name].split()


def _parse_term(term: str, field: Field) -> str:
    from cronsim import CronSim, CronSimError

    hint = f"{field.name} takes {field.range}, lists 1,3, ranges 1-5, and steps */2 or 1-5/2"
    problem = f"{field.name}: found {short_repr(term)}, expected {field.range}"
    match = _TERM.fullmatch(term.upper())
    if not match:
        raise InvalidInput(SUBJECT, problem, hint=hint)
    count = field.high - field.low + 1
    if match[1] and int(match[1]) > count:
        problem = f"{field.name}: found the step {match[1]} in {short_repr(term)}, expected 1-{count}"
        raise InvalidInput(SUBJECT, problem, hint=hint)
    # To cronsim, SUN is 0 also at the end of FRI-SUN, and 5-5/2 is 5-59/2.
    parsed = re.sub(r"^(\w+)-\1/.*", r"\1", match[0].replace("-SUN", "-7"))
    fields = ["*"] * len(_FIELDS)
    fields[_FIELDS.index(field)] = parsed
    try:
        CronSim(" ".join(fields), _EPOCH)
    except CronSimError as error:
        raise InvalidInput(SUBJECT, problem, hint=hint) from error
    return parsed


# ── next run ────────────────────────────────────────────────────────────────────────────────────────────────────────


def explain(text: str) -> str:
    """The expression in words: "At 02:00 on Monday through Friday". Raises InvalidInput."""
    parsed = parse_expression(text)
    if isinstance(parsed, Every):
        return f"Every {format_duration(parsed.period_ms)}"
    second, *fields = parsed.fields.split()
    from cronsim import CronSim

    words: str = CronSim(" ".join(fields if second == "0" else [second, *fields]), _EPOCH).explain()
    return words


def timetable(expression: Expression, *, zone: tzinfo, anchor_ms: int) -> NextRun:
    """`anchor_ms` is where `every 90s` starts to count: the first run is a period later."""

    def next_run(after_ms: int) -> int | None:
        if after_ms >= LAST_MS:
            return None
        if isinstance(expression, Every):
            passed = max(0, after_ms - anchor_ms) // expression.period_ms
            found = anchor_ms + (passed + 1) * expression.period_ms
            return found if found < LAST_MS else None
        search = _next_fixed if expression.has_fixed_times else _next_elapsed
        second = search(expression.fields, zone, after_ms // 1000)
        return None if second is None or second * 1000 > LAST_MS else second * 1000

    return next_run


def require_a_run(next_run: NextRun, text: str, *, after_ms: int) -> int:
    """Return the first run. Raise InvalidInput for a schedule that has none, like 31 February."""
    first = next_run(after_ms)
    if first is None:
        hint = "check day and month: no year has such a day, or none in the future"
        raise InvalidInput(SUBJECT, f"{text!r} never runs", hint=hint)
    return first


def _next_fixed(fields: str, zone: tzinfo, after: int) -> int | None:
    match = _next_match(fields, after + _offset(zone, after))
    while match is not None:
        local = (_EPOCH + timedelta(seconds=match)).replace(tzinfo=zone)
        # PEP 495: inside a gap, fold=0 has the offset before it, so it is after the change; fold=1 is before the change.
        found, other = _timestamp(local), _timestamp(local.replace(fold=1))
        if other < found:
            found = _find_change(zone, other, found) or found
        if found > after:
            return found
        # Clocks repeat an hour: this time has run already.
        match = _next_match(fields, match)
    return None


def _next_elapsed(fields: str, zone: tzinfo, after: int) -> int | None:
    # Between two clock changes, the wall clock is a fixed distance from UTC.
    while True:
        offset = _offset(zone, after + 1)
        wall = _next_match(fields, after + offset)
        if wall is None:
            return None
        change = _find_change(zone, after + 1, wall - offset)
        if change is None:
            return wall - offset
        after = change - 1


def _next_match(fields: str, wall: int) -> int | None:
    """Search 50 years of the wall clock."""
    from cronsim import CronSim, CronSimError

    try:
        found = next(CronSim(fields, _EPOCH + timedelta(seconds=wall)), None)
    except (CronSimError, OverflowError):  # 31 February; the year 10000
        return None
    return None if found is None else round((found - _EPOCH).total_seconds())


def _timestamp(local: datetime) -> int:
    return round(local.timestamp())


def _offset(zone: tzinfo, second: int) -> int:
    offset = datetime.fromtimestamp(second, zone).utcoffset()
    assert offset is not None, "a time zone has an offset"
    return round(offset.total_seconds())


def _find_change(zone: tzinfo, low: int, high: int) -> int | None:
    """The first second in (low, high] with another offset than `low`; None if there is none."""
    offset, day = _offset(zone, low), 86_400
    for start in range(low, high, day):
        end = min(start + day, high)
        if _offset(zone, end) != offset:
            while end - start > 1:
                middle = (start + end) // 2
                start, end = (middle, end) if _offset(zone, middle) == offset else (start, middle)  # noqa: PLW2901
            return end
    return None
