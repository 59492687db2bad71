"""What a shell may offer for a value: handed to click as `shell_complete` of an option or argument."""

from __future__ import annotations

import click

from queuectl.config import KEYS
from queuectl.job.lifecycle import State


def complete_states(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Of a list `dead,fa` only the last is incomplete."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{state}" for state in State if state.startswith(last.lower())]


def complete_keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [key.name for key in KEYS if key.name.startswith(incomplete.lower().replace("_", "-"))]
