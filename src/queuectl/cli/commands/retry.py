"""queuectl retry"""

from __future__ import annotations

from typing import Final

import click

from queuectl.cli.act import Verb, act_on
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_jobs
from queuectl.cli.confirm import yes_option
from queuectl.cli.result import Result
from queuectl.cli.selectors import Selection, selectors
from queuectl.queue import control

_RETRY: Final = Verb(control.retry, "retry", "queued again", control.REVIVABLE)


@command(
    "retry",
    examples="""
        # do not wait for the backoff
        queuectl retry 7f3a
        # all that was called off today; asks first
        queuectl retry --state cancelled --since 24h
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@selectors()
@yes_option
def retry(app: App, ids: tuple[str, ...], selection: Selection, yes: bool) -> Result:
    """Let failed, dead or cancelled jobs run again, now.

    They keep their place in the line. Dead and cancelled ones start with no failed attempts again.
    """
    return act_on(app, _RETRY, ids, selection, yes=yes)
