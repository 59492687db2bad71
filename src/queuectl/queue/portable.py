"""What is said about queues, and schedules, as records of their own beside those of jobs: what export writes and import reads.

Such a record says its `kind`, which no job has. New rule of a queue? It is read by the reader that `queue set` has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, RuleDiffers, UnknownName
from queuectl.job.cron.expression import parse_expression
from queuectl.job.cron.model import Schedule, moment, parse_catch_up, parse_overlap
from queuectl.job.cron.ticks import timetable
from queuectl.job.duration import parse_duration_ms
from queuectl.job.fields import schedule as check_name
from queuectl.job.fields import text
from queuectl.job.limits import Rules, rules_to_dict
from queuectl.job.moment import parse_moment_ms
from queuectl.job.nearest import nearest
from queuectl.job.record import HIDDEN
from queuectl.job.shown import cut, shown
from queuectl.job.spec import Defaults, validate
from queuectl.queue.queues import check_queue, read_rules
from queuectl.store.protocol import Reads
from queuectl.zones import find_zone

KIND: Final = "kind"
QUEUE: Final = "queue"
SCHEDULE: Final = "schedule"

_OF_SCHEDULES: Final = (
    "name",
    "schedule",
    "tz",
    "anchor_at",
    "job",
    "overlap",
    "catch_up",
    "jitter",
    "until",
    "paused",
    "created_at",
)
# What makes two schedules of one name the same: not what becomes of them.
_FIXED: Final = ("expression", "tz", "fields", "overlap", "catch_up", "jitter_ms", "until_ms")


class Portable(NamedTuple):
    """By name, what is there beside jobs."""

    queues: dict[str, Rules]
    schedules: dict[str, Schedule]


def export_rules(store: Reads, *, show_env: bool) -> Iterator[dict[str, Any]]:
    for name, rules in sorted(store.rules().items()):
        yield {KIND: QUEUE, "name": name, "paused": rules.paused, **rules_to_dict(rules, show_urls=show_env)}
    for one in store.schedules():
        value = one.to_dict(None, show_env=show_env)
        value["anchor_at"] = moment(one.anchor_ms)
        yield {KIND: SCHEDULE, **{name: value[name] for name in _OF_SCHEDULES}}


def read_portable(fields: Mapping[str, object], into: Portable, defaults: Defaults, *, now_ms: int) -> None:
    """Raises InvalidInput or UnknownName, which name the field."""
    rest = {name: value for name, value in fields.items() if name != KIND}
    name = rest.pop("name", None)
    match fields[KIND]:
        case "queue":
            queue = check_queue(text(name, "name", example='like "mail"'))
            _refuse_twice(queue, into.queues, QUEUE)
            into.queues[queue] = read_rules(rest)
        case "schedule":
            found = _schedule(check_name(name, "name"), rest, defaults, now_ms=now_ms)
            _refuse_twice(found.name, into.schedules, SCHEDULE)
            into.schedules[found.name] = found
        case other:
            raise InvalidInput(KIND, f"not known: {shown(other)}", hint=f"{QUEUE}, {SCHEDULE}, or none: it is a job")


def leave_out_known(said: Portable, queues: Mapping[str, Rules], schedules: Mapping[str, Schedule]) -> Portable:
    """Without what is there already. Raises RuleDiffers if something else is there under a name."""
    for name, rules in said.queues.items():
        there = queues.get(name, rules)
        if field := next((field for field in Rules._fields if getattr(rules, field) != getattr(there, field)), None):
            raise RuleDiffers(QUEUE, name, field)
    for name, one in said.schedules.items():
        other = schedules.get(name, one)
        if field := next((field for field in _FIXED if getattr(one, field) != getattr(other, field)), None):
            raise RuleDiffers(SCHEDULE, name, field)
    return Portable(
        {name: rules for name, rules in said.queues.items() if name not in queues},
        {name: one for name, one in said.schedules.items() if name not in schedules},
    )


def _refuse_twice(name: str, there: Mapping[str, object], kind: str) -> None:
    if name in there:
        raise InvalidInput("name", f"the {kind} {name!r} is in it twice", hint="leave one of the two away")


def _schedule(name: str, said: Mapping[str, object], defaults: Defaults, *, now_ms: int) -> Schedule:
    for field in said:
        if field not in _OF_SCHEDULES:
            meant = nearest(cut(field), _OF_SCHEDULES)
            raise UnknownName("field", cut(field), nearest=meant, known=list(_OF_SCHEDULES))
    expression = text(said.get("schedule"), "schedule", example='like "@hourly"')
    zone = find_zone(text(said.get("tz"), "tz", example='like "UTC"'), subject="tz")
    job = said.get("job")
    if not isinstance(job, dict):
        raise InvalidInput("job", f"expected an object, got {shown(job)}", hint="the fields of the job, as for enqueue")
    fields = {**job, "cwd": validate(job, defaults).cwd}
    if HIDDEN in (fields.get("env") or {}).values():
        hint = "values of the environment are only in a file that export itself has made: queuectl export FILE"
        raise InvalidInput("job.env", "a value was left out of this export", hint=hint)
    until, paused = said.get("until"), said.get("paused", False)
    if not isinstance(paused, bool):
        raise InvalidInput("paused", f"expected true or false, got {shown(paused)}", hint='like "paused": false')
    anchor = _moment(said, "anchor_at", now_ms)
    timetable(parse_expression(expression), zone=zone, anchor_ms=anchor)  # that it has one
    return Schedule(
        name=name,
        expression=expression,
        tz=str(said["tz"]),
        anchor_ms=anchor,
        fields=fields,
        overlap=parse_overlap(str(said.get("overlap", "skip")), subject="overlap"),
        catch_up=parse_catch_up(str(said.get("catch_up", "one")), subject="catch_up"),
        jitter_ms=parse_duration_ms(said.get("jitter", 0), subject="jitter"),
        until_ms=None if until is None else parse_moment_ms(until, subject="until", local=zone),
        is_paused=paused,
        created_ms=_moment(said, "created_at", now_ms),
        updated_ms=now_ms,
    )


def _moment(said: Mapping[str, object], name: str, otherwise: int) -> int:
    value = said.get(name)
    return otherwise if value is None else parse_moment_ms(value, subject=name, local=None)
