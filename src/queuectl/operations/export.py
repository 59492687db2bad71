"""Export jobs, queue settings, schedules, alerts and batches as records that `import` accepts.

A record that is not a job has a `kind`.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from queuectl.alerts.operations import AlertRequest
from queuectl.alerts.operations import parse_alert as read_alert
from queuectl.alerts.rules import Alert
from queuectl.cron.expression import parse_expression, timetable
from queuectl.cron.operations import find_zone
from queuectl.cron.schedule import Schedule, format_time, parse_catch_up, parse_overlap
from queuectl.errors import FileExists, FileUnwritable, InvalidInput, RuleDiffers
from queuectl.jobs.fields import batch as check_batch
from queuectl.jobs.fields import flag, text
from queuectl.jobs.fields import schedule as check_name
from queuectl.jobs.import_record import with_own_origin
from queuectl.jobs.model import HIDDEN_VALUE
from queuectl.jobs.queue_limits import QueueSettings, rules_to_dict
from queuectl.jobs.spec import NO_URLS, Defaults, NewJob, validate
from queuectl.operations.enqueue import Advance, ignore_progress
from queuectl.operations.queues import check_queue, parse_rules
from queuectl.store.reads import Reads
from queuectl.store.types import Filter
from queuectl.text import short_repr, unknown_name
from queuectl.units import parse_duration_ms, parse_time_ms
from queuectl.webhooks.rules import parse_hooks, redact_hooks, urls_of

SPOOL_CHUNK_BYTES: Final = 2**16
# Errors of file systems without hard links.
_NO_LINK_ERRNOS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class ExportFormat(StrEnum):
    JSON = "json"  # one array, one job per line
    JSONL = "jsonl"  # one job per line


def export_jobs(
    store: Reads, where: Filter, *, history: bool, show_env: bool, advance: Advance = ignore_progress
) -> Iterator[dict[str, Any]]:
    """A snapshot of the jobs that match, in the order of enqueue, with all fields that `show` prints except the output.

    Webhook deliveries are included only if their queue is named: import does not accept them.
    """
    total = store.count(where)
    for number, (job, runs) in enumerate(store.export(where, history=history), 1):
        value = job.to_dict(show_env=show_env)
        if job.first_is_free:
            # Only exported: without it, import would reduce the number of attempts by one.
            value["first_attempt_is_free"] = True
        if job.places is not None:
            value["places"] = job.places
        if job.hooks:
            value["hooks"] = job.hooks if show_env else redact_hooks(job.hooks)
        if history:
            value["history"] = [run.to_dict() for run in runs]
        advance(number, total)
        yield value


def format_records(values: Iterable[dict[str, Any]], form: ExportFormat) -> Iterator[str]:
    """The text in pieces; the end of an array is only written if all records were."""
    if form is ExportFormat.JSONL:
        for value in values:
            yield json.dumps(value, ensure_ascii=False) + "\n"
        return
    opening = "["
    for value in values:
        yield f"{opening}\n{json.dumps(value, ensure_ascii=False)}"
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"


def spool(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, from a temporary file that holds all of them before the first is returned.

    Jobs are exported as they are at one moment, in one read transaction. A reader that pauses must not keep it open, or the
    write-ahead log of SQLite grows until it continues.
    """
    import tempfile

    try:
        with tempfile.TemporaryFile() as file:
            file.writelines(pieces)
            file.seek(0)
            while chunk := file.read(SPOOL_CHUNK_BYTES):
                yield chunk
    except OSError as exc:
        raise FileUnwritable(tempfile.gettempdir(), exc.strerror or str(exc)) from exc


def write_new_file(path: str, pieces: Iterable[str]) -> None:
    """Write a new file, readable by its owner only, that appears under its name when it is complete and synced."""
    if os.path.lexists(path):
        raise FileExists(path)
    part = f"{path}.{os.getpid()}.part"
    try:
        fd = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as exc:
        raise FileUnwritable(path, exc.strerror or str(exc)) from exc
    with published(part, path), open(fd, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(fd)


@contextmanager
def published(part: str, path: str) -> Iterator[None]:
    """Give a file its name when the block has completed it; else remove it. Raises FileExists or FileUnwritable."""
    try:
        yield
        _publish(part, path)
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError as exc:
        raise FileExists(path) from exc
    except OSError as exc:
        raise FileUnwritable(path, exc.strerror or str(exc)) from exc
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)


def _publish(part: str, path: str) -> None:
    # link, not rename: it never replaces a file that was created meanwhile.
    try:
        os.link(part, path)
    except OSError as exc:
        if exc.errno not in _NO_LINK_ERRNOS:
            raise
        os.rename(part, path)


T = TypeVar("T")

KIND: Final = "kind"
QUEUE: Final = "queue"
SCHEDULE: Final = "schedule"
ALERT: Final = "alert"
BATCH: Final = "batch"

