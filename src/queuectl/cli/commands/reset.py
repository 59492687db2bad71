"""queuectl reset"""

from __future__ import annotations

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.confirm import confirm
from queuectl.cli.jobs import plural
from queuectl.cli.printable import printable
from queuectl.cli.result import Result, Sheet
from queuectl.cli.workers import is_alive, rescuer
from queuectl.queue import reset as use


@command(
    "reset",
    examples="""
        queuectl reset --yes
    """,
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def reset(app: App, yes: bool) -> Result:
    """Remove all jobs, their history and their logs; keep the settings, schedules, alerts and rules of queues.

    A copy of the store is kept under backups/ in the home. Refused while a worker lives. Of a store that several machines
    share, the logs on the others stay there.
    """
    reads = app.open_reads()
    jobs = reads.count()
    use.refuse_while_alive(reads, verb="reset", home=app.home, is_alive=is_alive(app))
    confirm(app, f"Remove {plural(jobs, 'job')} with history and logs?", yes=yes)
    if not jobs:
        nothing = {"jobs": 0, "backup": None, **use.staying(reads)}
        return Sheet(nothing, people=lambda: ["there are no jobs: nothing to remove"])
    store = app.open_store()
    rescuer(app, spare=False)()
    done = use.reset(store, app.clock, home=app.home, is_alive=is_alive(app))
    lines = [f"removed {plural(done.jobs, 'job')}; a backup is {printable(done.backup)}"]
    named = ((done.schedules, "schedule"), (done.alerts, "alert"), (done.queues, "queue"))
    if stays := [plural(many, what) for many, what in named if many]:
        lines.append(f"kept: the settings, {', '.join(stays)}" + (" with rules" if done.queues else ""))
    if store.is_shared:
        lines.append("the logs of this home are gone; those of other homes and hosts are files there, and stay")
    return Sheet(done._asdict(), people=lambda: lines)
