"""Add, list, pause, resume, remove and run schedules. Input is validated before anything is created or written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from queuectl.cron.expression import normalize, parse_expression, require_a_run, timetable
from queuectl.cron.schedule import (
    Overlap,
    PastRun,
    RunContext,
    Schedule,
    ScheduleChange,
    ScheduleView,
    format_catch_up,
    format_time,
    parse_catch_up,
    parse_overlap,
    pause,
    resume,
    run_now,
    set_next,
)
from queuectl.errors import InvalidInput, ScheduleNotFound, UsageError, ZonesMissing
from queuectl.errors.jobs import NotFired
from queuectl.jobs.fields import schedule as check_name
from queuectl.jobs.fields import text
from queuectl.jobs.model import BulkResult
from queuectl.jobs.spec import Defaults, validate
from queuectl.store.enqueue import new_job_ids
from queuectl.store.reads import Reads
from queuectl.store.schedules import RUNS_KEPT
from queuectl.store.store import Store
from queuectl.text import closest_match, short_repr
from queuectl.units import parse_duration_ms, parse_time_ms, to_seconds

MAX_PREVIEWED_RUNS: Final = 1000
NO_VALUE: Final = "none"  # removes a value

NO_PARENTS: Final = (
    "its jobs are added later, when these parents may have been removed; let the job itself enqueue the next one"
)
_FIELDS_OF_ONE_JOB: Final = {
    "id": "each job has an id of its own",
    "run_at": "the schedule sets the time; use delay to start later",
    "depends_on": NO_PARENTS,
    "after": NO_PARENTS,
}
_RUN_AT: Final = ("run_at", "available_at", "run_after", "next_run_at")


class ScheduleRequest(NamedTuple):
    """The input for a new schedule. `spelled` turns the name of a field into that of an option."""

    name: str
    expression: str
    tz: str
    fields: Mapping[str, Any]
    overlap: str = Overlap.SKIP.value
    catch_up: str = "one"
    jitter: object = None
    until: object = None
    spelled: Callable[[str], str] = str


class ScheduleDetails(NamedTuple):
    """A schedule, its latest run with a job, and its past runs, the latest first."""

    schedule: Schedule
    last: PastRun | None
    ticks: Sequence[PastRun] = ()


class CronContext(NamedTuple):
    """What these operations work with. `open_store` may create the data directory, so it is called last; `reads` creates nothing."""

    reads: Callable[[], Reads]
    open_store: Callable[[], Store]
    defaults: Callable[[], Defaults]
    chance: Callable[[], float]


# ── add ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def add(request: ScheduleRequest, context: CronContext, *, replace: bool = False) -> Schedule:
    """Add a schedule. Raises ScheduleExists for an existing name without `replace`; with it, the past runs are kept."""
    defaults = context.defaults()
    schedule = _parse_request(request, defaults, now_ms=context.reads().now_ms())
    store = context.open_store()
    # From here on by the clock of the store, which may differ.
    now = store.now_ms()
    schedule = schedule._replace(anchor_ms=now, created_ms=now, updated_ms=now)
    schedule = set_next(schedule, run_context(schedule, defaults, context.chance), after_ms=now)
    if not replace:
        store.schedules.add(schedule)
        return schedule
    try:
        store.schedules.change(request.name, lambda view: ScheduleChange(_in_place_of(view.schedule, schedule)))
    except ScheduleNotFound:
        store.schedules.add(schedule)
    return store.schedules.get(request.name)


class ScheduleEdit(NamedTuple):
    """What to change of a schedule; None: unchanged. The text "none" removes `jitter` and `until`."""

    schedule: str | None = None
    tz: str | None = None
    overlap: str | None = None
    catch_up: str | None = None
    jitter: object = None
    until: object = None
    fields: Mapping[str, Any] = {}  # of the job; None removes a field
    spelled: Callable[[str], str] = str


def edit(name: str, change: ScheduleEdit, context: CronContext) -> Schedule:
    """Change a schedule. Its next run changes if its times do; a paused one stays paused. Raises ScheduleNotFound,
    InvalidInput or UsageError."""
    if not change.fields and all(value is None for value in change[:6]):
        raise UsageError(f"nothing to change in the schedule {name!r}", hint=f"for example, {change.spelled('tz')} UTC")
    defaults, now_ms = context.defaults(), context.reads().now_ms()
    _parse_request(_merged(change, context.reads().schedules.get(name)), defaults, now_ms=now_ms)  # before open_store

    def rule(view: ScheduleView) -> ScheduleChange:
        old, now = view.schedule, view.now_ms
        new = _parse_request(_merged(change, old), defaults, now_ms=now)
        anchor_ms = old.anchor_ms if new.expression == old.expression else now
        new = new._replace(anchor_ms=anchor_ms, created_ms=old.created_ms, is_paused=old.is_paused)
        new = new._replace(last_ms=old.last_ms, waiting=old.waiting)
        if all(getattr(new, part) == getattr(old, part) for part in ("expression", "tz", "jitter_ms", "until_ms")):
            return ScheduleChange(new._replace(tick_ms=old.tick_ms, start_ms=old.start_ms, look_ms=old.look_ms))
        new = set_next(new, run_context(new, defaults, context.chance), after_ms=max(now, old.last_ms or 0))
        return ScheduleChange(
            new if old.waiting is None else new._replace(look_ms=now)
        )  # a held job still has to be released

    store = context.open_store()
    store.schedules.change(name, rule)
    return store.schedules.get(name)


def _merged(change: ScheduleEdit, old: Schedule) -> ScheduleRequest:
    fields = dict(old.fields) | dict(change.fields)
    if change.fields.get("command") is not None:
        fields.pop("argv", None)
    jitter = to_seconds(old.jitter_ms) if change.jitter is None else change.jitter
    until = format_time(old.until_ms) if change.until is None else change.until
    return ScheduleRequest(
        old.name,
        change.schedule or old.expression,
        change.tz or old.tz,
        fields,
        overlap=change.overlap or old.overlap.value,
        catch_up=change.catch_up or format_catch_up(old.catch_up),
        jitter=None if jitter == NO_VALUE else jitter,
        until=None if until == NO_VALUE else until,
        spelled=change.spelled,
    )


def start_imported(schedule: Schedule, defaults: Defaults, *, now_ms: int) -> Schedule:
    """An imported schedule with its next run."""
    if schedule.is_paused:
        return schedule
    return set_next(schedule, run_context(schedule, defaults, lambda: 0.5), after_ms=now_ms)


def _in_place_of(old: Schedule, new: Schedule) -> Schedule:
    # A held job still has to be released.
    check_ms = new.look_ms if old.waiting is None else new.updated_ms
    return new._replace(created_ms=old.created_ms, waiting=old.waiting, look_ms=check_ms)


def _parse_request(request: ScheduleRequest, defaults: Defaults, *, now_ms: int) -> Schedule:
    spelled = request.spelled
    check_name(request.name, "name")
    for field, value in (("schedule", request.expression), ("tz", request.tz)):
        text(value, field if field == "schedule" else spelled(field), example="as in: queuectl cron add --help")
    expression = parse_expression(request.expression)
    zone = find_zone(request.tz, subject=spelled("tz"))
    fields = {name: value for name, value in request.fields.items() if value is not None}
    for name, why in _FIELDS_OF_ONE_JOB.items():
        for spelling in _RUN_AT if name == "run_at" else (name,):
            if spelling in fields:
                raise InvalidInput(spelled(spelling), "not for a schedule", hint=why)
    if fields.get("if_exists") == "error":
        hint = "a schedule has no caller to report it to: with skip no job is added, and queuectl cron show says why"
        raise InvalidInput(spelled("if_exists"), "error is not for a schedule", hint=hint)
    fields["cwd"] = validate(fields, defaults).cwd
    jitter_ms = 0 if request.jitter is None else parse_duration_ms(request.jitter, subject=spelled("jitter"))
    until_ms = None if request.until is None else parse_time_ms(request.until, subject=spelled("until"), local=zone)
    first = require_a_run(timetable(expression, zone=zone, anchor_ms=now_ms), request.expression, after_ms=now_ms)
    if until_ms is not None and until_ms < first:
        hint = f"the first time after now would be {format_time(first)}"
        raise InvalidInput(spelled("until"), f"{format_time(until_ms)} is before its first run", hint=hint)
    return Schedule(
        name=request.name,
        expression=normalize(request.expression),
        tz=request.tz,
        anchor_ms=now_ms,
        fields=fields,
        overlap=parse_overlap(request.overlap, subject=spelled("overlap")),
        catch_up=parse_catch_up(request.catch_up, subject=spelled("catch_up")),
        jitter_ms=jitter_ms,
        until_ms=until_ms,
        is_paused=False,
        created_ms=now_ms,
        updated_ms=now_ms,
    )


# ── list ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_schedules(reads: Reads) -> list[ScheduleDetails]:
    return [ScheduleDetails(schedule, _last(reads, schedule.name)) for schedule in reads.schedules.all()]


def show(reads: Reads, name: str) -> ScheduleDetails:
    return ScheduleDetails(reads.schedules.get(name), _last(reads, name), reads.schedules.runs(name, limit=RUNS_KEPT))


def upcoming(reads: Reads, name: str, count: int) -> list[int]:
    """Its next runs; of a paused schedule, those it would have."""
    schedule = reads.schedules.get(name)
    zone = find_zone(schedule.tz, subject="tz")
    next_run = timetable(parse_expression(schedule.expression), zone=zone, anchor_ms=schedule.anchor_ms)
    found: list[int] = []
    tick = schedule.tick_ms or next_run(max(reads.now_ms(), schedule.last_ms or 0))
    while tick is not None and len(found) < count and (schedule.until_ms is None or tick <= schedule.until_ms):
        found.append(tick)
        tick = next_run(tick)
    return found


def _last(reads: Reads, name: str) -> PastRun | None:
    return next(iter(reads.schedules.runs(name, limit=1, fired=True)), None)


# ── change ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(name: str, context: CronContext) -> str:
    """Add its job now and return the ID. Raises ScheduleNotFound, or NotFired if another job has its unique key."""
    change = _change(name, context, run_now)
    assert change is not None
    (tick,) = change.ticks
    if tick.job is None:
        raise NotFired(name, str(tick.reason))
    return str(tick.job.id)


def pause_all(names: Iterable[str], context: CronContext) -> BulkResult:
    return _each(names, context, lambda name: context.open_store().schedules.change(name, pause))


def resume_all(names: Iterable[str], context: CronContext) -> BulkResult:
    return _each(names, context, lambda name: _change(name, context, resume))


def remove_all(names: Iterable[str], context: CronContext) -> BulkResult:
    # A lambda: a missing schedule must not create a database.
    return _each(names, context, lambda name: context.open_store().schedules.remove(name))  # noqa: PLW0108


def _each(names: Iterable[str], context: CronContext, act: Callable[[str], object]) -> BulkResult:
    def change(name: str) -> None:
        context.reads().schedules.get(name)  # raises before a database is created
        act(name)

    return BulkResult.of_each(names, change)


def _change(
    name: str, context: CronContext, decide: Callable[[ScheduleView, RunContext], ScheduleChange | None]
) -> ScheduleChange | None:
    context.reads().schedules.get(name)
    defaults = context.defaults()
    return context.open_store().schedules.change(
        name, lambda view: decide(view, run_context(view.schedule, defaults, context.chance))
    )


def run_context(
    schedule: Schedule, defaults: Defaults, chance: Callable[[], float], *, since_ms: int = 0
) -> RunContext:
    """`since_ms`: when the scheduler started."""
    zone = find_zone(schedule.tz, subject="tz")
    next_run = timetable(parse_expression(schedule.expression), zone=zone, anchor_ms=schedule.anchor_ms)
    return RunContext(next_run, validate(schedule.fields, defaults), chance, lambda: new_job_ids(1)[0], since_ms)


# ── time zones ──────────────────────────────────────────────────────────────────────────────────────────────────────


# Available without a time zone database, which some hosts lack.
_ALWAYS: Final = frozenset({"UTC", "Etc/UTC", "GMT", "Etc/GMT", "Zulu"})
_FOLDER: Final = "zoneinfo/"


def find_zone(name: str, *, subject: str = "--tz") -> tzinfo:
    """The zone of this name. Raises InvalidInput for `subject` if there is none, ZonesMissing without a time zone database."""
    if name in _ALWAYS:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # the last two: names like ../x, and directories
        known = available_timezones()
        if not known:
            raise ZonesMissing(name) from error
        meant = closest_match(name, known)
        hint = f"did you mean {meant!r}?" if meant else "a name like Europe/Berlin or UTC"
        raise InvalidInput(subject, f"unknown time zone {short_repr(name)}", hint=hint) from error


def local_zone_name(environ: Mapping[str, str]) -> str:
    """The zone of this host: from TZ, else from /etc. Raises InvalidInput if TZ is not the name of a zone."""
    given = environ.get("TZ", "").removeprefix(":")
    for name in (_from_path(given), given) if given else (_from_path(_local_time()), _from_file(), "UTC"):
        if name and _is_known(name):
            return name
    hint = "name the zone of the schedule: --tz Europe/Berlin"
    raise InvalidInput("TZ", f"{short_repr(given)} is not the name of a time zone", hint=hint)


def _is_known(name: str) -> bool:
    try:
        find_zone(name)
    except (InvalidInput, ZonesMissing):
        return False
    return True


def _local_time() -> str:
    return os.path.realpath("/etc/localtime")


def _from_path(path: str) -> str:
    """`/usr/share/zoneinfo/Europe/Berlin` -> Europe/Berlin."""
    return path.rpartition(_FOLDER)[2] if _FOLDER in path else ""


def _from_file() -> str:
    try:
        with open("/etc/timezone", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""
