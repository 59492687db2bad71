"""The options about what a run may use, see job/resources.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from queuectl.cli.numbers import integer

Function = TypeVar("Function", bound=Callable[..., Any])

LIMITS: Final = ("memory", "cpu_time", "nice", "open_files", "processes", "file_size")
LIMIT_OPTIONS: Final = (
    click.option("--memory", metavar="SIZE", help="The memory a run may take: 512MiB, 2GiB; 0: any."),
    click.option("--cpu-time", metavar="TIME", help="The time a run may keep a processor busy: 30s, 1h; 0: any."),
    click.option("--nice", type=integer, metavar="N", help="How far others go before it, as of nice: -20 to 19."),
    click.option("--open-files", type=integer, metavar="N", help="How many files it may have open; 0: any number."),
    click.option("--processes", type=integer, metavar="N", help="How many processes there may be; 0: any number."),
    click.option("--file-size", metavar="SIZE", help="How large a file may become that it writes; 0: any size."),
)


def limit_options(function: Function) -> Function:
    for option in reversed(LIMIT_OPTIONS):
        function = option(function)
    return function
