"""queuectl cron: schedules that add jobs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, tzinfo
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import attempts, group, integer, show_env_option
from queuectl.cli.commands.enqueue import single
from queuectl.cli.completion import complete_queues, complete_schedules
from queuectl.cli.job_options import (
    OPTION_GROUPS,
    PARENT_OPTIONS,
    JobCommand,
    command_input,
    job_options,
    read_fields,
    refuse_parents,
)
from queuectl.cli.render import Details, Done, Result, Table, field_lines, table_lines
from queuectl.cli.tables import STATE_STYLE, Column
from queuectl.config import working_directory
from queuectl.cron import operations as use
from queuectl.cron.operations import ScheduleDetails, find_zone, local_zone_name
from queuectl.cron.schedule import MAX_ENUMERATED_RUNS, PastRun, Schedule, format_catch_up, format_time
from queuectl.errors import QueuectlError, UsageError
from queuectl.jobs.fields import integer as integer_field
from queuectl.jobs.model import HIDDEN_VALUE, BulkResult
from queuectl.jobs.spec import Defaults, merge_fields
from queuectl.operations.enqueue import Queued
from queuectl.text import command_line, escape_control
from queuectl.units import format_duration, from_ms, humanize_time
from queuectl.webhooks.rules import redact_url

MAX_RUNS: Final = 10
GONE: Final = "removed"

_OVERLAP: Final = {
    "skip": "skip a run while the previous job has not ended",
    "queue": "wait until the previous job has ended; at most one job waits",
    "allow": "add a job for each run, also while others run",
}

# Labels of fields, as in `queuectl show`.
_LABELS: Final = {"cwd": "Directory", "key": "Concurrency key", "depends_on": "After"}


def clock_time(ms: int, zone: tzinfo | None) -> str:
    """The local time of the schedule's time zone; of this host's, if that zone is not installed here."""
    moment: datetime = from_ms(ms).astimezone(zone)
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z")


def zone_of(schedule: Schedule) -> tzinfo | None:
    try:
        return find_zone(schedule.tz)
    except QueuectlError:
        return None


def command_of(schedule: Schedule) -> str:
    return command_line(schedule.fields.get("command"), schedule.fields.get("argv"))


def result_of(tick: PastRun | None) -> str:
    """The state of the job of a scheduled run."""
    if tick is None or tick.job is None:
        return ""
    return GONE if tick.state is None else tick.state.value


def next_of(schedule: Schedule, now_ms: int) -> str:
    if schedule.is_paused:
        return "paused"
    return "ended" if schedule.tick_ms is None else humanize_time(schedule.tick_ms, now_ms)


def _columns(now_ms: int) -> list[Column[ScheduleDetails]]:
    return [
        Column("NAME", lambda one: one.schedule.name),
        Column("SCHEDULE", lambda one: one.schedule.expression),
        Column("ZONE", lambda one: one.schedule.tz, style="dim", spare=3),
        Column(
            "LAST", lambda one: "" if one.last is None else humanize_time(one.last.at_ms, now_ms), right=True, spare=2
        ),
        Column("RESULT", lambda one: result_of(one.last), style=lambda one: _tick_style(one.last), spare=1),
        Column("NEXT", lambda one: next_of(one.schedule, now_ms), right=True),
        Column("COMMAND", lambda one: command_of(one.schedule), flexible=True, spare=4),
    ]


def _schedule_lines(app: App, shown: ScheduleDetails, *, now_ms: int, show_env: bool) -> Iterator[str]:
    schedule, zone = shown.schedule, zone_of(shown.schedule)
    state = "paused" if schedule.is_paused else "ended" if schedule.tick_ms is None else "on"
    style = {"on": "bold green", "paused": "bold yellow", "ended": "bold"}[state]
    yield f"{app.paint(escape_control(schedule.name), 'bold')}  {app.paint(state, style)}"
    yield ""
    yield from field_lines(app, _fields_shown(shown, zone, now_ms, show_env=show_env))
    if shown.ticks:
        yield ""
        yield from _ticks(app, shown, zone)


def _fields_shown(
    shown: ScheduleDetails, zone: tzinfo | None, now_ms: int, *, show_env: bool
) -> Iterator[tuple[str, str]]:
    schedule, last = shown.schedule, shown.last

    def when(ms: int | None) -> str:
        return "" if ms is None else f"{clock_time(ms, zone)} ({humanize_time(ms, now_ms)})"

    yield "Schedule", f"{escape_control(schedule.expression)}, {escape_control(schedule.tz)}"
    yield ("Command" if "command" in schedule.fields else "Arguments"), escape_control(command_of(schedule))
    for name, value in schedule.fields.items():
        if name not in {"command", "argv", "env"}:
            text = redact_url(value) if name.startswith("on_") and not show_env else _text(value)
            yield _LABELS.get(name) or name.replace("_", " ").capitalize(), escape_control(text)
    for name, value in schedule.fields.get("env", {}).items():
        yield "Environment", escape_control(f"{name}={value if show_env else HIDDEN_VALUE}")
    yield "Overlap", _OVERLAP[schedule.overlap.value]
    yield "Catch up", format_catch_up(schedule.catch_up)
    yield "Jitter", "" if not schedule.jitter_ms else f"up to {format_duration(schedule.jitter_ms)}"
    yield "Until", when(schedule.until_ms)
    yield "Next", when(schedule.tick_ms)
    yield (
        "Waiting",
        "" if schedule.waiting is None else f"job {escape_control(schedule.waiting)}, until the previous one has ended",
    )
    if last is not None:
        how = f": {escape_control(last.error)}" if last.error else ""
        yield "Last", f"{when(last.at_ms)}, job {escape_control(last.job or '')} {result_of(last)}{how}"


def _ticks(app: App, shown: ScheduleDetails, zone: tzinfo | None) -> Iterator[str]:
    table: list[Column[PastRun]] = [
        Column("TIME", lambda tick: clock_time(tick.at_ms, zone) + (" by hand" if tick.is_by_hand else "")),
        Column("JOB", lambda tick: tick.job or ""),
        Column("RESULT", lambda tick: result_of(tick) or "skipped", style=_tick_style),
        Column("WHY", _why, flexible=True, optional=True),
    ]
    if len(shown.ticks) > MAX_RUNS:
        yield app.paint(f"  the last {MAX_RUNS} of {len(shown.ticks)} runs; --json prints all of them", "dim")
    yield from table_lines(app, shown.ticks[:MAX_RUNS], table, indent="  ")


def _why(tick: PastRun) -> str:
    if tick.reason is None:
        return tick.error or ""
    if tick.times == 1:
        return tick.reason
    return f"{tick.reason} ({f'more than {MAX_ENUMERATED_RUNS:,}' if tick.times > MAX_ENUMERATED_RUNS else f'{tick.times:,}'} times)"


def _tick_style(tick: PastRun | None) -> str | None:
    return "dim" if tick is None or tick.state is None else STATE_STYLE[tick.state]


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


PREVIEWED_RUNS: Final = 3

cron = group(
    "cron",
    "Run jobs on a schedule. Each scheduled run adds one job, however many workers and hosts there are.",
    examples="""
        queuectl cron add nightly '0 2 * * *' 'make backup' --tz Europe/Berlin
        queuectl cron add poll 'every 90s' ./poll.sh
        queuectl cron list
    """,
)


class CronCommand(JobCommand):
    leading_arguments = 2

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        for param in self.own_params:
            # Parsed, so that the error message gives the reason, but hidden in the help.
            if isinstance(param, click.Option) and param.name in ("id", "run_at", *PARENT_OPTIONS):
                param.hidden = True


_name = click.argument("name", metavar="NAME", shell_complete=complete_schedules)
_names = click.argument("names", nargs=-1, metavar="NAME...", required=True, shell_complete=complete_schedules)


@cron.subcommand(
    "add", "Add a schedule: a name, when to run, and the job.", cls=CronCommand, option_groups=OPTION_GROUPS
)
@_name
@click.argument("schedule", metavar="SCHEDULE")
@click.option("--tz", metavar="ZONE", help="Time zone: Europe/Berlin (default: that of this host).")
@click.option(
    "--overlap", default="skip", metavar="WHAT", help="Overlap with a running job: skip (default), queue, allow."
)
@click.option("--catch-up", default="one", metavar="WHAT", help="Missed runs to catch up: none, one (default), all:N.")
@click.option("--jitter", metavar="TIME", help="Maximum random delay (default: none).")
@click.option("--until", metavar="WHEN", help="Time of the last run: 2026-12-31 18:00, in --tz.")
@click.option("--replace", is_flag=True, help="Replace the schedule with this name.")
@job_options
def add(
    app: App,
    name: str,
    schedule: str,
    arguments: tuple[str, ...],
    tz: str | None,
    overlap: str,
    catch_up: str,
    jitter: str | None,
    until: str | None,
    replace: bool,
    **options: Any,
) -> Result:
    """Add a schedule. The options of the job are those of enqueue.

    SCHEDULE is a cron expression of five fields, or six with seconds first. Fields accept names (MON), ranges, lists and
    steps. Also possible: @hourly @daily @midnight @weekly @monthly @yearly @annually 'every 90s'.

    Examples:
        # minute hour day-of-month month day-of-week, in the time zone of this host
        queuectl cron add report '30 7 * * MON-FRI' ./report.sh --timeout 1h

        # in another time zone; catch up on at most three missed runs
        queuectl cron add close @monthly ./close --tz Asia/Tokyo --catch-up all:3

        # with seconds as the first field, or at an interval from now on
        queuectl cron add blink '*/10 * * * * *' 'curl -s localhost/health'
        queuectl cron add poll 'every 90s' ./poll.sh --overlap queue
    """
    refuse_parents(options, "not for a schedule", hint=use.NO_PARENTS)
    flags = read_fields(options, app)
    request = use.ScheduleRequest(
        name,
        schedule,
        local_zone_name(app.environ) if tz is None else tz,
        _fields(arguments, flags),
        overlap=overlap,
        catch_up=catch_up,
        jitter=jitter,
        until=until,
        spelled=lambda field: f"--{field.replace('_', '-')}",
    )
    added = use.add(request, _context(app), replace=replace)
    return Details(lambda: added.to_dict(None), text=lambda: _added(app, added), id=added.name)


def _fields(arguments: tuple[str, ...], flags: dict[str, object]) -> dict[str, object]:
    if not arguments and "command" not in flags:
        raise UsageError("nothing to run", hint="for example: queuectl cron add NAME SCHEDULE 'echo hello'")
    jobs = command_input(arguments, flags)
    if jobs.is_batch:
        raise UsageError("a schedule has one job, not a list", hint="add a schedule for each of them")
    ((_, fields),) = jobs
    return merge_fields(fields, flags)


def _added(app: App, schedule: Schedule) -> Iterator[str]:
    reads, zone = app.open_reads(), zone_of(schedule)
    now_ms = reads.now_ms()
    yield f"{app.paint(escape_control(schedule.name), 'bold')}  {escape_control(command_of(schedule))}"
    for at in use.upcoming(reads, schedule.name, PREVIEWED_RUNS):
        yield f"  {clock_time(at, zone)}  {app.paint(humanize_time(at, now_ms), 'dim')}"


@cron.subcommand("edit", "Change a schedule.")
@_name
@click.option("--schedule", metavar="SCHEDULE", help="Cron expression, or 'every 90s'.")
@click.option("--tz", metavar="ZONE", help="Time zone: Europe/Berlin.")
@click.option("--overlap", metavar="WHAT", help="Overlap with a running job: skip, queue, allow.")
@click.option("--catch-up", metavar="WHAT", help="Missed runs to catch up: none, one, all:N.")
@click.option("--jitter", metavar="TIME", help="Maximum random delay (none: no delay).")
@click.option("--until", metavar="WHEN", help="Time of the last run (none: no end).")
@click.option("--command", metavar="CMD", help="Command to run in the shell.")
@click.option("-q", "--queue", metavar="NAME", shell_complete=complete_queues, help="Queue of the jobs.")
@click.option("-p", "--priority", type=integer, metavar="N", help="Priority of the jobs.")
@click.option("--max-attempts", "max_retries", type=attempts, metavar="N", help="Maximum number of attempts.")
@click.option("--timeout", metavar="TIME", help="Time limit of a run (0: unlimited).")
def edit(app: App, name: str, **options: Any) -> Result:
    """Change a schedule. Options that are omitted keep their value. A paused schedule stays paused.

    Examples:
        queuectl cron edit nightly --schedule '0 3 * * *'
        queuectl cron edit close --until none --overlap queue
    """
    own = {part: options.pop(part) for part in ("schedule", "tz", "overlap", "catch_up", "jitter", "until")}
    fields = {field: value for field, value in options.items() if value is not None}
    change = use.ScheduleEdit(**own, fields=fields, spelled=lambda field: f"--{field.replace('_', '-')}")
    changed = use.edit(name, change, _context(app))
    return Details(lambda: changed.to_dict(None), text=lambda: _added(app, changed), id=name)


@cron.subcommand("list", "List schedules: last run, its result, next run.", examples="queuectl cron list")
def list_schedules(app: App) -> Result:
    """List schedules with their last run, its result and the next run."""
    reads = app.open_reads()
    return Table(
        use.list_schedules(reads),
        _columns(reads.now_ms()),
        to_json=lambda one: one.schedule.to_dict(one.last),
        to_id=lambda one: str(one.schedule.name),
        empty="No schedules.",
    )


@cron.subcommand("show", "Show a schedule and its last runs.", examples="queuectl cron show nightly")
@_name
@show_env_option
def show(app: App, name: str, show_env: bool) -> Result:
    """Show a schedule and its last scheduled times, each with its job or the reason why no job was added."""
    reads = app.open_reads()
    shown = use.show(reads, name)
    value = {**shown.schedule.to_dict(shown.last, show_env=show_env), "ticks": [tick.to_dict() for tick in shown.ticks]}
    lines = lambda: _schedule_lines(app, shown, now_ms=reads.now_ms(), show_env=show_env)  # noqa: E731 - one line
    return Details(value, text=lines, id=name)


@cron.subcommand("next", "Show the next runs.", examples="queuectl cron next nightly -n 10")
@_name
@click.option("-n", "--number", type=integer, default="5", metavar="N", help="Number of runs (default: 5).")
def next_times(app: App, name: str, number: int | str) -> Result:
    """Show the next runs of a schedule, also while it is paused."""
    most = integer_field(number, "--number", low=0, high=use.MAX_PREVIEWED_RUNS)
    reads = app.open_reads()
    schedule = reads.schedules.get(name)
    zone, now_ms = zone_of(schedule), reads.now_ms()
    return Table(
        use.upcoming(reads, name, most),
        [
            Column("TIME", lambda at: clock_time(at, zone)),
            Column("IN", lambda at: humanize_time(at, now_ms), right=True),
        ],
        to_json=format_time,
        to_id=lambda at: str(format_time(at)),
        empty="No more runs.",
        footer="This schedule is paused." if schedule.is_paused else None,
    )


@cron.subcommand("run", "Add the job of a schedule now.", examples="queuectl wait $(queuectl cron run nightly)")
@_name
def run(app: App, name: str) -> Result:
    """Add the job of a schedule now and print its ID. The next run is not affected."""
    return single(app, Queued(use.run(name, _context(app)), is_duplicate=False))


@cron.subcommand("pause", "Pause schedules.", examples="queuectl cron pause nightly")
@_names
def pause(app: App, names: tuple[str, ...]) -> Result:
    """Pause schedules. Runs that were due during the pause are not caught up."""
    return _all(app, names, use.pause_all, verb="paused")


@cron.subcommand("resume", "Resume schedules.", examples="queuectl cron resume nightly")
@_names
def resume(app: App, names: tuple[str, ...]) -> Result:
    """Resume paused schedules, from now on."""
    return _all(app, names, use.resume_all, verb="resumed")


@cron.subcommand("remove", "Remove schedules; their jobs stay.", examples="queuectl cron remove nightly")
@_names
def remove(app: App, names: tuple[str, ...]) -> Result:
    """Remove schedules. Their jobs are not removed."""
    return _all(app, names, use.remove_all, verb="removed")


def _all(
    app: App, names: tuple[str, ...], act: Callable[[tuple[str, ...], use.CronContext], BulkResult], *, verb: str
) -> Done:
    answer = act(names, _context(app))
    return Done(answer.done, refused=answer.refused, verb=verb)


def _context(app: App) -> use.CronContext:
    return use.CronContext(
        reads=app.open_reads,
        open_store=app.open_store,
        defaults=lambda: Defaults.of(app.settings, cwd=working_directory(), by_queue=app.queue_defaults),
        chance=random.random,
    )