_SCHEDULE_FIELDS: Final = (
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
# Fields that have to be equal for an existing schedule or alert to count as the same.
_SCHEDULE_IDENTITY: Final = ("expression", "tz", "fields", "overlap", "catch_up", "jitter_ms", "until_ms")
_ALERT_IDENTITY: Final = ("kind", "threshold", "within_ms", "queue", "for_ms", "repeat_ms", "url", "command", "cwd")
_ALERT_FIELDS: Final = (
    "dead", "oldest", "no_worker", "within", "queue", "for", "repeat", "webhook", "command", "cwd", "paused",
    "created_at",
)  # fmt: skip
_ON_COMPLETE_FIELDS: Final = (
    "command", "queue", "priority", "max_retries", "backoff_base", "timeout", "cwd", "first_attempt_is_free", "hooks",
)  # fmt: skip


class ConfigRecords(NamedTuple):
    """All records except jobs, by name."""

    queues: dict[str, QueueSettings]
    schedules: dict[str, Schedule]
    alerts: dict[str, Alert]
    batches: dict[str, NewJob]  # the job of --on-complete

    @classmethod
    def empty(cls) -> ConfigRecords:
        return cls({}, {}, {}, {})


def export_config(store: Reads, *, show_env: bool) -> Iterator[dict[str, Any]]:
    for name, rules in sorted(store.queues.rules().items()):
        yield {KIND: QUEUE, "name": name, "paused": rules.paused, **rules_to_dict(rules, show_urls=show_env)}
    for one in store.schedules.all():
        value = one.to_dict(None, show_env=show_env)
        value["anchor_at"] = format_time(one.anchor_ms)
        yield {KIND: SCHEDULE, **{name: value[name] for name in _SCHEDULE_FIELDS}}
    for alert in store.alerts.all():
        yield {KIND: ALERT, "name": alert.name, **_alert_record(alert, show_url=show_env)}
    for batch, (job, is_queued) in sorted(store.batches.completion_jobs().items()):
        if not is_queued:
            yield {KIND: BATCH, "name": batch, "on_complete": _on_complete_record(job, show_urls=show_env)}


def _alert_record(alert: Alert, *, show_url: bool) -> dict[str, Any]:
    shown_as = alert.to_dict()
    return {
        alert.kind.name.lower(): alert.plain(alert.threshold),
        **{name: shown_as[name] for name in ("within", "queue", "for", "repeat")},
        "webhook": alert.url if show_url else shown_as["webhook"],
        "command": alert.command,
        "cwd": alert.cwd,
        "paused": alert.is_paused,
        "created_at": shown_as["created_at"],
    }


def _on_complete_record(job: NewJob, *, show_urls: bool) -> dict[str, Any]:
    """All fields, so that defaults of the importing host do not apply."""
    value: dict[str, Any] = {name: getattr(job, name) for name in ("command", "queue", "priority", "max_retries")}
    timeout = 0 if job.timeout_ms is None else job.timeout_ms / 1000
    value |= {"backoff_base": job.backoff_base, "timeout": timeout, "cwd": job.cwd}
    if job.first_is_free:
        value["first_attempt_is_free"] = True
    if job.hooks:
        value["hooks"] = job.hooks if show_urls else redact_hooks(job.hooks)
    return value


def parse_config_record(fields: Mapping[str, object], into: ConfigRecords, defaults: Defaults, *, now_ms: int) -> None:
    """Add a record to `into`. Raises InvalidInput or UnknownName, which name the field."""
    rest = {name: value for name, value in fields.items() if name != KIND}
    name = rest.pop("name", None)
    match fields[KIND]:
        case "queue":
            queue = check_queue(text(name, "name", example='like "mail"'))
            _add(QUEUE, into.queues, queue, parse_rules(rest))
        case "schedule":
            found = _parse_schedule(check_name(name, "name"), rest, defaults, now_ms=now_ms)
            _add(SCHEDULE, into.schedules, found.name, found)
        case "alert":
            alert = _parse_alert(name, rest, cwd=defaults.cwd, now_ms=now_ms)
            _add(ALERT, into.alerts, alert.name, alert)
        case "batch":
            batch = check_batch(name, "name")
            _add(BATCH, into.batches, batch, _parse_on_complete(batch, rest, defaults))
        case other:
            known = f"{QUEUE}, {SCHEDULE}, {ALERT}, {BATCH}"
            raise InvalidInput(KIND, f"not known: {short_repr(other)}", hint=f"{known}, or none: it is a job")


def without_existing(given: ConfigRecords, there: Reads) -> ConfigRecords:
    """The records without those that exist already. Raises RuleDiffers for an existing name with other content."""
    queues, schedules = there.queues.rules(), {one.name: one for one in there.schedules.all()}
    alerts, batches = {one.name: one for one in there.alerts.all()}, there.batches.completion_jobs()
    return ConfigRecords(
        _find_new(QUEUE, given.queues, queues, QueueSettings._fields),
        _find_new(SCHEDULE, given.schedules, schedules, _SCHEDULE_IDENTITY),
        _find_new(ALERT, given.alerts, alerts, _ALERT_IDENTITY),
        _find_new(
            BATCH,
            given.batches,
            {name: job for name, (job, _) in batches.items()},
            NewJob._fields,
            # The origin of webhooks depends on the settings at the time of the import.
            lambda job: job._replace(hooks=urls_of(job.hooks)),
        ),
    )


def _find_new(
    kind: str,
    records: Mapping[str, Any],
    there: Mapping[str, Any],
    fixed: Sequence[str],
    comparable: Callable[[Any], Any] = lambda one: one,
) -> dict[str, Any]:
    for name, record in records.items():
        one, other = comparable(record), comparable(there.get(name, record))
        if field := next((field for field in fixed if getattr(one, field) != getattr(other, field)), None):
            raise RuleDiffers(kind, name, field)
    return {name: one for name, one in records.items() if name not in there}


def _add(kind: str, records: dict[str, T], name: str, record: T) -> None:
    if name in records:
        raise InvalidInput("name", f"the {kind} {name!r} is in it twice", hint="omit one of the two")
    records[name] = record


def _require_known(given: Mapping[str, object], known: Sequence[str]) -> None:
    for field in given:
        if field not in known:
            raise unknown_name("field", field, known)


def _parse_alert(name: object, given: Mapping[str, object], *, cwd: str, now_ms: int) -> Alert:
    """Without its state, which the evaluator finds out."""
    _require_known(given, _ALERT_FIELDS)
    if (where := given.get("cwd")) is not None:
        cwd = text(where, "cwd", example='like "/srv"')
    asked: dict[str, Any] = {field: given.get(field) for field in _ALERT_FIELDS[:-3]}
    request = AlertRequest(name, hold=asked.pop("for"), **asked)
    found = read_alert(request, cwd=cwd, now_ms=now_ms)
    is_paused = given.get("paused") is not None and flag(given["paused"], "paused")
    return found._replace(created_ms=_parse_time(given, "created_at", now_ms), is_paused=is_paused)


def _parse_on_complete(batch: str, given: Mapping[str, object], defaults: Defaults) -> NewJob:
    _require_known(given, ("on_complete",))
    job = given.get("on_complete")
    if not isinstance(job, dict):
        hint = "what runs when all of the batch has ended: a command and its fields"
        raise InvalidInput("on_complete", f"expected an object, got {short_repr(job)}", hint=hint)
    _require_known(job, _ON_COMPLETE_FIELDS)
    is_free, hooks = job.get("first_attempt_is_free", False), job.get("hooks")
    is_free = flag(is_free, "first_attempt_is_free")
    fields = {name: value for name, value in job.items() if name not in ("first_attempt_is_free", "hooks")}
    made = validate({**fields, "batch": batch}, defaults._replace(first_is_free=is_free, by_queue={}, urls=NO_URLS))
    found = None if hooks is None else parse_hooks(hooks, "hooks")
    return made._replace(hooks=with_own_origin(found, made.queue, defaults))


def _parse_schedule(name: str, given: Mapping[str, object], defaults: Defaults, *, now_ms: int) -> Schedule:
    _require_known(given, _SCHEDULE_FIELDS)
    expression = text(given.get("schedule"), "schedule", example='like "@hourly"')
    zone = find_zone(text(given.get("tz"), "tz", example='like "UTC"'), subject="tz")
    job = given.get("job")
    if not isinstance(job, dict):
        raise InvalidInput(
            "job", f"expected an object, got {short_repr(job)}", hint="the fields of the job, as for enqueue"
        )
    fields = {**job, "cwd": validate(job, defaults).cwd}
    if HIDDEN_VALUE in (fields.get("env") or {}).values():
        hint = "values of the environment are only in a file that export itself has made: queuectl db export FILE"
        raise InvalidInput("job.env", "the export hides a value", hint=hint)
    until, paused = given.get("until"), flag(given.get("paused", False), "paused")
    anchor = _parse_time(given, "anchor_at", now_ms)
    timetable(parse_expression(expression), zone=zone, anchor_ms=anchor)  # raises for an invalid schedule
    return Schedule(
        name=name,
        expression=expression,
        tz=str(given["tz"]),
        anchor_ms=anchor,
        fields=fields,
        overlap=parse_overlap(str(given.get("overlap", "skip")), subject="overlap"),
        catch_up=parse_catch_up(str(given.get("catch_up", "one")), subject="catch_up"),
        jitter_ms=parse_duration_ms(given.get("jitter", 0), subject="jitter"),
        until_ms=None if until is None else parse_time_ms(until, subject="until", local=zone),
        is_paused=paused,
        created_ms=_parse_time(given, "created_at", now_ms),
        updated_ms=now_ms,
    )


def _parse_time(given: Mapping[str, object], name: str, otherwise: int) -> int:
    value = given.get(name)
    return otherwise if value is None else parse_time_ms(value, subject=name, local=None)
