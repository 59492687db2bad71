"""queuectl list"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from queuectl.cli.act import look_up, tell_refused
from queuectl.cli.app import App
from queuectl.cli.command import command, show_env_option
from queuectl.cli.complete import complete_jobs
from queuectl.cli.exits import DONE, REFUSED
from queuectl.cli.jobs import columns
from queuectl.cli.numbers import integer
from queuectl.cli.result import Nothing, Result, Table
from queuectl.cli.selectors import Selection, selectors
from queuectl.job.lifecycle import State
from queuectl.job.model import Job
from queuectl.queue.filters import parse_count, parse_sort
from queuectl.store.protocol import Filter

PAGE: Final = 50

F = TypeVar("F", bound=Callable[..., Any])


def page_options(function: F) -> F:
    """The options of `list` and of `dlq list` that say how much of it to show, and in which order."""
    for option in reversed(
        (
            click.option(
                "--limit", type=integer, metavar="N", help=f"At most so many; a table shows {PAGE} unless told."
            ),
            click.option("--offset", type=integer, default=0, metavar="N", help="Leave out the first so many."),
            click.option(
                "--sort",
                default="created",
                metavar="KEY",
                help="created, priority, finished, duration: newest, highest, latest, longest first; "
                "run_at, queue, state: soonest first, A to Z. A - before it reverses: -created.",
            ),
            show_env_option,
        )
    ):
        function = option(function)
    return function


@command(
    "list",
    examples="""
        queuectl list
        # what failed, for good or for now
        queuectl list --state dead,failed
        # the slowest of a queue, as JSON
        queuectl list --queue mail --sort duration --limit 10 --json
        # ids only, for another program
        queuectl list --match ffmpeg --since 2d --quiet
        # how far are these?
        queuectl list 7f3a 91bc
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@selectors()
@page_options
def list_jobs(app: App, ids: tuple[str, ...], selection: Selection, **options: Any) -> Result:
    """The jobs, newest first: all of them, those that are named, or those that are chosen."""
    if not ids:
        return list_table(app, selection.where(app), is_narrow=bool(selection), **options)
    found = look_up(app, ids, selection, unless_said=frozenset(State))
    tell_refused(app, found)
    if not found.done or (found.refused and app.flags.json):  # beside an error for a program stands nothing else
        return Nothing(exit_code=REFUSED)
    return list_table(app, Filter(ids=tuple(found.done)), exit_code=REFUSED if found.refused else DONE, **options)


def list_table(
    app: App,
    where: Filter,
    *,
    limit: int | None,
    offset: int,
    sort: str,
    show_env: bool,
    empty: str = "no jobs",
    is_narrow: bool = False,
    exit_code: int = DONE,
) -> Result:
    key, is_descending = parse_sort(sort)
    limit = parse_count(limit, subject="--limit")
    offset = parse_count(offset, subject="--offset") or 0
    store = app.open_reads()
    # For programs all that match, streamed; for people a page and the number of the rest.
    if limit is None and not app.flags.json and not app.flags.quiet:
        limit = PAGE
    rows: Any = store.jobs(where, sort=key, descending=is_descending, limit=limit, offset=offset)

    def to_json(job: Job) -> dict[str, Any]:
        return job.to_dict(show_env=show_env)

    if app.flags.json or app.flags.quiet:
        return Table(rows, [], to_json=to_json, to_id=lambda job: job.id, exit_code=exit_code)
    rows = list(rows)
    more = store.count(where) - offset - len(rows) if len(rows) == limit else 0
    return Table(
        rows,
        columns(rows, store.now_ms(), width=app.width),
        to_json=to_json,
        to_id=lambda job: job.id,
        empty=f"{empty} like that" if is_narrow else empty,
        footer=f"… and {more:,} more" if more > 0 else None,
        exit_code=exit_code,
    )
