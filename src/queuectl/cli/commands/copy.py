"""queuectl copy"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.printable import printable
from queuectl.cli.progress import progress
from queuectl.cli.result import Column, Result, Sheet
from queuectl.cli.table import lay_out
from queuectl.cli.workers import is_alive
from queuectl.config import actor
from queuectl.errors import StoreNotFound
from queuectl.queue.copy import Copied, Count
from queuectl.queue.copy import copy as copy_store
from queuectl.store.address import parse_address
from queuectl.store.copying import Movable
from queuectl.store.open import check_trusted_address, open_at


@command(
    "copy",
    any_home=True,
    examples="""
        # with the password in ~/.pgpass: in the words of a command others can read it
        queuectl copy --from ~/.queuectl/queue.db --to postgresql://queue@db.example.org/work
        queuectl copy --from postgresql:///work --to /backup/work.db
    """,
)
@click.option("--from", "source", required=True, metavar="ADDRESS", help="The store to copy: a path or a URL.")
@click.option("--to", "target", required=True, metavar="ADDRESS", help="A store without jobs; made if it is missing.")
@click.option("--force", is_flag=True, help="Also while it is at work; what runs waits again in the copy.")
def copy(app: App, source: str, target: str, force: bool) -> Result:
    """Copy a whole store into another one, from SQLite to PostgreSQL, back, or among their own.

    Jobs, history, settings, counters and what is kept of the output: all of it or nothing. Refused while workers of the
    source live or jobs run, and if the target has anything in it. Logs are files: they are not copied, and stay where they
    are.
    """
    shown = {name: parse_address(address).shown() for name, address in (("from", source), ("to", target))}
    for address in () if app.flags.trust_home else (source, target):
        check_trusted_address(address)
    opened = open_at(source, app.clock, create=False, on_wait=app.on_locked)
    if opened is None:
        raise StoreNotFound(shown["from"])

    def open_target() -> Movable:
        made = open_at(target, app.clock, create=True, on_wait=app.on_locked)
        assert made is not None
        made.actor = actor(app.environ)
        return made

    with closing(opened), progress(app, "copying") as advance:
        done = copy_store(opened, open_target, clock=app.clock, is_alive=is_alive(app), force=force, advance=advance)
    app.done = f"copied to {shown['to']}"
    counts = {count.what.replace(" ", "_"): {"source": count.source, "target": count.target} for count in done.counts}
    value = {**shown, "counts": counts, "given_back": done.given_back, "seconds": round(done.seconds, 3)}
    return Sheet(value, people=lambda: _lines(app, done, shown["to"]))


def _lines(app: App, done: Copied, target: str) -> Iterator[str]:
    yield from lay_out(done.counts, _COLUMNS, width=app.width, colour=app.colour_on(app.stdout))
    jobs = done.counts[0].target
    rate = f", {jobs / done.seconds:,.0f} jobs a second" if done.seconds > 0.5 else ""
    yield f"copied to {printable(target)} in {done.seconds:.1f} s{rate}"
    if done.given_back:
        which = "1 job that ran waits" if done.given_back == 1 else f"{done.given_back:,} jobs that ran wait"
        yield f"{which} again in the copy, with nothing charged"
    yield "logs are files and were not copied: they stay where they are"


_COLUMNS: list[Column[Count]] = [
    Column("WHAT", lambda count: count.what),
    Column("SOURCE", lambda count: f"{count.source:,}", right=True),
    Column("TARGET", lambda count: f"{count.target:,}", right=True),
]
