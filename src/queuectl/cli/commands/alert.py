"""queuectl alert: who is told when things go wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import click

from queuectl.alerting import Teller
from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.complete import complete_alerts, complete_queues
from queuectl.cli.exits import DONE, REFUSED
from queuectl.cli.printable import printable
from queuectl.cli.result import Column, Done, Lines, Result, Sheet, Table
from queuectl.cli.style import age
from queuectl.config import file_path, load_settings, working_directory
from queuectl.gate import open_gate
from queuectl.job.alert import Alert
from queuectl.job.duration import format_duration
from queuectl.job.hooks import shown_url
from queuectl.job.settings import Settings
from queuectl.queue import alerts as use
from queuectl.store.messages import Fate, Message, last_messages
from queuectl.upkeep.alert import Told

_HERE: Final = "queuectl.cli.commands.alert"

alert = group(
    "alert",
    "Be told when jobs die, wait too long, or nobody works, and when that is over: once each, by a webhook or a command.",
    {
        "add": Entry(_HERE, "add", "A new alert: when, and whom to tell."),
        "list": Entry(_HERE, "list_alerts", "The alerts, and how each stands."),
        "show": Entry(_HERE, "show", "Everything about one alert."),
        "check": Entry(_HERE, "check", "Look now, for a crontab: also where no worker lives."),
        "test": Entry(_HERE, "test", "Tell somebody now, to see that it arrives."),
        "remove": Entry(_HERE, "remove", "Remove alerts."),
    },
    examples="""
        queuectl alert add deaths --dead 10 --within 1h --webhook https://example.org/hooks/queue
        queuectl alert test deaths
        queuectl alert list
    """,
)

_POLICY: Final = click.option(
    "--policy", metavar="FILE", help="Policy for its command (default: policy.toml of the home)."
)
_name = click.argument("name", metavar="NAME", shell_complete=complete_alerts)


@command(
    "add",
    examples="""
        # ten jobs have died within the last hour
        queuectl alert add deaths --dead 10 --within 1h --webhook https://example.org/hooks/queue

        # a job of mail that is due has waited for ten minutes; said again each hour
        queuectl alert add late --oldest 10m --queue mail --repeat 1h --command './page.sh'

        # nobody has been there to run jobs: needs the dashboard or `alert check` in a crontab
        queuectl alert add nobody --no-worker 2m --command 'logger -t queue "$QUEUECTL_ALERT_TEXT"'
    """,
)
@click.argument("name", metavar="NAME")
@click.option("--dead", metavar="N", help="When so many jobs are dead.")
@click.option("--within", metavar="TIME", help="With --dead: only those that died so lately.")
@click.option("--oldest", metavar="TIME", help="When a job that is due has waited for so long.")
@click.option("--no-worker", metavar="TIME", help="When no worker takes jobs for so long.")
@click.option("--queue", "-q", metavar="NAME", shell_complete=complete_queues, help="Of this queue only.")
@click.option("--for", "hold", metavar="TIME", help="Fire only if it stays so for this long (default 0).")
@click.option("--repeat", metavar="TIME", help="While it fires, say so again after each such time.")
@click.option("--webhook", metavar="URL", help="Whom to call.")
@click.option("--command", "command_", metavar="CMD", help="What to run, in this directory.")
def add(app: App, name: str, command_: str | None, **said: str | None) -> Result:
    """Add an alert. It fires when its value has been at the threshold or above it for a while (--for), and is over when it has been
    below four fifths of it for as long. Somebody is told once when it fires, and once when it is over."""
    wish = use.Wish(name, command=command_, spelled=lambda field: f"--{field.replace('_', '-')}", **said)
    added = use.add(wish, cwd=working_directory(), reads=app.open_reads, open_store=app.open_store)
    return Sheet(added.to_dict(), people=lambda: [f"{printable(added.name)}: {_when(added)}"], id=added.name)


@command("list", examples="queuectl alert list")
def list_alerts(app: App) -> Result:
    """The alerts by name: when each fires, whether it does, its value, and who is told."""
    reads = app.open_reads()
    now_ms, found = reads.now_ms(), reads.alerts()
    messages = last_messages(reads, found)
    return Table(
        found,
        [
            Column("NAME", lambda one: one.name, style="bold"),
            Column("STATE", lambda one: one.state, style=_style),
            Column("WHEN", lambda one: one.condition),
            Column("NOW", _value),
            Column("CHECKED", lambda one: _ago(one.checked_ms, now_ms), right=True, spare=1),
            Column("MESSAGE", lambda one: _fate(messages, one), style=lambda one: _fate_style(messages, one), spare=3),
            Column("TELLS", _whom, flexible=True, spare=2),
        ],
        to_json=lambda one: one.to_dict(_fate(messages, one) or None),
        to_id=lambda one: str(one.name),
        empty="no alerts",
    )


@command("show", examples="queuectl alert show deaths")
@_name
def show(app: App, name: str) -> Result:
    """Everything about one alert."""
    reads = app.open_reads()
    found = reads.alert(name)
    message = last_messages(reads, [found]).get(name)
    value = found.to_dict(None if message is None else message.fate)
    return Sheet(value, people=lambda: _sheet(app, found, message, reads.now_ms()), id=name)


@command(
    "check",
    examples="""
        # in a crontab, where no worker and no dashboard may be alive
        * * * * * queuectl alert check
        queuectl alert check --json
    """,
)
@_POLICY
def check(app: App, policy: str | None) -> Result:
    """Look at all alerts now, and tell whoever is to be told: by a job if a worker lives, else from here. Prints what was told, so
    nothing if nothing has changed. Exit 1 if somebody could not be reached; the next check tries again.

    Workers and the dashboard look by themselves. This is for a crontab or a systemd timer, to be told that there is no worker.
    """
    told: list[Told] = []
    if app.open_reads().alerts():  # where there is none, no store is made to say so
        told = _teller(app, policy).check()
    value = [
        {
            "name": one.alert.name,
            "state": one.telling.word.value,
            "value": one.alert.plain(one.telling.value),
            "text": one.alert.describe(one.telling.value),
            "job": one.telling.id if one.by_job else None,
            "error": None if one.error is None else {"code": one.error.code, "message": one.error.message},
        }
        for one in told
    ]
    lines = [_told(one) for one in told]
    return Lines(lines, value, exit_code=REFUSED if any(one.error for one in told) else DONE)


@command("test", examples="queuectl alert test deaths")
@_name
@_POLICY
def test(app: App, name: str, policy: str | None) -> Result:
    """Call its webhook or run its command now, from here, with the state `test`. The audit log records it."""
    app.open_reads().alert(name)  # before a database is created only to find that it has no such alert
    said = _teller(app, policy).test(name)
    return Lines([printable(said)], {"name": name, "state": "test", "text": said})


@command("remove", examples="queuectl alert remove deaths")
@click.argument("names", nargs=-1, metavar="NAME...", required=True, shell_complete=complete_alerts)
def remove(app: App, names: tuple[str, ...]) -> Result:
    """Remove alerts. What is on its way to somebody still arrives."""
    answer = use.remove_all(names, reads=app.open_reads, open_store=app.open_store)
    return Done(answer.done, refused=answer.refused, verb="removed")


def _teller(app: App, policy: str | None) -> Teller:
    gate = open_gate(app.home, None if policy is None else file_path(policy, spelled="--policy"), app.environ)
    return Teller(app.open_store(), lambda: _settings(app), app.environ, gate=gate, clock=app.clock)


def _settings(app: App) -> Settings:
    return load_settings(app.open_reads().config(), app.environ)


def _told(one: Told) -> str:
    words = f"{one.alert.name} {one.telling.word}: {one.alert.describe(one.telling.value)}"
    return printable(words if one.error is None else f"{words}; not told: {one.error.message}")


def _when(one: Alert) -> str:
    hold = f", for {format_duration(one.for_ms)}" if one.for_ms else ""
    return f"{one.condition}{hold}"


def _value(one: Alert) -> str:
    if one.value is None:
        return ""
    plain = one.plain(one.value)
    return f"{plain:,}" if one.kind == "dead" else format_duration(one.value - one.value % 1000)


def _whom(one: Alert) -> str:
    return shown_url(one.url) if one.url is not None else str(one.command)


def _ago(ms: int | None, now_ms: int) -> str:
    return "never" if ms is None else age(ms, now_ms)


def _style(one: Any) -> str:
    return "bold red" if one.is_firing else "green"


def _fate(messages: Mapping[str, Message], one: Alert) -> str:
    return messages[one.name].fate.value if one.name in messages else ""


def _fate_style(messages: Mapping[str, Message], one: Alert) -> str:
    return "bold red" if _fate(messages, one) in (Fate.DEAD, Fate.UNTOLD) else ""


def _message(one: Alert, message: Message | None, now_ms: int) -> str:
    """For people: when the last thing was to be told, and whether it was."""
    if message is None:
        return "never"
    ago = _ago(one.told_ms, now_ms)
    match message.fate:
        case Fate.UNTOLD:
            return f"{ago}: nobody has been reached yet, {len(one.untold)} to tell"
        case Fate.QUEUED:
            return f"{ago}: queued, not delivered yet: queuectl show {message.job}"
        case Fate.DEAD:
            return f"{ago}: failed for good, nobody has it: queuectl logs {message.job}"
        case Fate.CANCELLED:
            return f"{ago}: cancelled: queuectl show {message.job}"
        case Fate.DELIVERED:
            return f"{ago}: delivered"
        case Fate.TOLD:
            return f"{ago}: told without a job, or that is gone"


def _sheet(app: App, one: Alert, message: Message | None, now_ms: int) -> Iterator[str]:
    yield f"{app.paint(printable(one.name), 'bold')}  {app.paint(one.state, _style(one))}"
    yield ""
    facts = {
        "When": _when(one),
        "Now": "" if one.value is None else one.describe(one.value),
        "Since": "" if one.changed_ms is None else _ago(one.changed_ms, now_ms),
        "Checked": _ago(one.checked_ms, now_ms),
        "Message": _message(one, message, now_ms),
        "Again": "" if one.repeat_ms is None else f"each {format_duration(one.repeat_ms)} while it fires",
        "Calls" if one.url is not None else "Runs": _whom(one),
        "In": "" if one.url is not None else one.cwd,
    }
    width = max(map(len, facts))
    for label, text in facts.items():
        if text:
            yield f"  {app.paint(label.rjust(width), 'dim')}  {printable(text)}"
