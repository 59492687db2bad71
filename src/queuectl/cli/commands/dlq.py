"""queuectl dlq: the jobs that failed for good."""

from __future__ import annotations

from typing import Any, Final

import click

from queuectl.cli.act import act, act_on_all
from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.commands.list import filter_options, list_table
from queuectl.cli.commands.show import show_job
from queuectl.cli.confirm import confirm
from queuectl.cli.jobs import plural
from queuectl.cli.result import Done, Result
from queuectl.errors import UsageError
from queuectl.job.lifecycle import State
from queuectl.queue import dlq as use
from queuectl.queue.filters import parse_filter

_HERE: Final = "queuectl.cli.commands.dlq"

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
@filter_options
def dlq_list(app: App, states: tuple[str, ...], limit: int | None, **options: Any) -> Result:
    """The dead jobs, newest first."""
    if states and State.DEAD not in parse_filter(states=states).states:
        limit = 0
    return list_table(app, states=[State.DEAD.value], limit=limit, **options, empty="no dead jobs")


@command("show", examples="queuectl dlq show 7f3a")
@click.argument("id", metavar="ID")
@click.option("--show-env", is_flag=True, help="Show the values of its environment, not only the names.")
def dlq_show(app: App, id: str, show_env: bool) -> Result:
    """Everything about a dead job."""
    return show_job(app, use.require_dead(app.open_reads(), id), show_env=show_env)


@command(
    "retry",
    examples="""
        queuectl dlq retry 7f3a
        queuectl dlq retry --all
    """,
)
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "all_of_them", is_flag=True, help="Every dead job.")
def dlq_retry(app: App, ids: tuple[str, ...], all_of_them: bool) -> Result:
    """Let dead jobs run again, now, with no failed attempts."""
    _check(ids, all_of_them=all_of_them)
    if ids:
        return act(app, ids, use.retry, verb="queued again")
    if not (dead := use.dead_ids(app.open_reads())):
        return _none(app)
    return act_on_all(app, dead, use.retry_all, verb="queued again")


@command(
    "purge",
    examples="""
        queuectl dlq purge 7f3a
        queuectl dlq purge --all --yes
    """,
)
@click.argument("ids", nargs=-1, metavar="ID...")
@click.option("--all", "all_of_them", is_flag=True, help="Every dead job.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def dlq_purge(app: App, ids: tuple[str, ...], all_of_them: bool, yes: bool) -> Result:
    """Remove dead jobs for good, with their history and logs."""
    _check(ids, all_of_them=all_of_them)
    dead = [] if ids else use.dead_ids(app.open_reads())
    if not ids and not dead:
        return _none(app)
    # Who is asked, or refused for want of --yes, shall be asked about jobs that would be removed.
    if not yes and (count := len(dead) or use.count_dead(app.open_reads(), ids)):
        confirm(app, f"Remove {plural(count, 'dead job')} with history and logs?", yes=yes)
    if dead:
        return act_on_all(app, dead, use.purge_all, verb="purged")
    return act(app, ids, use.purge, verb="purged")


def _check(ids: tuple[str, ...], *, all_of_them: bool) -> None:
    if all_of_them == bool(ids):
        problem = "ids and --all at once" if ids else "which jobs?"
        raise UsageError(problem, hint="name them by id, or say --all")


def _none(app: App) -> Result:
    app.say(app.paint("no dead jobs", "dim"))
    return Done([])
