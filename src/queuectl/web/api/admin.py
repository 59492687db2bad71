"""Status, metrics and history; settings; doctor and prune."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from queuectl import config
from queuectl.config import environ
from queuectl.diagnosis import open_for_diagnosis
from queuectl.errors import InvalidInput
from queuectl.jobs.serialize import point_to_dict
from queuectl.jobs.states import FINAL, State
from queuectl.jobs.stats import ALL_QUEUES, OTHER_QUEUES, Counts, Span
from queuectl.maintenance import pruner as use
from queuectl.maintenance.doctor.checks import examine, fix, report
from queuectl.operations import inspect
from queuectl.operations.query import parse_filter, restrict_states
from queuectl.operations.queues import check_queue
from queuectl.settings import SettingEntry, retention
from queuectl.text import short_repr
from queuectl.units import parse_duration_ms
from queuectl.web.api.operation import (
    PAGING,
    WHERE_SCHEMA,
    ApiRequest,
    Operation,
    Param,
    listing,
    paginate,
    parse_flag,
    parse_object,
    parse_where,
)
from queuectl.web.schemas import COUNT, DURATION, FLAG, TEXT, TIME, array, exactly, maybe, optional, ref
from queuectl.web.store_threads import StoreSession


def list_settings(session: StoreSession, call: ApiRequest) -> Any:
    return paginate(call, [_shown(entry) for entry in session.settings.entries()], name="key")


def get_setting(session: StoreSession, call: ApiRequest) -> Any:
    return _shown(session.settings.entry(call.path["key"]))


def set_setting(session: StoreSession, call: ApiRequest) -> Any:
    value = parse_object(call.body, "body", known=["value"]).get("value")
    if isinstance(value, dict | list) or value is None:
        hint = 'like {"value": 5} or {"value": "1h30m"}'
        raise InvalidInput("value", f"expected text, a number or a boolean, got {short_repr(value)}", hint=hint)
    return _change(session, call.path["key"], str(value).lower() if isinstance(value, bool) else str(value))


def unset_setting(session: StoreSession, call: ApiRequest) -> Any:
    return _change(session, call.path["key"], None)


def reset_settings(session: StoreSession, call: ApiRequest) -> Any:
    return {"unset": config.reset_settings(reads=lambda: session.reads, open_store=session.open_store)}


def _change(session: StoreSession, key: str, value: str | None) -> Any:
    (name,) = config.store_settings({key: value}, reads=lambda: session.reads, open_store=session.open_store)
    return _shown(session.settings.entry(name))


def _shown(entry: SettingEntry) -> dict[str, Any]:
    return {"key": entry.key, "value": entry.value, "default": entry.default, "source": entry.source}


_SETTING_OPERATIONS: Final = (
    Operation(
        "GET",
        "/config",
        list_settings,
        "List settings with the source of each value.",
        listing(ref("Setting")),
        PAGING,
        tag="config",
    ),
    Operation(
        "DELETE",
        "/config",
        reset_settings,
        "Reset all settings to their defaults.",
        exactly(unset=array(TEXT)),
        tag="config",
    ),
    Operation("GET", "/config/{key}", get_setting, "Show a setting.", ref("Setting"), tag="config"),
    Operation(
        "PUT",
        "/config/{key}",
        set_setting,
        "Change a setting for all users of this database.",
        ref("Setting"),
        body=exactly(value={"type": ["string", "number", "boolean"]}),
        tag="config",
    ),
    Operation(
        "DELETE", "/config/{key}", unset_setting, "Reset a setting to its default.", ref("Setting"), tag="config"
    ),
)


def doctor(session: StoreSession, call: ApiRequest) -> Any:
    return _examine(session, to_fix=False)


def doctor_fix(session: StoreSession, call: ApiRequest) -> Any:
    return _examine(session, to_fix=True)


def _examine(session: StoreSession, *, to_fix: bool) -> dict[str, Any]:
    look = partial(open_for_diagnosis, session.home, lambda: session.db, environ=environ(), clock=session.clock)
    with look() as found:
        checked = examine(found)
        fixed = fix(checked) if to_fix else []
    if fixed:
        with look() as found:
            checked = examine(found)
    return report(found, checked, fixed)


def prune(session: StoreSession, call: ApiRequest) -> Any:
    """Like the command: without `older_than`, prune the matching jobs by the retention settings."""
    body = parse_object(call.body, "body", known=["older_than", "where", "dry_run"])
    dry_run = parse_flag(body, "dry_run")
    older = body.get("older_than")
    age = None if older is None else parse_duration_ms(older, subject="older_than")
    where = restrict_states(parse_where(body.get("where"), session.reads), FINAL, done="pruned", subject="state")
    only = None
    if not where.names_states_only:
        only = frozenset(job.id for job in session.reads.choose(where))
    ages = retention(session.settings) if age is None else dict.fromkeys(FINAL, age)
    ages = {state: ages[state] for state in State if state in where.states}
    plan = use.Plan.by_age(ages, now_ms=session.reads.now_ms(), only=only)
    # Without jobs to prune, do not create a database.
    is_empty = not any(use.count(session.reads, plan).values())
    done = use.foresee(session.reads, plan) if dry_run or is_empty else session.prune(plan)
    jobs = {state.value: done.jobs.get(state, 0) for state in State if state in FINAL}
    return {"dry_run": dry_run, "jobs": jobs, "logs": done.logs._asdict()}


_PRUNED: Final = exactly(
    dry_run=FLAG,
    jobs=exactly(**{state.value: COUNT for state in State if state in FINAL}),
    logs=exactly(files=COUNT, bytes=COUNT, elsewhere=COUNT),
)

_MAINTENANCE_OPERATIONS: Final = (
    Operation(
        "GET",
        "/doctor",
        doctor,
        "Run the diagnostic checks.",
        ref("Checkup"),
        tag="maintenance",
        slow=True,
    ),
    Operation(
        "POST",
        "/doctor/fix",
        doctor_fix,
        "Fix what is safe to fix, and check again.",
        ref("Checkup"),
        tag="maintenance",
        slow=True,
    ),
    Operation(
        "POST",
        "/prune",
        prune,
        "Remove ended jobs with history and logs, by age; `dry_run` only counts them.",
        _PRUNED,
        body={
            "type": "object",
            "additionalProperties": False,
            "properties": optional(older_than=DURATION, where=WHERE_SCHEMA, dry_run=FLAG),
        },
        tag="maintenance",
        slow=True,
    ),
)


def status(session: StoreSession, call: ApiRequest) -> Any:
    return inspect.status(session.reads, is_alive=session.is_serving()).to_dict()


def metrics(session: StoreSession, call: ApiRequest) -> Any:
    return inspect.metrics(session.reads).to_dict()


def history(session: StoreSession, call: ApiRequest) -> Any:
    """The stored points, or those since a time: about two thousand at most."""
    queue, since = call.query["queue"], call.query["since"]
    queue = ALL_QUEUES if queue is None else queue if queue == OTHER_QUEUES else check_queue(queue)
    begin = parse_filter(since=since, now_ms=session.reads.now_ms).since_ms
    points = session.reads.points(Span(call.query["span"]), since_ms=begin or 0, queue=queue)
    return [point_to_dict(point) for point in points]


_TIMES: Final = exactly(count=COUNT, **{name: maybe("number") for name in ("avg", "p50", "p95", "p99")})
_POINT: Final = {
    **exactly(
        at=TIME,
        covers_ms={**COUNT, "description": "Longer than the span if no sample was taken before."},
        **dict.fromkeys(Counts._fields, COUNT),
        waiting=COUNT,
        running=COUNT,
        oldest_waiting_ms=maybe("integer"),
        duration_ms=_TIMES,
        wait_ms=_TIMES,
    ),
    "description": "Events until the sample in the minute or hour that begins at `at`, and the state at that time.",
}

_STATUS_OPERATIONS: Final = (
    Operation("GET", "/status", status, "Job counts by state, and workers.", ref("Status"), tag="status"),
    Operation(
        "GET",
        "/metrics",
        metrics,
        "Success rate, durations, waiting times and throughput.",
        ref("Metrics"),
        tag="status",
    ),
    Operation(
        "GET",
        "/history",
        history,
        "The data of the charts: one point per minute of the last day, or per hour of the last 90 days, oldest first.",
        array(_POINT),
        (
            Param("span", "The length of a point.", {"type": "string", "enum": list(Span), "default": "minute"}),
            Param("since", "Points since this time: a time, or a duration before now."),
            Param(
                "queue", f"Only this queue; {OTHER_QUEUES} for all but the busiest ones. Default: all queues together."
            ),
        ),
        tag="status",
    ),
)

OPERATIONS: Final = (*_STATUS_OPERATIONS, *_SETTING_OPERATIONS, *_MAINTENANCE_OPERATIONS)
