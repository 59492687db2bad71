"""queuectl clone"""

from __future__ import annotations

from typing import Any

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.commands.enqueue import single
from queuectl.cli.complete import complete_jobs
from queuectl.cli.jobwords import field_options, read_flags
from queuectl.cli.result import Result
from queuectl.config import working_directory
from queuectl.job.fields import absolute
from queuectl.queue.amend import clone as copy_of
from queuectl.queue.enqueue import queued


@command(
    "clone",
    examples="""
        queuectl clone 7f3a
        # the same with another time limit, later
        queuectl clone 7f3a --timeout 2h --delay 10m
        queuectl wait $(queuectl clone last)
    """,
)
@click.argument("ref", metavar="ID", shell_complete=complete_jobs)
@field_options
def clone(app: App, ref: str, **options: Any) -> Result:
    """Add a new job with the same fields as another one, in any state, and print its id.

    It has no past and an id of its own, and waits for what the other job still waits for. Options are those of enqueue and
    win over what that one has.
    """
    flags = read_flags(options, app)
    if isinstance(flags.get("cwd"), str):
        flags["cwd"] = absolute(str(flags["cwd"]), working_directory())
    reads = app.open_reads()
    new = copy_of(reads, ref, flags)
    return single(app, next(queued(app.open_store().enqueue([new]))))
