"""The three kinds of ageing in words: `off`, `enqueues`, or the time that earns a waiting job one point."""

from __future__ import annotations

from typing import Final, assert_never

from queuectl.errors import InvalidInput
from queuectl.job.duration import format_duration, parse_duration_ms
from queuectl.job.rank import Ageing, ByEnqueues, ByTime, Strict

HINT: Final = "off, enqueues, or the time that is worth one point of priority, like 10m"


def parse_ageing(text: str, *, subject: str) -> Ageing:
    word = text.strip().lower()
    if word == "off":
        return Strict()
    if word == "enqueues":
        return ByEnqueues()
    try:
        step_ms = parse_duration_ms(word, subject=subject)
    except InvalidInput as error:
        raise InvalidInput(subject, error.problem, hint=HINT) from error
    if step_ms == 0:
        raise InvalidInput(subject, "the time that is worth one point cannot be 0", hint=HINT)
    return ByTime(step_ms)


def format_ageing(ageing: Ageing) -> str:
    match ageing:
        case Strict():
            return "off"
        case ByTime(step_ms):
            return format_duration(step_ms)
        case ByEnqueues():
            return "enqueues"
        case unreachable:
            assert_never(unreachable)
