"""queuectl queue: list, pause and limit queues, set defaults for their jobs."""

from __future__ import annotations

import click

from queuectl.cli.app import App
from queuectl.cli.command import group
from queuectl.cli.completion import complete_jobs, complete_queues
from queuectl.cli.job_options import DEFAULT_FIELDS, ChangeCommand, default_options
from queuectl.cli.render import Details, Done, Result, Table
from queuectl.cli.tables import Column
from queuectl.jobs.queue_limits import QueueSettings, format_rate
from queuectl.jobs.resources import LIMITS
from queuectl.jobs.states import State
from queuectl.operations import queues as use
from queuectl.operations.queues import QueueView
from queuectl.text import plural
from queuectl.units import format_duration
from queuectl.webhooks.rules import redact_url

queue = group(
    "queue",
    "Pause, limit and configure queues.",
    examples="""
        queuectl queue list
        queuectl queue set mail --concurrency 2 --rate 10/m
        queuectl queue pause mail
    """,
)


@queue.subcommand("list", "List queues, their jobs and limits.")
def queue_list(app: App) -> Result:
    """List queues with their waiting and running jobs, pauses, limits and current rates.

    Examples:
        queuectl queue list
        queuectl queue list --json | jq '.[] | select(.paused) | .name'
    """
    queues = use.list_queues(app.open_reads())
    if not app.flags.json:
        # Queues are never removed: omit those without jobs and rules.
        queues = [one for one in queues if one.rules != QueueSettings() or any(one.states.values())]
    return Table(
        queues,
        columns=[
            Column("QUEUE", lambda one: one.name, style="bold"),
            Column("STATE", _state, style=lambda one: "yellow" if one.rules.paused else None),
            Column("WAITING", lambda one: f"{_waiting(one):,}", right=True),
            Column("RUNNING", _running, right=True),
            Column("DEAD", lambda one: f"{one.states[State.DEAD]:,}", right=True, spare=1),
            Column(
                "PER KEY", lambda one: f"{one.rules.per_key:,}" if one.rules.per_key else "", right=True, optional=True
            ),
            Column("RATE", _rate, optional=True),
            Column("DEFAULTS", _defaults, style="dim", flexible=True, optional=True, spare=2),
        ],
        to_json=QueueView.to_dict,
        to_id=lambda one: one.name,
        empty="No queues.",
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
    parts: dict[str, object] = {"priority": rules.priority, "max-attempts": rules.max_retries}
    if rules.timeout_ms is not None:
        parts["timeout"] = format_duration(rules.timeout_ms) if rules.timeout_ms else "none"
    parts |= {name.replace("_", "-"): LIMITS[name].text(value) for name, value in (rules.limits or {}).items()}
    for name, url in (("success", rules.on_success), ("failure", rules.on_failure), ("dead", rules.on_dead)):
        parts[f"on-{name}"] = None if url is None else redact_url(url)
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value is not None)


@queue.subcommand("pause", "Pause queues; running jobs continue.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_queues)
def queue_pause(app: App, names: tuple[str, ...]) -> Result:
    """Pause queues, so that their jobs do not start. Running jobs continue. You can still enqueue jobs.

    Examples:
        queuectl queue pause mail
        queuectl queue pause mail reports
    """
    return _set_paused(app, names, paused=True)


@queue.subcommand("resume", "Resume queues.", examples="queuectl queue resume mail")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_queues)
def queue_resume(app: App, names: tuple[str, ...]) -> Result:
    """Resume paused queues."""
    return _set_paused(app, names, paused=False)


