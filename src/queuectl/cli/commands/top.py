"""queuectl top"""

from __future__ import annotations

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.result import Nothing, Result
from queuectl.errors import ExtraMissing, UsageError


@command(
    "top",
    examples="""
        queuectl top
        # the one that several machines share
        queuectl --db postgresql://queue@db/jobs top
    """,
)
def top(app: App) -> Result:
    """The queue, live, in the terminal: queues, workers, jobs, their logs, and actions on keys. ? shows the keys, q quits.

    Needs the extra tui: pip install '.[tui]' in a checkout.
    """
    if app.flags.json or not (app.stdin.isatty() and app.stdout_is_terminal and app.stderr_is_terminal):
        raise UsageError("top needs a terminal", hint="elsewhere: queuectl status --watch")
    try:
        from queuectl.tui.app import Top
    except ImportError as exc:
        raise ExtraMissing("top", "tui") from exc
    app.open_reads().changed()  # at once, or in words: patience is for what was there
    app.close()
    view = Top(app.home, app.db, colour=app.colour_on(app.stdout))
    try:
        view.run()
    finally:
        view.rooms.close()
    if view.fault is not None:
        raise view.fault
    return Nothing()
