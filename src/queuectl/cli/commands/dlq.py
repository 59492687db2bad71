"""queuectl dlq: the jobs that failed for good."""

from __future__ import annotations

from typing import Any, Final

import click

from queuectl.cli.act import Verb, act, act_on_chosen
from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group, show_env_option
from queuectl.cli.commands.list import list_table, page_options
from queuectl.cli.commands.show import show_job
from queuectl.cli.complete import complete_jobs
from queuectl.cli.confirm import confirm, yes_option
from queuectl.cli.jobs import plural
from queuectl.cli.result import Result
from queuectl.cli.selectors import Selection, either, selectors
from queuectl.errors import UsageError
from queuectl.job.lifecycle import State
from queuectl.queue import dlq as use
from queuectl.queue.filters import parse_state

_HERE: Final = "queuectl.cli.commands.dlq"
_RETRY: Final = Verb(use.retry, "retry", "queued again", use.DEAD)
_PURGE: Final = Verb(use.purge, "remove", "purged", use.DEAD)
_LOSES: Final = " with history and logs"

dlq = group(
    "dlq",
    "The dead letter queue: jobs that failed for good.",
    {
        "list": Entry(_HERE, "dlq_list", "The dead jobs, newest first."),
        "show": Entry(_HERE, "dlq_show", "Everything about a dead job."),
        "retry": Entry(_HERE, "dlq_retry", "Let dead jobs run again."),
        "purge": Entry(_HERE, "dlq_purge", "Remove dead jobs, their history and logs."),
    },
    examples="""
        queuectl dlq list
        queuectl dlq retry --all
    """,
)


@command("list", examples="queuectl dlq list --queue mail --sort finished")
@click.option("--state", "-s", "states", multiple=True, hidden=True)  # what `list` takes; here only one can match
@selectors(but=["states"])
@page_options
def dlq_list(app: App, states: tuple[str, ...], selection: Selection, limit: int | None, **options: Any) -> Result:
    """The dead jobs, newest first."""
    if states and State.DEAD not in map(parse_state, ",".join(states).split(",")):
        limit = 0
    where = selection.where(app)._replace(states=use.DEAD)
    return list_table(app, where, limit=limit, **options, empty="no dead jobs", is_narrow=bool(selection))


@command("show", examples="queuectl dlq show 7f3a")
@click.argument("id", metavar="ID", shell_complete=complete_jobs)
@show_env_option
def dlq_show(app: App, id: str, show_env: bool) -> Result:
    """Everything about a dead job."""
    return show_job(app, use.require_dead(app.open_reads(), id), show_env=show_env)


@command(
    "retry",
    examples="""
        queuectl dlq retry 7f3a
        queuectl dlq retry --all
        # those of one queue that died today; asks first
        queuectl dlq retry --queue mail --since 24h
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@click.option("--all", "all_of_them", is_flag=True, help="Every dead job.")
@selectors()
@yes_option
def dlq_retry(app: App, ids: tuple[str, ...], all_of_them: bool, selection: Selection, yes: bool) -> Result:
    """Let dead jobs run again, now, with no failed attempts."""
    _check(ids, selection, all_of_them=all_of_them)
    if ids:
        return act(app, _RETRY, ids)
    # --all has said what it will touch.
    return _act_on_dead(app, _RETRY, selection, yes=yes or all_of_them)


@command(
    "purge",
    examples="""
        queuectl dlq purge 7f3a
        queuectl dlq purge --all --yes
        queuectl dlq purge --match ffmpeg
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@click.option("--all", "all_of_them", is_flag=True, help="Every dead job.")
@selectors()
@yes_option
def dlq_purge(app: App, ids: tuple[str, ...], all_of_them: bool, selection: Selection, yes: bool) -> Result:
    """Remove dead jobs for good, with their history and logs."""
    _check(ids, selection, all_of_them=all_of_them)
    if not ids:
        return _act_on_dead(app, _PURGE, selection, yes=yes, loses=_LOSES)
    # Who is asked, or refused for want of --yes, shall be asked about jobs that would be removed.
    if not yes and (count := use.count_dead(app.open_reads(), ids)):
        confirm(app, f"Remove {plural(count, 'dead job')}{_LOSES}?", yes=yes)
    return act(app, _PURGE, ids)


def _check(ids: tuple[str, ...], selection: Selection, *, all_of_them: bool) -> None:
    if not all_of_them:
        either(ids, selection)
    elif ids or selection:
        raise UsageError("--all and something less at once", hint="name them by id, choose them, or say --all")


def _act_on_dead(app: App, verb: Verb, selection: Selection, *, yes: bool, loses: str = "") -> Result:
    where = selection.where_able(app, use.DEAD, done=verb.done)
    return act_on_chosen(app, verb, where, yes=yes, what="dead job", loses=loses)
