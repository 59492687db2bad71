"""What is said about queues, schedules, alerts, and what is to run at the end of a batch, as records of their own beside those of
jobs: what export writes and import reads.

Such a record says its `kind`, which no job has. New rule of a queue? It is read by the reader that `queue set` has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, RuleDiffers, UnknownName
from queuectl.job.alert import Alert
from queuectl.job.cron.expression import parse_expression
from queuectl.job.cron.model import Schedule, moment, parse_catch_up, parse_overlap
from queuectl.job.cron.ticks import timetable
from queuectl.job.duration import parse_duration_ms
from queuectl.job.fields import batch as check_batch
from queuectl.job.fields import schedule as check_name
from queuectl.job.fields import text
from queuectl.job.hooks import hidden, parse_hooks, urls_of
from queuectl.job.limits import Rules, rules_to_dict
from queuectl.job.moment import parse_moment_ms
from queuectl.job.nearest import nearest
from queuectl.job.newjob import NO_URLS, NewJob
from queuectl.job.past import with_own_origin
from queuectl.job.record import HIDDEN
from queuectl.job.shown import cut, shown
from queuectl.job.spec import Defaults, validate
from queuectl.queue.alerts import Wish
from queuectl.queue.alerts import read as read_alert
from queuectl.queue.queues import check_queue, read_rules
from queuectl.store.porting import Said
from queuectl.store.protocol import Reads
from queuectl.zones import find_zone

KIND: Final = "kind"
QUEUE: Final = "queue"
SCHEDULE: Final = "schedule"
ALERT: Final = "alert"
BATCH: Final = "batch"

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
_FIXED_OF_ALERTS: Final = ("kind", "threshold", "within_ms", "queue", "for_ms", "repeat_ms", "url", "command", "cwd")
_OF_ALERTS: Final = (
    "dead", "oldest", "no_worker", "within", "queue", "for", "repeat", "webhook", "command", "cwd", "created_at",
)  # fmt: skip
_OF_LAST_JOBS: Final = (
    "command", "queue", "priority", "max_retries", "backoff_base", "timeout", "cwd", "first_attempt_is_free", "hooks",
)  # fmt: skip


class Portable(NamedTuple):
    """By name, what is there beside jobs."""

    queues: dict[str, Rules]
    schedules: dict[str, Schedule]
    alerts: dict[str, Alert]
    batches: dict[str, NewJob]  # what is to run when all of it has ended

    @classmethod
    def empty(cls) -> Portable:
        return cls({}, {}, {}, {})


def export_rules(store: Reads, *, show_env: bool) -> Iterator[dict[str, Any]]:
    for name, rules in sorted(store.rules().items()):
        yield {KIND: QUEUE, "name": name, "paused": rules.paused, **rules_to_dict(rules, show_urls=show_env)}
    for one in store.schedules():
        value = one.to_dict(None, show_env=show_env)
        value["anchor_at"] = moment(one.anchor_ms)
        yield {KIND: SCHEDULE, **{name: value[name] for name in _OF_SCHEDULES}}
    for alert in store.alerts():
        yield {KIND: ALERT, "name": alert.name, **_said_of(alert, show_url=show_env)}
    for batch, (job, is_queued) in sorted(store.last_jobs().items()):
        if not is_queued:
            yield {KIND: BATCH, "name": batch, "on_complete": _fields_of(job, show_urls=show_env)}


def _said_of(alert: Alert, *, show_url: bool) -> dict[str, Any]:
    shown_as = alert.to_dict()
    return {
        alert.kind.name.lower(): alert.plain(alert.threshold),
        **{name: shown_as[name] for name in ("within", "queue", "for", "repeat")},
        "webhook": alert.url if show_url else shown_as["webhook"],
        "command": alert.command,
        "cwd": alert.cwd,
        "created_at": shown_as["created_at"],
    }


def _fields_of(job: NewJob, *, show_urls: bool) -> dict[str, Any]:
    """All of them, so that it is the same job wherever it comes in."""
    value: dict[str, Any] = {name: getattr(job, name) for name in ("command", "queue", "priority", "max_retries")}
    timeout = 0 if job.timeout_ms is None else job.timeout_ms / 1000
    value |= {"backoff_base": job.backoff_base, "timeout": timeout, "cwd": job.cwd}
    if job.first_is_free:
        value["first_attempt_is_free"] = True
    if job.hooks:
        value["hooks"] = job.hooks if show_urls else hidden(job.hooks)
    return value


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
        case "alert":
            alert = _alert(name, rest, cwd=defaults.cwd, now_ms=now_ms)
            _refuse_twice(alert.name, into.alerts, ALERT)
            into.alerts[alert.name] = alert
        case "batch":
            batch = check_batch(name, "name")
            _refuse_twice(batch, into.batches, BATCH)
            into.batches[batch] = _last_job(batch, rest, defaults)
        case other:
            known = f"{QUEUE}, {SCHEDULE}, {ALERT}, {BATCH}"
            raise InvalidInput(KIND, f"not known: {shown(other)}", hint=f"{known}, or none: it is a job")


def leave_out_known(said: Portable, there: Said) -> Portable:
    """Without what is there already. Raises RuleDiffers if something else is there under a name."""
    queues, schedules = there.rules(), {one.name: one for one in there.schedules()}
    alerts, batches = {one.name: one for one in there.alerts()}, there.last_jobs()
    return Portable(
        _new(QUEUE, said.queues, queues, Rules._fields),
        _new(SCHEDULE, said.schedules, schedules, _FIXED),
        _new(ALERT, said.alerts, alerts, _FIXED_OF_ALERTS),
        _new(BATCH, said.batches, {name: job for name, (job, _) in batches.items()}, NewJob._fields, _by_url),
    )


def _by_url(job: NewJob) -> NewJob:
    """Without the origin of its hooks, which import decides by the rules and settings of the time."""
    return job._replace(hooks=urls_of(job.hooks))


def _new(
    kind: str,
    said: Mapping[str, Any],
    there: Mapping[str, Any],
    fixed: Sequence[str],
    comparable: Callable[[Any], Any] = lambda one: one,
) -> dict[str, Any]:
    for name, given in said.items():
        one, other = comparable(given), comparable(there.get(name, given))
        if field := next((field for field in fixed if getattr(one, field) != getattr(other, field)), None):
            raise RuleDiffers(kind, name, field)
    return {name: one for name, one in said.items() if name not in there}


def _refuse_twice(name: str, there: Mapping[str, object], kind: str) -> None:
    if name in there:
        raise InvalidInput("name", f"the {kind} {name!r} is in it twice", hint="leave one of the two away")


def _refuse_unknown(said: Mapping[str, object], known: Sequence[str]) -> None:
    for field in said:
        if field not in known:
            raise UnknownName("field", cut(field), nearest=nearest(cut(field), known), known=list(known))


def _alert(name: object, said: Mapping[str, object], *, cwd: str, now_ms: int) -> Alert:
    """Nothing of how it stood: it is to be found out anew."""
    _refuse_unknown(said, _OF_ALERTS)
    if (where := said.get("cwd")) is not None:
        cwd = text(where, "cwd", example='like "/srv"')
    asked: dict[str, Any] = {field: said.get(field) for field in _OF_ALERTS[:-2]}
    wish = Wish(name, hold=asked.pop("for"), **asked)
    found = read_alert(wish, cwd=cwd, now_ms=now_ms)
    return found._replace(created_ms=_moment(said, "created_at", now_ms))


def _last_job(batch: str, said: Mapping[str, object], defaults: Defaults) -> NewJob:
    _refuse_unknown(said, ("on_complete",))
    job = said.get("on_complete")
    if not isinstance(job, dict):
        hint = "what runs when all of the batch has ended: a command and its fields"
        raise InvalidInput("on_complete", f"expected an object, got {shown(job)}", hint=hint)
    _refuse_unknown(job, _OF_LAST_JOBS)
    is_free, hooks = job.get("first_attempt_is_free", False), job.get("hooks")
    if not isinstance(is_free, bool):
        problem = f"expected true or false, got {shown(is_free)}"
        raise InvalidInput("first_attempt_is_free", problem, hint='like "first_attempt_is_free": true')
    fields = {name: value for name, value in job.items() if name not in ("first_attempt_is_free", "hooks")}
    made = validate({**fields, "batch": batch}, defaults._replace(first_is_free=is_free, by_queue={}, urls=NO_URLS))
    found = None if hooks is None else parse_hooks(hooks, "hooks")
    return made._replace(hooks=with_own_origin(found, made.queue, defaults))


def _schedule(name: str, said: Mapping[str, object], defaults: Defaults, *, now_ms: int) -> Schedule:
    _refuse_unknown(said, _OF_SCHEDULES)
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
