"""Numbers as options take them: ASCII digits, and nothing that only Python would read, such as 1_000 or ٣.

Functions, as click takes for a `type`. A default, which is a number already, stays as it is.
"""

from __future__ import annotations

import re

import click

from queuectl.errors import InvalidInput


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


def port_number(text: str) -> int:
    if re.fullmatch("[0-9]{1,5}", text) and int(text) < 65_536:
        return int(text)
    raise InvalidInput("--port", f"not a port: {text!r}", hint="a number from 0 to 65535; 0 for any that is free")
