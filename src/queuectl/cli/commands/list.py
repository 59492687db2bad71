"""The command list, and the table of jobs that others print as well."""

from __future__ import annotations

from typing import Any

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.errors import DONE, REFUSED
from queuectl.cli.filters import (
    DEFAULT_LIMIT,
    Selection,
    find_jobs,
    ids_and_filters,
    page_options,
    report_not_found,
    separate_query,
)
from queuectl.cli.job_view import columns
from queuectl.cli.render import Nothing, Result, Table
from queuectl.jobs.model import Job
from queuectl.jobs.states import State
from queuectl.operations.pages import MAX_COUNTED
from queuectl.operations.query import parse_count, parse_sort
from queuectl.store.reads import Reads
from queuectl.store.types import Filter


@command("list", prints_jobs=True)
@ids_and_filters()
@page_options
def list_jobs(app: App, ids: tuple[str, ...], selection: Selection, **options: Any) -> Result:
    """List jobs, newest first: all of them, or by ID or filter.

    Words such as queue:mail are a query, as for --where: state, queue, tag, batch, worker, error, id or since, and words that the
    command contains. To exclude jobs, use -- before the query: list -- -queue:mail.

    Descending sort keys: created, priority, finished, duration. Ascending sort keys: run_at, queue, state.

    Examples:
        queuectl list
        # failed and dead jobs
        queuectl list --state dead,failed
        # the slowest jobs of a queue, as JSON
        queuectl list --queue mail --sort duration --limit 10 --json
        # some fields only
        queuectl list --json id,state,error
        # IDs only, for another program
        queuectl list --match ffmpeg --since 2d --quiet
        # a query
        queuectl list state:dead error:timeout ffmpeg
        queuectl list -- state:dead -queue:mail
        # single jobs
        queuectl list 7f3a 91bc
    """
    ids, selection = separate_query(app, ids, selection)
    if not ids:
        return list_table(app, selection.where(app), **options)
    found = find_jobs(app, ids, selection, default=frozenset(State))
    report_not_found(app, found)
    if not found.done or (found.refused and app.flags.json):  # with --json an error is the only output
        return Nothing(exit_code=REFUSED)
    return list_table(app, Filter(ids=tuple(found.done)), exit_code=REFUSED if found.refused else DONE, **options)


def list_table(
    app: App,
    where: Filter,
    *,
    limit: int | str | None,
    offset: int | str | None,
    sort: str,
    show_env: bool,
    what: str = "jobs",
    exit_code: int = DONE,
) -> Result:
    key, is_descending = parse_sort(sort)
    most = parse_count(limit, subject="--limit")
    skipped = parse_count(offset, subject="--offset") or 0
    store = app.open_reads()
    # JSON and ids are streamed without a limit; a table has one, and the number of the other jobs below.
    if most is None and not app.flags.json and not app.flags.quiet:
        most = DEFAULT_LIMIT
    rows: Any = store.jobs(where, sort=key, descending=is_descending, limit=most, offset=skipped)

    def to_json(job: Job) -> dict[str, Any]:
        return job.to_dict(show_env=show_env)

    if app.flags.json or app.flags.quiet:
        return Table(rows, [], to_json=to_json, to_id=lambda job: job.id, exit_code=exit_code)
    rows = list(rows)
    more, is_exact = _count_more(store, where, skipped + len(rows)) if len(rows) == most else (0, True)
    return Table(
        rows,
        columns(rows, store.now_ms(), width=app.width),
        to_json=to_json,
        to_id=lambda job: job.id,
        empty=f"No {what}.",
        footer=f"… and {more:,}{'' if is_exact else '+'} more" if more > 0 else None,
        exit_code=exit_code,
    )


def _count_more(store: Reads, where: Filter, shown: int) -> tuple[int, bool]:
    """How many jobs match besides those shown, and whether that is exact: without counters, they are counted up to MAX_COUNTED."""
    if where.is_tallied:
        return store.count(where) - shown, True
    more = store.count(where, most=shown + MAX_COUNTED + 1) - shown
    return min(more, MAX_COUNTED), more <= MAX_COUNTED
