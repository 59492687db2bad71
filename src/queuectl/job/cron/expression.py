"""What people write for "when": five fields, six with seconds first, `@daily` and the like, or `every 90s`."""

from __future__ import annotations

from typing import Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.job.cron import field as kinds
from queuectl.job.cron.field import SUBJECT, Field, parse_field
from queuectl.job.duration import SECOND_MS, parse_duration_ms
from queuectl.job.nearest import nearest
from queuectl.job.shown import shown

LONGEST: Final = 1000  # characters: more says nothing that fewer could not
HINT: Final = (
    "like '*/5 * * * *' (minute hour day month weekday), six fields with seconds first, @daily, or 'every 90s'"
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
_KINDS: Final = (kinds.SECOND, kinds.MINUTE, kinds.HOUR, kinds.DAY, kinds.MONTH, kinds.WEEKDAY)


class Every(NamedTuple):
    """At equal distances from the moment it was added; no calendar and no zone has a say in it."""

    period_ms: int


class Calendar(NamedTuple):
    """By the clock on the wall."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Field
    months: tuple[int, ...]
    weekdays: Field  # Sunday is 0
    follows_elapsed_time: bool  # when the clocks change, see ticks.py


Expression = Every | Calendar


def normalise(text: str) -> str:
    """As it is kept and shown: the same words with single blanks."""
    return " ".join(text.split())


def parse_expression(text: str) -> Expression:
    """InvalidInput for what is none, with the field, what was found and its range. Whether it ever fires is another
    question, see ticks.py."""
    words = text.split()
    if not words or len(text) > LONGEST:
        problem = "blank" if not words else f"{len(text)} characters, over {LONGEST}"
        raise InvalidInput(SUBJECT, problem, hint=HINT)
    if words[0].lower() == "every":
        return _parse_every(" ".join(words[1:]))
    if words[0].startswith("@"):
        words = _parse_nickname(words)
    if len(words) not in {5, 6}:
        count = "1 field" if len(words) == 1 else f"{len(words)} fields"
        raise InvalidInput(SUBJECT, f"found {count} in {shown(text)}, expected 5, or 6 with seconds", hint=HINT)
    if len(words) == 5:
        words = ["0", *words]
    second, minute, hour, day, month, weekday = map(parse_field, words, _KINDS)
    return Calendar(
        second.numbers,
        minute.numbers,
        hour.numbers,
        day,
        month.numbers,
        weekday,
        follows_elapsed_time=minute.is_star or hour.is_star,
    )


def _parse_every(text: str) -> Every:
    if not text:
        raise InvalidInput(SUBJECT, "every: how long?", hint="like 'every 90s', 'every 1h30m'")
    period_ms = parse_duration_ms(text, subject=f"{SUBJECT}: every")
    if period_ms < SECOND_MS:
        raise InvalidInput(SUBJECT, f"every: found {shown(text)}, expected at least 1s", hint="like 'every 90s'")
    return Every(period_ms)


def _parse_nickname(words: list[str]) -> list[str]:
    name = words[0].lower()
    if name not in NICKNAMES or len(words) > 1:
        meant = nearest(name, NICKNAMES)
        hint = f"did you mean {meant!r}?" if meant and meant != name else f"known: {', '.join(NICKNAMES)}"
        raise InvalidInput(SUBJECT, f"found {shown(' '.join(words))}, expected a name like @daily", hint=hint)
    return NICKNAMES[name].split()
