"""queuectl retry"""

from __future__ import annotations

import click

from queuectl.cli.act import act
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.result import Result
from queuectl.queue import control


@command(
    "retry",
    examples="""
        # do not wait for the backoff
        queuectl retry 7f3a
        queuectl list --state cancelled --quiet | xargs queuectl retry
    """,
)
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
def retry(app: App, ids: tuple[str, ...]) -> Result:
    """Let failed, dead or cancelled jobs run again, now.

    They keep their place in the line. Dead and cancelled ones start with no failed attempts again.
    """
    return act(app, ids, control.retry, verb="queued again")
