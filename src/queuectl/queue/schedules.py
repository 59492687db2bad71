"""Schedules: adding, looking, changing. What is wrong is found before anything is made or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import Conflict, InvalidInput, NotFound, ScheduleNotFound
from queuectl.errors.flow import NotFired
from queuectl.job.cron.expression import normalise, parse_expression
from queuectl.job.cron.fire import Means, fire_by_hand, pause, resume, set_next
from queuectl.job.cron.model import (
    Change,
    Overlap,
    PastTick,
    Schedule,
    View,
    moment,
    parse_catch_up,
    parse_overlap,
)
from queuectl.job.cron.ticks import require_a_tick, timetable
from queuectl.job.duration import parse_duration_ms
from queuectl.job.fields import schedule as check_name
from queuectl.job.fields import text
from queuectl.job.moment import parse_moment_ms
from queuectl.job.spec import Defaults, validate
from queuectl.queue.pick import Answer, Refusal
from queuectl.store.ids import new_job_ids
from queuectl.store.protocol import Reads, Store
from queuectl.store.scheduling import TICKS_KEPT, Rule
from queuectl.zones import find_zone

MOST_PREVIEWED: Final = 1000

NO_PARENTS: Final = (
    "it makes its jobs later, when those named now may be gone; let the job itself enqueue what comes after"
)
_ONE_TIME: Final = {
    "id": "each job has an id of its own",
    "run_at": "the schedule says when; use delay to come later",
    "depends_on": NO_PARENTS,
    "after": NO_PARENTS,
}
_RUN_AT: Final = ("run_at", "available_at", "run_after", "next_run_at")


class Wish(NamedTuple):
    """A schedule as somebody asks for it, in words. `spelled` makes the name of an option of the name of a field."""

    name: str
    expression: str
    tz: str
    fields: Mapping[str, Any]
    overlap: str = Overlap.SKIP.value
    catch_up: str = "one"
    jitter: object = None
    until: object = None
    spelled: Callable[[str], str] = str


class Shown(NamedTuple):
    """A schedule, the latest tick of it that has a job, and all that is known of its ticks, the latest first."""

    schedule: Schedule
    last: PastTick | None
    ticks: Sequence[PastTick] = ()


class Shop(NamedTuple):
    """What these use-cases work with. Opening may make the home, so it comes last; looking makes nothing."""

    reads: Callable[[], Reads]
    open_store: Callable[[], Store]
    defaults: Callable[[], Defaults]
    chance: Callable[[], float]


# ── add ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def add(wish: Wish, shop: Shop, *, replace: bool = False) -> Schedule:
    """Raises ScheduleExists for a name that is taken, unless it is to be replaced: then what was decided about its ticks stays."""
    defaults = shop.defaults()
    schedule = _read(wish, defaults, now_ms=shop.reads().now_ms())
    store = shop.open_store()
    # By the clock of the store from here on, which may be another.
    now = store.now_ms()
    schedule = schedule._replace(anchor_ms=now, created_ms=now, updated_ms=now)
    means = _means(schedule, defaults, shop)
    schedule = set_next(schedule, means, after_ms=now)
    if not replace:
        store.add_schedule(schedule)
        return schedule
    try:
        store.change_schedule(wish.name, lambda view: Change(_in_place_of(view.schedule, schedule)))
    except ScheduleNotFound:
        store.add_schedule(schedule)
    return store.schedule(wish.name)


def begin(schedule: Schedule, defaults: Defaults, *, now_ms: int, chance: Callable[[], float]) -> Schedule:
    """A schedule that comes from elsewhere, with the first time that it has here."""
    if schedule.is_paused:
        return schedule
    zone = find_zone(schedule.tz, subject="tz")
    means = Means.of(schedule, defaults, zone=zone, chance=chance, new_id=lambda: new_job_ids(1)[0])
    return set_next(schedule, means, after_ms=now_ms)


def _in_place_of(old: Schedule, new: Schedule) -> Schedule:
    # A job that waits for the one before still has to be let go by somebody.
    look = new.look_ms if old.waiting is None else new.updated_ms
    return new._replace(created_ms=old.created_ms, waiting=old.waiting, look_ms=look)


def _read(wish: Wish, defaults: Defaults, *, now_ms: int) -> Schedule:
    spelled = wish.spelled
    check_name(wish.name, "name")
    for field, value in (("schedule", wish.expression), ("tz", wish.tz)):
        text(value, field if field == "schedule" else spelled(field), example="as in: queuectl cron add --help")
    expression = parse_expression(wish.expression)
    zone = find_zone(wish.tz, subject=spelled("tz"))
    fields = {name: value for name, value in wish.fields.items() if value is not None}
    for name, why in _ONE_TIME.items():
        for spelling in _RUN_AT if name == "run_at" else (name,):
            if spelling in fields:
                raise InvalidInput(spelled(spelling), "not for a schedule", hint=why)
    if fields.get("if_exists") == "error":
        hint = "nobody is there to be told: with skip such a time is left out, and queuectl cron show says why"
        raise InvalidInput(spelled("if_exists"), "error is not for a schedule", hint=hint)
    fields["cwd"] = validate(fields, defaults).cwd
    jitter_ms = 0 if wish.jitter is None else parse_duration_ms(wish.jitter, subject=spelled("jitter"))
    until_ms = None if wish.until is None else parse_moment_ms(wish.until, subject=spelled("until"), local=zone)
    first = require_a_tick(timetable(expression, zone=zone, anchor_ms=now_ms), wish.expression, after_ms=now_ms)
    if until_ms is not None and until_ms < first:
        hint = f"the first time after now would be {moment(first)}"
        raise InvalidInput(spelled("until"), f"{moment(until_ms)} comes before it could fire once", hint=hint)
    return Schedule(
        name=wish.name,
        expression=normalise(wish.expression),
        tz=wish.tz,
        anchor_ms=now_ms,
        fields=fields,
        overlap=parse_overlap(wish.overlap, subject=spelled("overlap")),
        catch_up=parse_catch_up(wish.catch_up, subject=spelled("catch_up")),
        jitter_ms=jitter_ms,
        until_ms=until_ms,
        is_paused=False,
        created_ms=now_ms,
        updated_ms=now_ms,
    )


# ── look ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def list_schedules(reads: Reads) -> list[Shown]:
    return [Shown(schedule, _last(reads, schedule.name)) for schedule in reads.schedules()]


def show(reads: Reads, name: str) -> Shown:
    return Shown(reads.schedule(name), _last(reads, name), reads.ticks(name, limit=TICKS_KEPT))


def upcoming(reads: Reads, name: str, count: int) -> list[int]:
    """Its next ticks; of one that is paused, those it would have."""
    schedule = reads.schedule(name)
    zone = find_zone(schedule.tz, subject="tz")
    next_tick = timetable(parse_expression(schedule.expression), zone=zone, anchor_ms=schedule.anchor_ms)
    found: list[int] = []
    tick = schedule.tick_ms or next_tick(max(reads.now_ms(), schedule.last_ms or 0))
    while tick is not None and len(found) < count and (schedule.until_ms is None or tick <= schedule.until_ms):
        found.append(tick)
        tick = next_tick(tick)
    return found


def _last(reads: Reads, name: str) -> PastTick | None:
    return next(iter(reads.ticks(name, limit=1, fired=True)), None)


# ── change ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(name: str, shop: Shop) -> str:
    """Add its job now, and return the id. Raises ScheduleNotFound, or NotFired if another job has its unique key."""
    change = _change(name, shop, fire_by_hand)
    assert change is not None
    (tick,) = change.ticks
    if tick.job is None:
        raise NotFired(name, str(tick.reason))
    return str(tick.job.id)


def pause_all(names: Iterable[str], shop: Shop) -> Answer:
    return _each(names, shop, lambda name: shop.open_store().change_schedule(name, pause))


def resume_all(names: Iterable[str], shop: Shop) -> Answer:
    return _each(names, shop, lambda name: _change(name, shop, resume))


def remove_all(names: Iterable[str], shop: Shop) -> Answer:
    return _each(names, shop, lambda name: shop.open_store().remove_schedule(name))


def _each(names: Iterable[str], shop: Shop, act: Callable[[str], object]) -> Answer:
    answer = Answer([], [])
    for name in dict.fromkeys(names):
        try:
            shop.reads().schedule(name)  # where there is none, no store is made to say so
            act(name)
        except (NotFound, Conflict) as error:
            answer.refused.append(Refusal(name, error))
        else:
            answer.done.append(name)
    return answer


def _change(name: str, shop: Shop, decide: Callable[[View, Means], Change | None]) -> Change | None:
    shop.reads().schedule(name)
    defaults = shop.defaults()
    rule: Rule = lambda view: decide(view, _means(view.schedule, defaults, shop))  # noqa: E731 - it is one line
    return shop.open_store().change_schedule(name, rule)


def _means(schedule: Schedule, defaults: Defaults, shop: Shop) -> Means:
    zone = find_zone(schedule.tz, subject="tz")
    return Means.of(schedule, defaults, zone=zone, chance=shop.chance, new_id=lambda: new_job_ids(1)[0])
