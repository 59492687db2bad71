"""Add, list, pause, resume, remove and run schedules. Input is validated before anything is created or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.cron.expression import normalize, parse_expression, require_a_run, timetable
from queuectl.cron.schedule import (
    Overlap,
    PastRun,
    RunContext,
    Schedule,
    ScheduleChange,
    ScheduleView,
    format_time,
    parse_catch_up,
    parse_overlap,
    pause,
    resume,
    run_now,
    set_next,
)
from queuectl.cron.zones import find_zone
from queuectl.errors import Conflict, InvalidInput, NotFound, ScheduleNotFound
from queuectl.errors.jobs import NotFired
from queuectl.jobs.fields import schedule as check_name
from queuectl.jobs.fields import text
from queuectl.jobs.model import BulkResult, Refusal
from queuectl.jobs.spec import Defaults, validate
from queuectl.store.enqueue import new_job_ids
from queuectl.store.reads import Reads
from queuectl.store.schedules import RUNS_KEPT, Rule
from queuectl.store.store import Store
from queuectl.units import parse_duration_ms, parse_time_ms

MAX_PREVIEWED_RUNS: Final = 1000

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
    runs = _run_context(schedule, defaults, context)
    schedule = set_next(schedule, runs, after_ms=now)
    if not replace:
        store.schedules.add(schedule)
        return schedule
    try:
        store.schedules.change(request.name, lambda view: ScheduleChange(_in_place_of(view.schedule, schedule)))
    except ScheduleNotFound:
        store.schedules.add(schedule)
    return store.schedules.get(request.name)


def start_imported(schedule: Schedule, defaults: Defaults, *, now_ms: int, chance: Callable[[], float]) -> Schedule:
    """An imported schedule with its next run."""
    if schedule.is_paused:
        return schedule
    zone = find_zone(schedule.tz, subject="tz")
    runs = RunContext.of(schedule, defaults, zone=zone, chance=chance, new_id=lambda: new_job_ids(1)[0])
    return set_next(schedule, runs, after_ms=now_ms)


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
    result = BulkResult([], [])
    for name in dict.fromkeys(names):
        try:
            context.reads().schedules.get(name)  # raises before a database is created
            act(name)
        except (NotFound, Conflict) as error:
            result.refused.append(Refusal(name, error))
        else:
            result.done.append(name)
    return result


def _change(
    name: str, context: CronContext, decide: Callable[[ScheduleView, RunContext], ScheduleChange | None]
) -> ScheduleChange | None:
    context.reads().schedules.get(name)
    defaults = context.defaults()
    rule: Rule = lambda view: decide(view, _run_context(view.schedule, defaults, context))  # noqa: E731 - it is one line
    return context.open_store().schedules.change(name, rule)


def _run_context(schedule: Schedule, defaults: Defaults, context: CronContext) -> RunContext:
    zone = find_zone(schedule.tz, subject="tz")
    return RunContext.of(schedule, defaults, zone=zone, chance=context.chance, new_id=lambda: new_job_ids(1)[0])
