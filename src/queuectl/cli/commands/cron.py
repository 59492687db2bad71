"""queuectl cron: jobs by the clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import click

from queuectl.cli.app import App
from queuectl.cli.command import Entry, command, group
from queuectl.cli.commands.enqueue import from_words, single
from queuectl.cli.complete import complete_schedules
from queuectl.cli.jobwords import AFTER, JobCommand, job_options, read_fields, refuse_parents
from queuectl.cli.numbers import integer
from queuectl.cli.printable import printable
from queuectl.cli.result import Column, Done, Result, Sheet, Table
from queuectl.cli.schedules import clock_time, columns, command_of, schedule_sheet, zone_of
from queuectl.cli.style import age
from queuectl.config import working_directory
from queuectl.errors import InvalidInput, UsageError
from queuectl.job.cron.model import Schedule, moment
from queuectl.job.spec import Defaults, merge
from queuectl.queue import schedules as use
from queuectl.queue.enqueue import Queued
from queuectl.queue.pick import Answer
from queuectl.zones import local_zone_name

_HERE: Final = "queuectl.cli.commands.cron"
PREVIEW: Final = 3

cron = group(
    "cron",
    "Add jobs by the clock. Any running worker does it, each time once, over all workers and hosts.",
    {
        "add": Entry(_HERE, "add", "A new schedule: when, and what to run."),
        "list": Entry(_HERE, "list_schedules", "The schedules: last time, how it ended, next time."),
        "show": Entry(_HERE, "show", "Everything about one schedule, and its last times."),
        "next": Entry(_HERE, "next_times", "When it will be due."),
        "run": Entry(_HERE, "run", "Add its job now."),
        "pause": Entry(_HERE, "pause", "Let it rest."),
        "resume": Entry(_HERE, "resume", "Go on with it."),
        "remove": Entry(_HERE, "remove", "Remove it; its jobs stay."),
    },
    examples="""
        queuectl cron add nightly '0 2 * * *' 'make backup' --tz Europe/Berlin
        queuectl cron add poll 'every 90s' ./poll.sh
        queuectl cron list
    """,
)


class CronCommand(JobCommand):
    words_before = 2

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        for param in self.own_params:
            # Still parsed, so that the error gives the reason, but not listed in the help.
            if isinstance(param, click.Option) and param.name in ("id", "run_at", *AFTER):
                param.hidden = True


_name = click.argument("name", metavar="NAME", shell_complete=complete_schedules)
_names = click.argument("names", nargs=-1, metavar="NAME...", required=True, shell_complete=complete_schedules)


@command(
    "add",
    cls=CronCommand,
    examples="""
        # minute hour day-of-month month day-of-week, by the clock of this machine's zone
        queuectl cron add report '30 7 * * MON-FRI' './report.sh' --queue low --timeout 1h

        # by another clock; what was missed while nobody worked is made up for, three times at most
        queuectl cron add books '@monthly' --tz America/New_York --catch-up all:3 -- ./close --month

        # seconds first, or from now on in equal steps
        queuectl cron add blink '*/10 * * * * *' 'curl -s localhost/health'
        queuectl cron add poll 'every 90s' ./poll.sh --overlap queue
    """,
)
@_name
@click.argument("schedule", metavar="SCHEDULE")
@click.option("--tz", metavar="ZONE", help="By which clock, like Europe/Berlin; default: this machine's.")
@click.option(
    "--overlap", default="skip", metavar="WHAT", help="While the job before runs: skip (default), queue, allow."
)
@click.option("--catch-up", default="one", metavar="WHAT", help="Of times missed: none, one (default), all:N.")
@click.option("--jitter", metavar="TIME", help="Up to so much later, by chance.")
@click.option("--until", metavar="WHEN", help="Not after this moment: ISO 8601, of --tz without a zone.")
@click.option("--replace", is_flag=True, help="Take the place of the schedule of that name.")
@job_options
def add(
    app: App,
    name: str,
    schedule: str,
    words: tuple[str, ...],
    tz: str | None,
    overlap: str,
    catch_up: str,
    jitter: str | None,
    until: str | None,
    replace: bool,
    **options: Any,
) -> Result:
    """Add a schedule: SCHEDULE says when, the rest what to run, as for enqueue and with its options.

    SCHEDULE is five fields as in crontab, six with seconds first, @hourly @daily @midnight @weekly @monthly @yearly
    @annually, or 'every 90s', counted from now. Names (MON, JAN), ranges, lists and steps are understood.
    """
    refuse_parents(options, "not for a schedule", hint=use.NO_PARENTS)
    flags = read_fields(options, app)
    wish = use.Wish(
        name,
        schedule,
        local_zone_name(app.environ) if tz is None else tz,
        _fields(words, flags),
        overlap=overlap,
        catch_up=catch_up,
        jitter=jitter,
        until=until,
        spelled=lambda field: f"--{field.replace('_', '-')}",
    )
    added = use.add(wish, _shop(app), replace=replace)
    return Sheet(lambda: added.to_dict(None), people=lambda: _added(app, added), id=added.name)


def _fields(words: tuple[str, ...], flags: dict[str, object]) -> dict[str, object]:
    if not words and "command" not in flags:
        raise UsageError("nothing to run", hint="say what: queuectl cron add NAME SCHEDULE 'echo hello'")
    intake = from_words(words, flags)
    if intake.is_batch:
        raise UsageError("a schedule has one job, and here is a list", hint="add a schedule for each of them")
    ((_, fields),) = intake
    return merge(fields, flags)


def _added(app: App, schedule: Schedule) -> Iterator[str]:
    reads, zone = app.open_reads(), zone_of(schedule)
    now_ms = reads.now_ms()
    yield f"{app.paint(printable(schedule.name), 'bold')}  {printable(command_of(schedule))}"
    for at in use.upcoming(reads, schedule.name, PREVIEW):
        yield f"  {clock_time(at, zone)}  {app.paint(age(at, now_ms), 'dim')}"


@command("list", examples="queuectl cron list")
def list_schedules(app: App) -> Result:
    """The schedules by name: when each was due last, how its job ended, and when it is due next."""
    reads = app.open_reads()
    return Table(
        use.list_schedules(reads),
        columns(reads.now_ms()),
        to_json=lambda one: one.schedule.to_dict(one.last),
        to_id=lambda one: str(one.schedule.name),
        empty="no schedules",
    )


@command("show", examples="queuectl cron show nightly")
@_name
@click.option("--show-env", is_flag=True, help="Show the values of its environment, not only the names.")
def show(app: App, name: str, show_env: bool) -> Result:
    """Everything about one schedule, and what became of its last times: which job, or why there was none."""
    reads = app.open_reads()
    shown = use.show(reads, name)
    value = {
        **shown.schedule.to_dict(shown.last, show_env=show_env),
        "ticks": [tick.to_dict() for tick in shown.ticks],
    }
    lines = lambda: schedule_sheet(app, shown, now_ms=reads.now_ms(), show_env=show_env)  # noqa: E731 - it is one line
    return Sheet(value, people=lines, id=name)


@command("next", examples="queuectl cron next nightly -n 10")
@_name
@click.option("-n", "--number", type=integer, default=5, metavar="N", help="How many; 5 if none is said.")
def next_times(app: App, name: str, number: int) -> Result:
    """When it will be due. Of one that is paused, when it would be."""
    if not 0 <= number <= use.MOST_PREVIEWED:
        raise InvalidInput("-n", f"not from 0 to {use.MOST_PREVIEWED:,}: {number}", hint="like -n 5")
    reads = app.open_reads()
    schedule = reads.schedule(name)
    zone, now_ms = zone_of(schedule), reads.now_ms()
    return Table(
        use.upcoming(reads, name, number),
        [Column("TIME", lambda at: clock_time(at, zone)), Column("IN", lambda at: age(at, now_ms), right=True)],
        to_json=moment,
        to_id=lambda at: str(moment(at)),
        empty="never again" if number else "nothing to show",
        footer="it is paused" if schedule.is_paused else None,
    )


@command("run", examples="queuectl wait $(queuectl cron run nightly)")
@_name
def run(app: App, name: str) -> Result:
    """Add its job now and print the id, whatever the plan is. The plan stays as it is."""
    return single(app, Queued(use.run(name, _shop(app)), is_duplicate=False))


@command("pause", examples="queuectl cron pause nightly")
@_names
def pause(app: App, names: tuple[str, ...]) -> Result:
    """Let schedules rest: nothing is due, and what would have been is not made up for later."""
    return _all(app, names, use.pause_all, verb="paused")


@command("resume", examples="queuectl cron resume nightly")
@_names
def resume(app: App, names: tuple[str, ...]) -> Result:
    """Go on with schedules that were paused, from now on."""
    return _all(app, names, use.resume_all, verb="resumed")


@command("remove", examples="queuectl cron remove nightly")
@_names
def remove(app: App, names: tuple[str, ...]) -> Result:
    """Remove schedules. Jobs that they have added stay, and run."""
    return _all(app, names, use.remove_all, verb="removed")


def _all(app: App, names: tuple[str, ...], act: Callable[[tuple[str, ...], use.Shop], Answer], *, verb: str) -> Done:
    answer = act(names, _shop(app))
    return Done(answer.done, refused=answer.refused, verb=verb)


def _shop(app: App) -> use.Shop:
    return use.Shop(
        reads=app.open_reads,
        open_store=app.open_store,
        defaults=lambda: Defaults.of(app.settings, cwd=working_directory(), by_queue=app.queue_defaults),
        chance=random.random,
    )
