"""queuectl queue: the lines that jobs wait in, and how much of each may run."""

from __future__ import annotations

from typing import Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.complete import complete_jobs, complete_queues
from queuectl.cli.jobs import plural
from queuectl.cli.result import Column, Done, Result, Sheet, Table
from queuectl.job.duration import format_duration
from queuectl.job.hooks import shown_url
from queuectl.job.lifecycle import State
from queuectl.job.limits import Rules, format_rate
from queuectl.job.resources import LIMITS
from queuectl.queue import queues as use
from queuectl.queue.queues import QueueView

_HERE: Final = "queuectl.cli.commands.queue"

queue = group(
    "queue",
    "The lines that jobs wait in: pause them, limit how much of each runs, say what their jobs get.",
    {
        "list": Entry(_HERE, "queue_list", "The queues, their jobs and their limits."),
        "pause": Entry(_HERE, "queue_pause", "Start nothing more of a queue; what runs goes on."),
        "resume": Entry(_HERE, "queue_resume", "Go on with a queue."),
        "set": Entry(_HERE, "queue_set", "Limit a queue, or say what its jobs get."),
        "move": Entry(_HERE, "queue_move", "Put jobs that wait into another queue."),
    },
    examples="""
        queuectl queue list
        queuectl queue set mail --concurrency 2 --rate 10/m
        queuectl queue pause mail
    """,
)


@command(
    "list",
    examples="""
        queuectl queue list
        queuectl queue list --json | jq '.[] | select(.paused) | .name'
    """,
)
def queue_list(app: App) -> Result:
    """The queues: how many jobs of each wait and run, whether it is paused, its limits, and its rate now."""
    queues = use.list_queues(app.open_reads())
    if not app.flags.json:
        # A queue is never forgotten, but one without jobs and rules has nothing to say.
        queues = [one for one in queues if one.rules != Rules() or any(one.states.values())]
    return Table(
        queues,
        columns=[
            Column("QUEUE", lambda one: one.name, style="bold"),
            Column("STATE", _state, style=lambda one: "yellow" if one.rules.paused else None),
            Column("WAITING", lambda one: f"{_waiting(one):,}", right=True),
            Column("RUNNING", _running, right=True),
            Column("DEAD", lambda one: f"{one.states[State.DEAD]:,}", right=True, spare=1),
            Column(
                "OF A KEY", lambda one: f"{one.rules.per_key:,}" if one.rules.per_key else "", right=True, optional=True
            ),
            Column("RATE", _rate, optional=True),
            Column("JOBS GET", _defaults, style="dim", flexible=True, optional=True, spare=2),
        ],
        to_json=QueueView.to_dict,
        to_id=lambda one: one.name,
        empty="no queues yet: a queue is there as soon as it has a job",
    )


def _state(one: QueueView) -> str:
    if one.rules.paused:
        return "paused"
    if one.brake is not None and one.brake.is_full:
        return "full"
    return "open" if one.brake is None or one.brake.opens_at is None else "rate reached"


def _waiting(one: QueueView) -> int:
    return sum(one.states[state] for state in (State.BLOCKED, State.PENDING, State.FAILED))


def _running(one: QueueView) -> str:
    running, most = one.states[State.PROCESSING], one.rules.concurrency
    return f"{running:,}" if most is None else f"{running:,} of {most:,}"


def _rate(one: QueueView) -> str:
    return "" if one.rules.rate is None else f"{one.rate_now or 0:,} of {format_rate(one.rules.rate)}"


def _defaults(one: QueueView) -> str:
    rules = one.rules
    told = {
        "priority": None if rules.priority is None else str(rules.priority),
        "max-retries": None if rules.max_retries is None else str(rules.max_retries),
        "timeout": None
        if rules.timeout_ms is None
        else format_duration(rules.timeout_ms)
        if rules.timeout_ms
        else "none",
        **{name.replace("_", "-"): LIMITS[name].text(value) for name, value in (rules.limits or {}).items()},
        "on-success": None if rules.on_success is None else shown_url(rules.on_success),
        "on-failure": None if rules.on_failure is None else shown_url(rules.on_failure),
        "on-dead": None if rules.on_dead is None else shown_url(rules.on_dead),
    }
    return ", ".join(f"{name} {value}" for name, value in told.items() if value is not None)


@command(
    "pause",
    examples="""
        queuectl queue pause mail
        queuectl queue pause mail reports
    """,
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_queues)
def queue_pause(app: App, names: tuple[str, ...]) -> Result:
    """Start nothing more of these queues. What runs goes on; what is enqueued waits."""
    return _set_paused(app, names, paused=True)


@command("resume", examples="queuectl queue resume mail")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_queues)
def queue_resume(app: App, names: tuple[str, ...]) -> Result:
    """Go on with these queues."""
    return _set_paused(app, names, paused=False)


