"""queuectl alert: notifications by webhook or command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from queuectl.alerts import operations as use
from queuectl.alerts.evaluator import AlertDelivery, Sent
from queuectl.alerts.rules import Alert, notification_text
from queuectl.cli.app import App
from queuectl.cli.command import group, policy_option
from queuectl.cli.completion import complete_alerts, complete_queues
from queuectl.cli.errors import DONE, REFUSED
from queuectl.cli.render import Details, Done, Lines, Result, Table, field_lines
from queuectl.cli.tables import Column
from queuectl.config import working_directory
from queuectl.policy.gate import open_gate
from queuectl.store.alerts import (
    LastNotification,
    NotificationStatus,
    last_notifications,
)
from queuectl.text import escape_control
from queuectl.units import format_duration, humanize_time
from queuectl.webhooks.rules import redact_url

alert = group(
    "alert",
    "Alert on dead jobs, long waits or missing workers, with a webhook or a command.",
    examples="""
        queuectl alert add deaths --dead 10 --within 1h --webhook https://example.org/hooks/queue
        queuectl alert test deaths
        queuectl alert list
    """,
)

_name = click.argument("name", metavar="NAME", shell_complete=complete_alerts)
_names = click.argument("names", nargs=-1, metavar="NAME...", required=True, shell_complete=complete_alerts)


def _definition(function: Any) -> Any:
    """The options that define an alert."""
    options = (
        click.option("--dead", metavar="N", help="Fire at this number of dead jobs."),
        click.option("--within", metavar="TIME", help="Time window of --dead: 10m, 1h (default: any)."),
        click.option("--oldest", metavar="TIME", help="Fire when a due job has waited for this time."),
        click.option("--no-worker", metavar="TIME", help="Fire when there has been no live worker for this time."),
        click.option(
            "--queue",
            "-q",
            metavar="NAME",
            shell_complete=complete_queues,
            help="Queue to watch (default: all queues).",
        ),
        click.option("--for", "hold", metavar="TIME", help="Time that the condition has to hold (default: 0)."),
        click.option("--repeat", metavar="TIME", help="Interval of repeated notifications (default: none)."),
        click.option("--webhook", metavar="URL", help="Webhook to call."),
        click.option("--command", "command_", metavar="CMD", help="Command to run, in the current directory."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@alert.subcommand("add", "Add an alert: a condition, and a webhook or command.")
@click.argument("name", metavar="NAME")
@_definition
def add(app: App, name: str, command_: str | None, **values: str | None) -> Result:
    """Add an alert. It sends a notification when it fires and when it is resolved.

    The alert fires when its value has been at the threshold or above for the time of --for. It is resolved when the value
    has been below 80 % of the threshold for the same time.

    Examples:
        # ten jobs died within the last hour
        queuectl alert add deaths --dead 10 --within 1h --webhook https://example.org/hooks/queue

        # a due job of mail has waited for ten minutes; repeated each hour
        queuectl alert add late --oldest 10m --queue mail --repeat 1h --command './page.sh'

        # no live worker: needs the dashboard or `alert check` in a crontab
        queuectl alert add no-worker --no-worker 2m --command 'logger -t queue "$QUEUECTL_ALERT_TEXT"'
    """
    request = use.AlertRequest(name, command=command_, spelled=_spelled, **values)
    added = use.add(request, cwd=working_directory(), reads=app.open_reads, open_store=app.open_store)
    return Details(added.to_dict(), text=lambda: [f"{escape_control(added.name)}: {_when(added)}"], id=added.name)


def _spelled(field: str) -> str:
    return f"--{field.replace('_', '-')}"


@alert.subcommand("edit", "Change an alert.")
@_name
@_definition
def edit(app: App, name: str, command_: str | None, **values: str | None) -> Result:
    """Change an alert. Options that are omitted keep their value. "none" removes --within, --queue, --for or --repeat.

    A condition replaces the other condition, and --webhook or --command replace each other. With another condition the
    evaluation starts again.

    Examples:
        queuectl alert edit deaths --dead 20
        queuectl alert edit late --queue none --repeat 30m
    """
    request = use.AlertRequest(name, command=command_, spelled=_spelled, **values)
    changed = use.edit(request, _context(app), cwd=working_directory())
    return Details(changed.to_dict(), text=lambda: [f"{escape_control(changed.name)}: {_when(changed)}"], id=name)


@alert.subcommand("pause", "Pause alerts.", examples="queuectl alert pause deaths")
@_names
def pause(app: App, names: tuple[str, ...]) -> Result:
    """Pause alerts. They are not evaluated and send nothing until they are resumed."""
    answer = use.pause_all(names, _context(app))
    return Done(answer.done, refused=answer.refused, verb="paused")


@alert.subcommand("resume", "Resume alerts.", examples="queuectl alert resume deaths")
@_names
def resume(app: App, names: tuple[str, ...]) -> Result:
    """Resume alerts. Their evaluation starts again."""
    answer = use.resume_all(names, _context(app))
    return Done(answer.done, refused=answer.refused, verb="resumed")


def _context(app: App) -> use.Context:
    return use.Context(app.open_reads, app.open_store)


@alert.subcommand("list", "List alerts and their states.", examples="queuectl alert list")
def list_alerts(app: App) -> Result:
    """List alerts with their condition, state, value, and webhook or command."""
    reads = app.open_reads()
    now_ms, found = reads.now_ms(), reads.alerts.all()
    messages = last_notifications(reads, found)

    def fate(one: Alert) -> str:
        return messages[one.name].status.value if one.name in messages else ""

    def fate_style(one: Alert) -> str:
        return "bold red" if fate(one) in (NotificationStatus.DEAD, NotificationStatus.UNSENT) else ""

    return Table(
        found,
        [
            Column("NAME", lambda one: one.name, style="bold"),
            Column("STATE", lambda one: one.state, style=_style),
            Column("WHEN", lambda one: one.condition),
            Column("NOW", _value),
            Column("CHECKED", lambda one: _ago(one.checked_ms, now_ms), right=True, spare=1),
            Column("MESSAGE", fate, style=fate_style, spare=3),
            Column("TARGET", _target, flexible=True, spare=2),
        ],
        to_json=lambda one: one.to_dict(fate(one) or None),
        to_id=lambda one: str(one.name),
        empty="No alerts.",
    )


@alert.subcommand("show", "Show an alert.", examples="queuectl alert show deaths")
@_name
def show(app: App, name: str) -> Result:
    """Show an alert."""
    reads = app.open_reads()
    found = reads.alerts.get(name)
    message = last_notifications(reads, [found]).get(name)
    value = use.show(reads, name)
    return Details(
        value, text=lambda: _alert_lines(app, found, message, value["notifications"], reads.now_ms()), id=name
    )


@alert.subcommand("check", "Evaluate alerts now, for a crontab: works without a worker.")
@policy_option
def check(app: App, policy: str | None) -> Result:
    """Evaluate all alerts now, send notifications and print them.

    Workers and the dashboard evaluate alerts themselves. Run this command from a crontab or a systemd timer, so that you
    get a notification if no worker is alive. If a worker is alive, it delivers the notifications; otherwise this command
    delivers them. If a delivery fails, the exit status is 1, and the next check retries it.

    Examples:
        # in a crontab, where no worker and no dashboard may be alive
        * * * * * queuectl alert check
        queuectl alert check --json
    """
    sent: list[Sent] = []
    if app.open_reads().alerts.all():  # without alerts, create no database
        sent = _delivery(app, policy).check()
    value = [
        {
            "name": one.alert.name,
            "state": one.notification.event.value,
            "value": one.alert.plain(one.notification.value),
            "text": notification_text(one.alert, one.notification),
            "job": one.notification.id if one.by_job else None,
            "error": None if one.error is None else {"code": one.error.code, "message": one.error.message},
        }
        for one in sent
    ]
    lines = [_sent_line(one) for one in sent]
    return Lines(lines, value, exit_code=REFUSED if any(one.error for one in sent) else DONE)


@alert.subcommand("test", "Send a test notification.", examples="queuectl alert test deaths")
@_name
@policy_option
def test(app: App, name: str, policy: str | None) -> Result:
    """Send a test notification of an alert from this host, with the state `test`. The audit log records the test."""
    app.open_reads().alerts.get(name)  # before a database is created only to find that it has no such alert
    text = _delivery(app, policy).test(name)
    return Lines([escape_control(text)], {"name": name, "state": "test", "text": text})


@alert.subcommand("remove", "Remove alerts.", examples="queuectl alert remove deaths")
@_names
def remove(app: App, names: tuple[str, ...]) -> Result:
    """Remove alerts. Queued notifications are still delivered."""
    answer = use.remove_all(names, _context(app))
    return Done(answer.done, refused=answer.refused, verb="removed")


def _delivery(app: App, policy: str | None) -> AlertDelivery:
    gate = open_gate(app.home, policy, app.environ)
    return AlertDelivery(app.open_store(), lambda: app.settings, app.environ, gate=gate, clock=app.clock)


def _sent_line(one: Sent) -> str:
    line = f"{one.alert.name} {one.notification.event}: {notification_text(one.alert, one.notification)}"
    return escape_control(line if one.error is None else f"{line}; not delivered: {one.error.message}")


def _when(one: Alert) -> str:
    hold = f", for {format_duration(one.for_ms)}" if one.for_ms else ""
    return f"{one.condition}{hold}"


def _value(one: Alert) -> str:
    if one.value is None:
        return ""
    plain = one.plain(one.value)
    return f"{plain:,}" if one.kind == "dead" else format_duration(one.value - one.value % 1000)


def _target(one: Alert) -> str:
    return redact_url(one.url) if one.url is not None else str(one.command)


def _ago(ms: int | None, now_ms: int) -> str:
    return "never" if ms is None else humanize_time(ms, now_ms)


def _style(one: Any) -> str:
    return "bold red" if one.is_firing else "yellow" if one.is_paused else "green"


def _message(one: Alert, message: LastNotification | None, now_ms: int) -> str:
    """The time of the last notification, and whether it was delivered."""
    if message is None:
        return "never"
    ago = _ago(one.told_ms, now_ms)
    match message.status:
        case NotificationStatus.UNSENT:
            return f"{ago}: not delivered yet, {len(one.untold)} to send"
        case NotificationStatus.QUEUED:
            return f"{ago}: queued, not delivered yet: queuectl show {message.job}"
        case NotificationStatus.DEAD:
            return f"{ago}: failed, not delivered: queuectl logs {message.job}"
        case NotificationStatus.CANCELLED:
            return f"{ago}: cancelled: queuectl show {message.job}"
        case NotificationStatus.DELIVERED:
            return f"{ago}: delivered"
        case NotificationStatus.SENT:
            return f"{ago}: sent without a job, or the job was removed"


def _alert_lines(
    app: App, one: Alert, message: LastNotification | None, sent: Sequence[Mapping[str, Any]], now_ms: int
) -> Iterator[str]:
    yield f"{app.paint(escape_control(one.name), 'bold')}  {app.paint(one.state, _style(one))}"
    yield ""
    fields = {
        "When": _when(one),
        "Now": "" if one.value is None else one.describe(one.value),
        "Since": "" if one.changed_ms is None else _ago(one.changed_ms, now_ms),
        "Checked": _ago(one.checked_ms, now_ms),
        "Message": _message(one, message, now_ms),
        "Repeat": "" if one.repeat_ms is None else f"every {format_duration(one.repeat_ms)} while it fires",
        "Webhook" if one.url is not None else "Command": _target(one),
        "Directory": "" if one.url is not None else one.cwd,
    }
    yield from field_lines(app, ((label, escape_control(text)) for label, text in fields.items()))
    if sent:
        yield ""
        yield app.paint("Notifications", "bold")
        for past in sent:
            yield escape_control(f"  {past['at']}  {past['event']:12}  {past['status']:9}  {past['text']}")
