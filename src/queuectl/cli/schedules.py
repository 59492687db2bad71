"""How schedules look to people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import Final

from queuectl.cli.app import App
from queuectl.cli.printable import printable
from queuectl.cli.result import Column
from queuectl.cli.style import STATE_STYLE, age
from queuectl.cli.table import lay_out
from queuectl.errors import QueuectlError
from queuectl.job.cron.fire import MANY
from queuectl.job.cron.model import PastTick, Schedule, format_catch_up
from queuectl.job.duration import format_duration
from queuectl.job.hooks import shown_url
from queuectl.job.model import from_ms
from queuectl.job.record import HIDDEN
from queuectl.queue.schedules import Shown
from queuectl.zones import find_zone

TICKS: Final = 10
GONE: Final = "removed"

_OVERLAP: Final = {
    "skip": "skip a time while the job before has not ended",
    "queue": "wait for the job before; at most one waits",
    "allow": "add a job each time, whatever runs",
}


def clock_time(ms: int, zone: tzinfo | None) -> str:
    """By the clock of the schedule's zone; of this machine's, where that is not known here."""
    moment: datetime = from_ms(ms).astimezone(zone)
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z")


def zone_of(schedule: Schedule) -> tzinfo | None:
    try:
        return find_zone(schedule.tz)
    except QueuectlError:
        return None


def command_of(schedule: Schedule) -> str:
    if (command := schedule.fields.get("command")) is not None:
        return str(command)
    import shlex

    return shlex.join(schedule.fields.get("argv") or ())


def result_of(tick: PastTick | None) -> str:
    """How the job of a tick ended, or how far it is."""
    if tick is None or tick.job is None:
        return ""
    return GONE if tick.state is None else tick.state.value


def next_of(schedule: Schedule, now_ms: int) -> str:
    if schedule.is_paused:
        return "paused"
    return "ended" if schedule.tick_ms is None else age(schedule.tick_ms, now_ms)


def columns(now_ms: int) -> list[Column[Shown]]:
    return [
        Column("NAME", lambda one: one.schedule.name),
        Column("SCHEDULE", lambda one: one.schedule.expression),
        Column("ZONE", lambda one: one.schedule.tz, style="dim", spare=3),
        Column("LAST", lambda one: "" if one.last is None else age(one.last.at_ms, now_ms), right=True, spare=2),
        Column("RESULT", lambda one: result_of(one.last), style=lambda one: _style(one.last), spare=1),
        Column("NEXT", lambda one: next_of(one.schedule, now_ms), right=True),
        Column("COMMAND", lambda one: command_of(one.schedule), flexible=True, spare=4),
    ]


def schedule_sheet(app: App, shown: Shown, *, now_ms: int, show_env: bool) -> Iterator[str]:
    schedule, zone = shown.schedule, zone_of(shown.schedule)
    state = "paused" if schedule.is_paused else "ended" if schedule.tick_ms is None else "on"
    style = {"on": "bold green", "paused": "bold yellow", "ended": "bold"}[state]
    yield f"{app.paint(printable(schedule.name), 'bold')}  {app.paint(state, style)}"
    yield ""
    facts = [(label, text) for label, text in _facts(shown, zone, now_ms, show_env=show_env) if text]
    width = max(len(label) for label, _ in facts)
    for label, text in facts:
        yield f"  {app.paint(label.rjust(width), 'dim')}  {text}"
    if shown.ticks:
        yield ""
        yield from _ticks(app, shown, zone)


def _facts(shown: Shown, zone: tzinfo | None, now_ms: int, *, show_env: bool) -> Iterator[tuple[str, str]]:
    schedule, last = shown.schedule, shown.last

    def when(ms: int | None) -> str:
        return "" if ms is None else f"{clock_time(ms, zone)} ({age(ms, now_ms)})"

    yield "Schedule", f"{printable(schedule.expression)}, {printable(schedule.tz)}"
    yield ("Command" if "command" in schedule.fields else "Arguments"), printable(command_of(schedule))
    for name, value in schedule.fields.items():
        if name not in {"command", "argv", "env"}:
            told = shown_url(value) if name.startswith("on_") and not show_env else _text(value)
            yield name.replace("_", " ").capitalize(), printable(told)
    for name, value in schedule.fields.get("env", {}).items():
        yield "Environment", printable(f"{name}={value if show_env else HIDDEN}")
    yield "Overlap", _OVERLAP[schedule.overlap.value]
    yield "Catch up", format_catch_up(schedule.catch_up)
    yield "Jitter", "" if not schedule.jitter_ms else f"up to {format_duration(schedule.jitter_ms)}"
    yield "Until", when(schedule.until_ms)
    yield "Next", when(schedule.tick_ms)
    yield "Waiting", "" if schedule.waiting is None else f"job {printable(schedule.waiting)}, for the one before it"
    if last is not None:
        how = f": {printable(last.error)}" if last.error else ""
        yield "Last", f"{when(last.at_ms)}, job {printable(last.job or '')} {result_of(last)}{how}"


def _ticks(app: App, shown: Shown, zone: tzinfo | None) -> Iterator[str]:
    table: list[Column[PastTick]] = [
        Column("TIME", lambda tick: clock_time(tick.at_ms, zone) + (" by hand" if tick.is_by_hand else "")),
        Column("JOB", lambda tick: tick.job or ""),
        Column("RESULT", lambda tick: result_of(tick) or "skipped", style=_style),
        Column("WHY", _why, flexible=True, optional=True),
    ]
    if len(shown.ticks) > TICKS:
        yield app.paint(f"  the last {TICKS} of {len(shown.ticks)} times; all of them: --json", "dim")
    width = None if app.width is None else app.width - 2
    for line in lay_out(shown.ticks[:TICKS], table, width=width, colour=app.colour_on(app.stdout)):
        yield f"  {line}"


def _why(tick: PastTick) -> str:
    if tick.reason is None:
        return tick.error or ""
    if tick.times == 1:
        return tick.reason
    return f"{tick.reason} ({f'more than {MANY:,}' if tick.times > MANY else f'{tick.times:,}'} times)"


def _style(tick: PastTick | None) -> str | None:
    return "dim" if tick is None or tick.state is None else STATE_STYLE[tick.state]


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
