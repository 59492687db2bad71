"""queuectl import"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import Any, cast

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.jobs import joined, plural
from queuectl.cli.jobwords import place_of
from queuectl.cli.kinds import KINDS, count_of
from queuectl.cli.printable import printable
from queuectl.cli.progress import progress
from queuectl.cli.result import Result, Sheet
from queuectl.errors import FileUnreadable, InvalidInput
from queuectl.queue.importing import Imported
from queuectl.queue.importing import import_jobs as use
from queuectl.queue.records import open_records


@command(
    "import",
    examples="""
        queuectl import jobs.json
        # what would happen, and whether it would be refused
        queuectl import --dry-run jobs.json
        # all that `export --rules` wrote
        queuectl import --rules all.json
        # the store of another tool
        queuectl import ~/old/queue.db
        ssh build.example.org queuectl export --format jsonl | queuectl import -
    """,
)
@click.argument("file", metavar="FILE")
@click.option("--rules", is_flag=True, help="Also take in queues, schedules, alerts and ends of batches.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
def import_jobs(app: App, file: str, rules: bool, dry_run: bool) -> Result:
    """Take in jobs with their past: what export wrote, or the files of some other tools. With --rules also queues, schedules,
    alerts and ends of batches: the author of the file then decides which commands alerts run and which addresses are called.

    All of it or nothing. A job that is there already is left as it is, another job under its id refuses all. What was
    running waits again. - is stdin.
    """
    if file == "":
        raise InvalidInput("FILE", "the name is empty", hint="give the name of a file, or - for stdin")
    with _opened(app, file) as opened, progress(app, "importing") as advance:
        done = use(
            open_records(file, opened),
            place_of(app).stored_defaults(),
            reads=app.open_reads,
            open_store=app.open_store,
            dry_run=dry_run,
            rules=rules,
            advance=advance,
        )
    if not dry_run:
        app.done = f"imported {plural(done.imported, 'job')}"
    return Sheet({**done._asdict(), "dry_run": dry_run}, people=lambda: _lines(done, dry_run=dry_run))


@contextmanager
def _opened(app: App, path: str) -> Iterator[BufferedReader]:
    """The file; what goes wrong with reading it, also later, is said in our words."""
    try:
        if path == "-":
            yield cast(Any, app.stdin_bytes)
        else:
            with open(path, "rb") as file:
                yield file
    except OSError as error:
        if error.filename not in (None, path):
            raise
        raise FileUnreadable("stdin" if path == "-" else path, error.strerror or str(error), or_stdin=True) from error


def _lines(done: Imported, *, dry_run: bool) -> Iterator[str]:
    beside = [count_of(kind, len(names)) for kind, many in KINDS.items() if (names := getattr(done, many))]
    yield f"{'would import' if dry_run else 'imported'} {', '.join([plural(done.imported, 'job'), *beside])}"
    if done.skipped:
        yield f"{plural(done.skipped, 'job')} skipped: there already"
    if done.given_back:
        which = (
            "1 of them was running and waits"
            if done.given_back == 1
            else f"{done.given_back:,} of them were running and wait"
        )
        yield f"{which} again, with nothing charged"
    for key, value in done.settings.items():
        yield f"{key} = {printable(value)}"
    if done.ignored:
        yield f"ignored, for there is nothing like it here: {printable(joined(done.ignored))}"
