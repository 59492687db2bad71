"""queuectl batch: jobs under one name, and how far they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.bar import bar_line
from queuectl.cli.command import Entry, command, group
from queuectl.cli.complete import complete_batches
from queuectl.cli.printable import printable
from queuectl.cli.result import Column, Result, Sheet, Table
from queuectl.cli.style import age
from queuectl.queue import batches as use
from queuectl.queue.batches import Progress

_HERE: Final = "queuectl.cli.commands.batch"

batch = group(
    "batch",
    "Batches: jobs under one name, and how far they are.",
    {
        "list": Entry(_HERE, "batch_list", "The batches, newest first."),
        "show": Entry(_HERE, "batch_show", "How far a batch is."),
    },
    examples="""
        queuectl enqueue --file jobs.txt --batch nightly
        queuectl batch show nightly
        queuectl wait --batch nightly
    """,
)


@command("list", examples="queuectl batch list")
def batch_list(app: App) -> Result:
    """The batches, newest first."""
    store = app.open_reads()
    return Table(
        use.all_progress(store),
        _columns(store.now_ms()),
        to_json=Progress.to_dict,
        to_id=lambda one: one.batch.name,
        empty="no batches",
    )


@command("show", examples="queuectl batch show nightly")
@click.argument("name", metavar="NAME", shell_complete=complete_batches)
def batch_show(app: App, name: str) -> Result:
    """How far a batch is: done, failed, running, its rate and the time that is left.

    Failed are those that are dead or were cancelled; a job that waits for another try is not.
    """
    found = use.progress(app.open_reads(), name)
    return Sheet(found.to_dict(), people=lambda: _lines(app, found), id=name)


def _lines(app: App, found: Progress) -> Iterator[str]:
    batch = found.batch
    yield bar_line(app, found, width=app.width)
    if batch.on_complete is not None:
        then = f"queued as {batch.on_complete_job}" if batch.on_complete_job else "when all have ended"
        yield f"on complete: {printable(batch.on_complete)} ({then})"
    if found.failed:
        yield app.paint(f"what failed: queuectl list --batch {batch.name} --state dead,cancelled", "dim")


def _columns(now_ms: int) -> list[Column[Progress]]:
    return [
        Column("BATCH", lambda one: one.batch.name),
        Column("JOBS", lambda one: f"{one.batch.added:,}", right=True),
        Column("DONE", lambda one: f"{one.done:,}", right=True),
        Column("FAILED", lambda one: f"{one.failed:,}", right=True),
        Column("RUNNING", lambda one: f"{one.running:,}", right=True),
        Column("WAITING", lambda one: f"{one.waiting:,}", right=True),
        Column("BEGUN", lambda one: age(one.batch.created_at, now_ms), right=True),
    ]
