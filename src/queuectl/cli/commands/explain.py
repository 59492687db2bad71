"""queuectl explain"""

from __future__ import annotations

from collections.abc import Iterator

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_jobs
from queuectl.cli.printable import printable
from queuectl.cli.result import Result, Sheet
from queuectl.cli.style import STATE_STYLE
from queuectl.cli.workers import is_serving
from queuectl.queue.explain import Explanation
from queuectl.queue.explain import explain as explain_job


@command(
    "explain",
    examples="""
        queuectl explain last
        # what decides, for a script
        queuectl explain 7f3a --json | jq -r '.reasons[0].code'
    """,
)
@click.argument("id", metavar="ID", shell_complete=complete_jobs)
def explain(app: App, id: str) -> Result:
    """Why a job is not running: all reasons that apply, the one that decides first.

    Not due, held, waiting for a retry, nobody serves its queue, all slots busy, others before it; or it runs, or has
    ended, and then how, and what to do next.
    """
    told = explain_job(app.open_reads(), id, is_alive=is_serving(app))
    return Sheet(told.to_dict(), people=lambda: _lines(app, told), id=told.job.id)


def _lines(app: App, told: Explanation) -> Iterator[str]:
    state = told.job.state
    yield f"{app.paint(printable(told.job.id), 'bold')}  {app.paint(state.value, f'bold {STATE_STYLE[state]}')}"
    for reason in told.reasons:
        yield f"  {printable(reason.message)}"
