"""queuectl export"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.jobs import plural
from queuectl.cli.kinds import KINDS, count_of
from queuectl.cli.printable import printable, printable_json
from queuectl.cli.progress import progress
from queuectl.cli.result import Raw, Result, Sheet
from queuectl.cli.selectors import Selection, selectors
from queuectl.errors import InvalidInput
from queuectl.queue import export as use
from queuectl.queue.portable import export_rules

CHUNK = 2**16


@command(
    "export",
    examples="""
        # everything there is to know, for yourself only
        queuectl export --history jobs.json
        # a job a line, for other programs; values of environments are left out
        queuectl export --format jsonl | jq -r .command
        queuectl export --state dead --queue mail dead.jsonl
        # all that a new home needs
        queuectl export --history --rules all.json
    """,
)
@click.argument("file", required=False, metavar="[FILE]")
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in use.Format]),
    help="One JSON array, or JSON lines; json unless the name of FILE ends in .jsonl.",
)
@click.option("--history", is_flag=True, help="With all runs of each job.")
@click.option("--rules", is_flag=True, help="Also rules of queues, schedules, alerts and ends of batches.")
@selectors()
def export(app: App, file: str | None, form: str | None, history: bool, rules: bool, selection: Selection) -> Result:
    """Write jobs as JSON, in the order of enqueue, for people, programs and import.

    To stdout, or into a new FILE that only you can read: only there the values of environments are written too. What jobs
    printed is not in it.
    """
    if file == "":
        raise InvalidInput("FILE", "the name is empty", hint="give the name of a new file, or leave it away for stdout")
    where = selection.where(app)
    chosen = use.Format(form or ("jsonl" if file and file.endswith(".jsonl") else "json"))
    store = app.open_reads()
    if file is None or file == "-":
        jobs = use.export(store, where, history=history, show_env=False)
        pieces = use.lay_out(chain(export_rules(store, show_env=False) if rules else (), jobs), chosen)
        return Raw(use.spooled(_chunks(pieces)))
    done = 0
    beside: list[dict[str, object]] = list(export_rules(store, show_env=True)) if rules else []

    with progress(app, "exporting") as advance:

        def count(number: int, of: int | None) -> None:
            nonlocal done
            done = number
            advance(number, of)

        values = use.export(store, where, history=history, show_env=True, advance=count)
        use.write_new(file, use.lay_out(chain(beside, values), chosen))
    app.done = f"exported to {file}"
    kinds = Counter(str(value["kind"]) for value in beside)
    told = [plural(done, "job"), *(count_of(kind, kinds[kind]) for kind in KINDS if kinds[kind])]
    value = {"file": file, "format": chosen.value, "history": history, "jobs": done}
    value |= {many: kinds[kind] for kind, many in KINDS.items()} if rules else {}
    return Sheet(value, people=lambda: [f"exported {', '.join(told)} to {printable(file)}"])


def _chunks(pieces: Iterable[str]) -> Iterator[bytes]:
    """In pieces that are worth a system call. What a terminal would obey is escaped, and stays JSON."""
    held: list[str] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= CHUNK:
            yield _bytes(held)
            held, size = [], 0
    yield _bytes(held)


def _bytes(pieces: list[str]) -> bytes:
    return printable_json("".join(pieces)).encode()