def _set_paused(app: App, names: tuple[str, ...], *, paused: bool) -> Result:
    known = {one.name for one in use.list_queues(app.open_reads())}
    changed = use.set_paused(names, paused=paused, reads=app.open_reads, open_store=app.open_store)
    word = "paused" if paused else "resumed"
    same = [name for name in dict.fromkeys(names) if name not in changed]
    for name in same:
        app.say(app.paint(f"{name}: it {'was paused already' if paused else 'was not paused'}", "dim"))
    if paused:
        counts = {one.name: one.states[State.PROCESSING] for one in use.list_queues(app.open_reads())}
        for name in changed:
            if name not in known:
                app.say(app.paint(f"{name}: nothing was ever in it", "dim"))
            if counts.get(name):
                app.say(app.paint(f"{name}: {plural(counts[name], 'job')} still running", "dim"))
    return Done(list(dict.fromkeys(names)), verb=word)


@command(
    "set",
    signed_words=True,
    examples="""
        # two at a time, over all workers and hosts
        queuectl queue set mail --concurrency 2
        # ten starts in any minute, retries included
        queuectl queue set mail --rate 10/m
        # not more than two of each customer: enqueue --key customer-7
        queuectl queue set mail --per-key 2
        # what its jobs get that do not say otherwise
        queuectl queue set reports --timeout 1h --max-retries 5 --priority -5
        queuectl queue set reports --memory 2GiB --nice 5
        # who is told when one of them fails for good
        queuectl queue set reports --on-dead https://example.org/hooks/queue
        queuectl queue set mail --rate none
    """,
)
@click.argument("name", metavar="NAME", shell_complete=complete_queues)
@click.option("--concurrency", metavar="N", help="At most so many at a time, over all workers and hosts.")
@click.option("--per-key", metavar="N", help="At most so many of one key (enqueue --key) at a time.")
@click.option("--rate", metavar="N/TIME", help="At most N starts in any such time: 10/m, 5/s, 100/h, 5/10s.")
@click.option("--priority", metavar="N", help="The priority of jobs that name none.")
@click.option("--max-retries", metavar="N", help="Failed runs after which a job is dead that does not say.")
@click.option("--timeout", metavar="TIME", help="The time limit of jobs that have none of their own; 0: never.")
@click.option("--memory", metavar="SIZE", help="The memory that a run may take of a job that does not say.")
@click.option("--cpu-time", metavar="TIME", help="How long such a run may keep a processor busy.")
@click.option("--nice", metavar="N", help="How far others go before it: -20 to 19.")
@click.option("--open-files", metavar="N", help="How many files it may have open.")
@click.option("--processes", metavar="N", help="How many processes there may be.")
@click.option("--file-size", metavar="SIZE", help="How large a file may become that it writes.")
@click.option("--on-success", metavar="URL", help="Whom to call when a job completes that does not say.")
@click.option("--on-failure", metavar="URL", help="Whom to call each time a run of one fails.")
@click.option("--on-dead", metavar="URL", help="Whom to call when one has failed for good.")
def queue_set(app: App, name: str, **said: str | None) -> Result:
    """Limit how much of a queue runs, and say what its jobs get that do not say otherwise. The word none takes a rule away.

    A limit holds over all workers and hosts from now on; what runs goes on. What jobs get is fixed when they are enqueued.
    """
    found = use.set_rules(app.open_store, name, said, by_option=True)
    return Sheet(found.to_dict(), people=lambda: [_said(found)], id=name)


def _said(one: QueueView) -> str:
    rules = one.rules
    told = [
        "paused" if rules.paused else "",
        f"{rules.concurrency:,} at a time" if rules.concurrency is not None else "",
        f"{rules.per_key:,} of a key at a time" if rules.per_key is not None else "",
        f"{format_rate(rules.rate)}" if rules.rate is not None else "",
        f"jobs get {_defaults(one)}" if _defaults(one) else "",
    ]
    return f"{one.name}: {'; '.join(filter(None, told)) or 'no limits'}"


@command(
    "move",
    examples="""
        # all that waits in one queue
        queuectl queue move mail mail-slow
        # some of it
        queuectl queue move mail mail-slow 7f3a 81bc
    """,
)
@click.argument("source", metavar="FROM", shell_complete=complete_queues)
@click.argument("target", metavar="TO", shell_complete=complete_queues)
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=complete_jobs)
def queue_move(app: App, source: str, target: str, ids: tuple[str, ...]) -> Result:
    """Put the jobs that wait in a queue into another one: all of them, or those named. Each keeps its priority and its place
    by time. What runs stays where it is."""
    answer = use.move(source, target, ids, reads=app.open_reads, open_store=app.open_store)
    if not answer.done and not answer.refused:
        app.say(app.paint(f"nothing waits in {source}", "dim"))
    return Done(answer.done, refused=answer.refused, verb=f"moved to {target}")