def _set_paused(app: App, names: tuple[str, ...], *, paused: bool) -> Result:
    known = {one.name for one in use.list_queues(app.open_reads())}
    changed = use.set_paused(names, paused=paused, reads=app.open_reads, open_store=app.open_store)
    verb = "paused" if paused else "resumed"
    same = [name for name in dict.fromkeys(names) if name not in changed]
    for name in same:
        app.say(app.paint(f"{name}: {'already paused' if paused else 'not paused'}", "dim"))
    if paused:
        counts = {one.name: one.states[State.PROCESSING] for one in use.list_queues(app.open_reads())}
        for name in changed:
            if name not in known:
                app.say(app.paint(f"{name}: no job was ever added to it", "dim"))
            if counts.get(name):
                app.say(app.paint(f"{name}: {plural(counts[name], 'job')} still running", "dim"))
    return Done(list(dict.fromkeys(names)), verb=verb)


@queue.subcommand(
    "set",
    "Set limits of a queue, or defaults for its jobs.",
    cls=ChangeCommand,
    signed_arguments=True,
    option_groups={"Limits of the queue": ("concurrency", "per_key", "rate"), "Defaults for its jobs": DEFAULT_FIELDS},
)
@click.argument("name", metavar="NAME", shell_complete=complete_queues)
@click.option("--concurrency", metavar="N", help="Maximum number of running jobs, over all workers and hosts.")
@click.option("--per-key", metavar="N", help="Maximum number of running jobs per concurrency key.")
@click.option("--rate", metavar="N/TIME", help="Rate limit, as starts per time: 10/m, 5/s, 100/h, 5/10s.")
@default_options
def queue_set(app: App, name: str, max_attempts: int | str | None, **values: int | str | None) -> Result:
    """Set limits of a queue and defaults for its jobs. The value none removes a limit or default.

    Limits apply immediately, across all workers and hosts. Running jobs continue. Defaults apply to jobs that you enqueue
    later.

    Examples:
        # two at a time, over all workers and hosts
        queuectl queue set mail --concurrency 2
        # ten starts in any minute, retries included
        queuectl queue set mail --rate 10/m
        # two running jobs per customer: enqueue --key customer-7
        queuectl queue set mail --per-key 2
        # defaults for its jobs
        queuectl queue set reports --timeout 1h --max-attempts 5 --priority -5
        queuectl queue set reports --memory 2GiB --nice 5
        # a webhook for dead jobs
        queuectl queue set reports --on-dead https://example.org/hooks/queue
        queuectl queue set mail --rate none
    """
    if max_attempts is not None:
        values["max_retries"] = max_attempts
    found = use.set_rules(app.open_store, name, values, by_option=True)
    return Details(found.to_dict(), text=lambda: [_summary(found)], id=name)


def _summary(one: QueueView) -> str:
    rules = one.rules
    parts = [
        "paused" if rules.paused else "",
        f"{rules.concurrency:,} at a time" if rules.concurrency is not None else "",
        f"{rules.per_key:,} per key" if rules.per_key is not None else "",
        f"{format_rate(rules.rate)}" if rules.rate is not None else "",
        f"defaults {_defaults(one)}" if _defaults(one) else "",
    ]
    return f"{one.name}: {'; '.join(filter(None, parts)) or 'no limits'}"


@queue.subcommand("move", "Move waiting jobs to another queue.")
@click.argument("source", metavar="FROM", shell_complete=complete_queues)
@click.argument("target", metavar="TO", shell_complete=complete_queues)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
def queue_move(app: App, source: str, target: str, ids: tuple[str, ...]) -> Result:
    """Move waiting jobs to another queue: all jobs of a queue, or by ID.

    Jobs keep their priority and time of enqueue. Running jobs are not moved.

    Examples:
        # all waiting jobs of a queue
        queuectl queue move mail mail-slow
        # single jobs
        queuectl queue move mail mail-slow 7f3a 81bc
    """
    answer = use.move(source, target, ids, reads=app.open_reads, open_store=app.open_store)
    if not answer.done and not answer.refused:
        app.say(app.paint(f"no jobs wait in {source}", "dim"))
    return Done(answer.done, refused=answer.refused, verb=f"moved to {target}")
