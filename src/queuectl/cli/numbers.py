"""Numbers as options take them: ASCII digits, and nothing that only Python would read, such as 1_000 or ٣.

Functions, as click takes for a `type`. A default, which is a number already, stays as it is.
"""

from __future__ import annotations

import re

import click


def integer(value: str | int) -> int:
    if isinstance(value, int):
        return value
    # Python reads 4300 digits at most.
    if re.fullmatch(r"[+-]?[0-9]{1,4000}", value):
        return int(value)
    raise click.BadParameter(f"{value!r} is not a whole number")


def number(value: str | float) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    if re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?", value, re.IGNORECASE):
        return float(value)
    raise click.BadParameter(f"{value!r} is not a number")
