"""queuectl dlq: the dead letter queue."""

from __future__ import annotations

from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, combine_options, command, group, show_env_option
from queuectl.cli.commands.control import BulkAction, apply_to_ids, apply_to_matching
from queuectl.cli.commands.inspect import list_table, page_options, show_job
from queuectl.cli.completion import complete_jobs
from queuectl.cli.errors import confirm, yes_option
from queuectl.cli.filters import Selection, filter_options, ids_and_filters, require_ids_or_filters
from queuectl.cli.render import Result
from queuectl.errors import UsageError
from queuectl.jobs.states import State
from queuectl.operations import control as use
from queuectl.operations.query import parse_state
from queuectl.text import plural

_HERE: Final = "dlq"
_RETRY: Final = BulkAction(use.retry_dead, "retry", "requeued", use.DEAD)
_PURGE: Final = BulkAction(use.purge_dead, "remove", "purged", use.DEAD)
_LOSES: Final = " with history and logs"

_dead_jobs: Final = combine_options(
    ids_and_filters(), click.option("--all", "all_of_them", is_flag=True, help="Select all dead jobs."), yes_option
)

dlq = group(
    "dlq",
    "The dead letter queue: jobs that failed for good.",
    {
        "list": Entry(_HERE, "dlq_list", "List dead jobs, newest first."),
        "show": Entry(_HERE, "dlq_show", "Show a dead job with its history and output."),
        "retry": Entry(_HERE, "dlq_retry", "Retry dead jobs."),
        "purge": Entry(_HERE, "dlq_purge", "Remove dead jobs, their history and logs.", alias="delete"),
    },
    examples="""
        queuectl dlq list
        queuectl dlq retry --all
    """,
)


@command("list", prints_jobs=True, examples="queuectl dlq list --queue mail --sort finished")
@click.option("--state", "-s", "states", multiple=True, hidden=True)  # as of `list`; here a single state matches
@filter_options(but=["states"])
@page_options
def dlq_list(
    app: App, states: tuple[str, ...], selection: Selection, limit: int | str | None, **options: Any
) -> Result:
    """List dead jobs, newest first."""
    if states and State.DEAD not in map(parse_state, ",".join(states).split(",")):
        limit = 0
    where = selection.where(app)._replace(states=use.DEAD)
    return list_table(app, where, limit=limit, **options, what="dead jobs")


@command("show", prints_jobs=True, examples="queuectl dlq show 7f3a")
@click.argument("id", metavar="ID", shell_complete=complete_jobs)
@show_env_option
def dlq_show(app: App, id: str, show_env: bool) -> Result:
    """Show a dead job with its history and output."""
    return show_job(app, use.require_dead(app.open_reads(), id), show_env=show_env)


@command("retry")
@_dead_jobs
def dlq_retry(app: App, ids: tuple[str, ...], all_of_them: bool, selection: Selection, yes: bool) -> Result:
    """Retry dead jobs now. Their attempts are reset to 0.

    Examples:
        queuectl dlq retry 7f3a
        queuectl dlq retry --all
        # dead jobs of a queue enqueued today; asks first
        queuectl dlq retry --queue mail --since 24h
    """
    _check(ids, selection, all_of_them=all_of_them)
    if ids:
        return apply_to_ids(app, _RETRY, ids)
    # --all needs no confirmation.
    return _apply_to_dead(app, _RETRY, selection, yes=yes or all_of_them)


@command("purge")
@_dead_jobs
def dlq_purge(app: App, ids: tuple[str, ...], all_of_them: bool, selection: Selection, yes: bool) -> Result:
    """Remove dead jobs with their history and logs.

    Examples:
        queuectl dlq purge 7f3a
        queuectl dlq purge --all --yes
        queuectl dlq purge --match ffmpeg
    """
    _check(ids, selection, all_of_them=all_of_them)
    if not ids:
        return _apply_to_dead(app, _PURGE, selection, yes=yes, loses=_LOSES)
    # Ask about jobs that would be removed only, and not at all if there is none.
    if not yes and (count := use.count_dead(app.open_reads(), ids)):
        confirm(app, f"Remove {plural(count, 'dead job')}{_LOSES}?", yes=yes)
    return apply_to_ids(app, _PURGE, ids)


def _check(ids: tuple[str, ...], selection: Selection, *, all_of_them: bool) -> None:
    if not all_of_them:
        require_ids_or_filters(ids, selection)
    elif ids or selection:
        raise UsageError("--all cannot be combined with ids or filters", hint="use one of them")


def _apply_to_dead(app: App, action: BulkAction, selection: Selection, *, yes: bool, loses: str = "") -> Result:
    where = selection.where_able(app, use.DEAD, done=action.done)
    return apply_to_matching(app, action, where, yes=yes, what="dead job", loses=loses)
