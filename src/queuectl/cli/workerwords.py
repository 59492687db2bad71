"""The words that say how a worker serves: of `worker start`, and of whatever starts one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from queuectl.cli.complete import complete_queues
from queuectl.errors import InvalidInput

MOST_SLOTS: Final = 1000
HEAVIEST: Final = 1000
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
NUMBER: Final = re.compile(r"[0-9]{1,9}")

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS: Final = (
    click.option("--count", "-c", metavar="N", help="How many jobs at a time (1 to 1,000); else as worker-count says."),
    click.option(
        "--queue",
        "-q",
        "queues",
        multiple=True,
        metavar="NAME[=N]",
        shell_complete=complete_queues,
        help="Serve this queue; the first is first, or by weight.",
    ),
    click.option("--drain", is_flag=True, help="End when nothing is due, running or waiting for a retry."),
    click.option("--idle-timeout", metavar="TIME", help="End when nothing ran here for this long: 90, 90s, 5m."),
    click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="What it says: lines for people, or one JSON object a line.",
    ),
    click.option("--policy", metavar="FILE", help="What may run here; else policy.toml in the home, if there is one."),
)


def serving_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def slot_count(text: str) -> int:
    if NUMBER.fullmatch(text) and 1 <= int(text) <= MOST_SLOTS:
        return int(text)
    raise InvalidInput("--count", f"not a number from 1 to {MOST_SLOTS:,}: {text!r}", hint="like --count 4")


def worker_name(text: str) -> str:
    if NAME.fullmatch(text):
        return text
    raise InvalidInput(
        "--name", f"not a name: {text!r}", hint="up to 64 letters, digits, '.', '_' and '-', a letter or digit first"
    )


def queues_and_weights(texts: Sequence[str]) -> dict[str, int | None]:
    """The names, in their order, each with the weight if one is given."""
    named: dict[str, int | None] = {}
    for name, weight in map(_queue_and_weight, texts):
        before = named.setdefault(name, weight)
        if before != weight:
            problem = f"two weights for {name!r}: {before or 'none'} and {weight or 'none'}"
            raise InvalidInput("--queue", problem, hint="name each queue once, like --queue high=5 --queue low=1")
    return named


def _queue_and_weight(text: str) -> tuple[str, int | None]:
    """The name, and the weight if one is given."""
    name, equals, weight = text.partition("=")
    if not NAME.fullmatch(name):
        raise InvalidInput("--queue", f"not the name of a queue: {name!r}", hint="like --queue default")
    if not equals:
        return name, None
    if not NUMBER.fullmatch(weight) or not 1 <= int(weight) <= HEAVIEST:
        problem = f"expected a weight from 1 to {HEAVIEST:,}, got {weight!r}"
        raise InvalidInput("--queue", problem, hint="like --queue high=5 --queue low=1")
    return name, int(weight)
