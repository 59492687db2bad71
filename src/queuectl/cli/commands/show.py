"""queuectl show"""

from __future__ import annotations

import click

from queuectl.cli.app import App
from queuectl.cli.command import command, show_env_option
from queuectl.cli.complete import complete_jobs
from queuectl.cli.result import Result, Sheet
from queuectl.cli.sheet import job_sheet
from queuectl.cli.workers import is_serving
from queuectl.queue import inspect


@command(
    "show",
    examples="""
        queuectl show 7f3a
        # the one enqueued last
        queuectl show last
        queuectl show last --json
    """,
)
@click.argument("id", metavar="ID", shell_complete=complete_jobs)
@show_env_option
def show(app: App, id: str, show_env: bool) -> Result:
    """Everything about one job: its rules, its history, the end of its output."""
    return show_job(app, id, show_env=show_env)


def show_job(app: App, ref: str, *, show_env: bool) -> Result:
    limit = app.settings.output_limit
    shown = inspect.show(app.open_reads(), ref, host=app.host, output_limit=limit, is_alive=is_serving(app))
    return Sheet(
        value=shown.to_dict(show_env=show_env),
        people=lambda: job_sheet(app, shown, show_env=show_env),
        id=shown.job.id,
    )
