"""The schemas of the API, by their names in the OpenAPI document. Those of jobs are generated from the job model and the job spec,
others from the classes whose values they describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from queuectl import text
from queuectl.alerts.operations import MAX_DEAD_JOBS
from queuectl.alerts.rules import AlertEvent, Kind
from queuectl.doctor import Repair
from queuectl.jobs import fields, resources
from queuectl.jobs.edit import EDITABLE
from queuectl.jobs.model import Job, Run, Worker
from queuectl.jobs.resources import Usage
from queuectl.jobs.spec import parse_hook, parse_secrets, parse_user_queue, readers
from queuectl.jobs.states import State
from queuectl.operations.inspect import Metrics, Status
from queuectl.secrets import rules
from queuectl.store.alerts import NotificationStatus

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(kind: str, **more: Any) -> Schema:
    return {"type": [kind, "null"], **more}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def exactly(**properties: Schema) -> Schema:
    """An object with all of these properties; later versions may add more."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def optional(**properties: Schema) -> Schema:
    """Optional properties; null is the same as omitting them."""
    return {name: _or_null(schema) for name, schema in properties.items()}


def only(*required: str, **properties: Schema) -> Schema:
    """The object of a request: these properties, no others. Those that are not required may be null."""
    given = {**{name: properties.pop(name) for name in required}, **optional(**properties)}
    found = {"type": "object", "additionalProperties": False, "properties": given}
    return {**found, "required": list(required)} if required else found


def _or_null(schema: Schema) -> Schema:
    if "type" not in schema:
        return {"oneOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    found = {**schema, "type": [*kinds, "null"]}
    return {**found, "enum": [*schema["enum"], None]} if "enum" in schema else found


TEXT: Final[Schema] = {"type": "string"}
NAME: Final[Schema] = {"type": "string", "minLength": 1}
ID: Final[Schema] = {"type": "string", "description": "An ID, a unique prefix of one, or `last`."}
NUMBER: Final[Schema] = {"type": "number"}
INTEGER: Final[Schema] = {"type": "integer"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
FLAG: Final[Schema] = {"type": "boolean"}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
TIME_OR_NULL: Final[Schema] = maybe("string", format="date-time")
DURATION: Final[Schema] = {
    "type": ["string", "number"],
    "description": "Seconds, or text such as `90s`, `1h30m` or `2d`.",
}
SIZE: Final[Schema] = {"type": ["string", "number"], "description": "Bytes, or text such as `512MiB` or `2GiB`."}
STATE: Final[Schema] = {"type": "string", "enum": [state.value for state in State]}
STATES: Final[Schema] = exactly(**{state.value: COUNT for state in State})
ENV: Final[Schema] = {
    "type": "object",
    "additionalProperties": TEXT,
    "description": "Values are redacted as `***`.",
}
DEPENDENCY: Final[Schema] = {"oneOf": [TEXT, exactly(id=TEXT)]}

LIMITS: Final[Schema] = {
    "type": "object",
    "additionalProperties": INTEGER,
    "description": "Resource limits of a run. Sizes are in bytes, `cpu_time` is in seconds.",
}


# ── generated from the job model ────────────────────────────────────────────────────────────────────────────────────

_BY_TYPE: Final[dict[Any, Schema]] = {
    str: TEXT,
    int: INTEGER,
    float: NUMBER,
    bool: FLAG,
    datetime: TIME,
    tuple[str, ...]: array(TEXT),
    Mapping[str, str]: {"type": "object", "additionalProperties": TEXT},
    dict[str, int]: STATES,
    dict[str, dict[str, int]]: {"type": "object", "additionalProperties": STATES},
}
_EXAMPLES: Final[dict[Any, Any]] = {str: "", datetime: datetime.fromtimestamp(0, UTC), Mapping[str, str]: {}}


def _of_type(hint: Any) -> Schema:
    options = [one for one in get_args(hint) if one is not NoneType] if isinstance(hint, UnionType) else [hint]
    first = NUMBER if float in options else _of_one_type(options[0])
    return _or_null(first) if isinstance(hint, UnionType) and NoneType in get_args(hint) else first


def _of_one_type(hint: Any) -> Schema:
    if get_origin(hint) is list:
        return array(_of_type(get_args(hint)[0]))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return {"type": "string", "enum": [one.value for one in hint]}
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        return of_class(hint)
    return _BY_TYPE.get(hint, {})


def of_class(kind: Any, *, without: tuple[str, ...] = ()) -> Schema:
    """The schema of statistics, which are serialized field by field. Their integers are counts."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if name not in without}
    return exactly(**{name: COUNT if hint is int else _of_type(hint) for name, hint in hints.items()})


def _example(hint: Any) -> Any:
    if isinstance(hint, UnionType):
        return None
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return next(iter(hint))
    return _EXAMPLES[hint] if hint in _EXAMPLES else () if get_origin(hint) is tuple else hint()


def record(kind: type[Job | Run | Worker], **overrides: Schema) -> Schema:
    """The schema of the object that `to_dict` of this class returns. `overrides`: schemas that its types do not express."""
    hints = get_type_hints(kind)
    example = kind(**{name: _example(hint) for name, hint in hints.items()})
    hints |= {name: get_type_hints(one.fget)["return"] for name, one in vars(kind).items() if isinstance(one, property)}
    return exactly(**{name: overrides.get(name) or _of_type(hints[name]) for name in example.to_dict()})


_USAGE: Final = {name: maybe("integer") for name in Usage._fields}
JOB: Final = record(
    Job,
    **dict.fromkeys(("attempts", "runs", "crashes", "max_retries"), COUNT),
    env=ENV,
    depends_on=array(DEPENDENCY),
    limits=LIMITS,
)
RUN: Final = record(Run, number={"type": "integer", "minimum": 1}, **_USAGE)
WORKER: Final = record(
    Worker,
    **dict.fromkeys(("slots", "busy", "jobs_done"), COUNT),
    state={"type": "string", "enum": ["running", "stopping", "lost"]},
)

# ── generated from the job spec ─────────────────────────────────────────────────────────────────────────────────────

_NAME: Final[Schema] = {"type": "string", "pattern": f"^{text.QUEUE_PATTERN}$"}
_KEY: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": fields.MAX_KEY_BYTES}
_RETRIES: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": fields.MAX_RETRIES}


# The schema of what each reader of the job spec accepts.
_BY_READER: Final[dict[Callable[..., object], Schema]] = {
    fields.command: {"type": "string", "minLength": 1},
    fields.argv: {"type": "array", "items": TEXT, "minItems": 1},
    fields.job_id: {"type": "string", "pattern": f"^{text.ID_PATTERN}$"},
    parse_user_queue: _NAME,
    fields.batch: _NAME,
    fields.priority: {"type": "integer", "minimum": -fields.MAX_PRIORITY, "maximum": fields.MAX_PRIORITY},
    fields.retries: _RETRIES,
    fields.backoff_base: {"type": "number", "minimum": 1},
    fields.timeout: DURATION,
    fields.timeout_in_ms: {"type": "integer", "minimum": 0, "description": "Milliseconds."},
    fields.delay: DURATION,
    fields.run_at: {"type": "string", "description": "ISO 8601. Default time zone: that of the server."},
    fields.cwd: {"type": "string", "minLength": 1},
    fields.env: {"type": "object", "additionalProperties": TEXT},
    fields.tags: {"type": "array", "items": TEXT, "maxItems": fields.MAX_TAGS},
    fields.depends_on: {**array(DEPENDENCY), "maxItems": fields.MAX_PARENTS},
    fields.unique_key: _KEY,
    fields.if_exists: {"type": "string", "enum": list(fields.IF_EXISTS)},
    fields.key: _KEY,
    fields.places: {"type": "integer", "minimum": 1, "maximum": fields.MAX_KEY_CONCURRENCY},
    parse_secrets: {"type": "array", "items": TEXT, "maxItems": rules.MAX_SECRETS},
    parse_hook: TEXT,
    resources.memory: SIZE,
    resources.cpu_time: DURATION,
    resources.nice: {"type": "integer", "minimum": -resources.MAX_NICE - 1, "maximum": resources.MAX_NICE},
    resources.open_files: {"type": "integer", "minimum": 0, "maximum": resources.MAX_OPEN_FILES},
    resources.processes: {"type": "integer", "minimum": 0, "maximum": resources.MAX_PROCESSES},
    resources.LIMITS["file_size"].read: SIZE,
}


def of_fields() -> Schema:
    """Properties for every field of the job spec, in its order."""
    found: Schema = {}
    for name, (preferred, reader) in readers().items():
        schema = _BY_READER.get(resources.LIMITS[name].read if name in resources.LIMITS else reader, {})
        if name != preferred:
            about = f"Instead of `{preferred}`. {schema.get('description', '')}".strip()
            schema = {**schema, "description": about}
        found[name] = schema
    return optional(**found)


_FIELDS: Final = of_fields()
_HOOKS: Final = ("on_success", "on_failure", "on_dead")
_OR_NONE: Final = "`none` removes the value."


def _or_none(schema: Schema) -> Schema:
    """The values of a field of a job, or the text that removes the default of a queue."""
    kinds = {"null", "string", *([schema["type"]] if isinstance(schema["type"], str) else schema["type"])}
    about = f"{schema.get('description', '')} {_OR_NONE}".strip()
    return {"type": sorted(kinds - {"null"}), "description": about}


# The settings of a queue: its limits, and the defaults for its jobs.
QUEUE_SETTINGS: Final[dict[str, Schema]] = {
    **dict.fromkeys(("concurrency", "per_key"), _or_none(INTEGER)),
    "rate": _or_none(TEXT),
    **{name: _or_none(_FIELDS[name]) for name in ("priority", "max_retries", "timeout", *resources.LIMITS, *_HOOKS)},
}
NEW_JOB: Final[Schema] = {
    "type": "object",
    "description": "A job to enqueue: `command` or `argv`, and other fields as needed. See docs/reference/json.md.",
    "properties": _FIELDS,
}
CHANGE: Final[Schema] = {
    "type": "object",
    "description": "Fields of a waiting job to change. `timeout: 0` removes the limit.",
    "properties": {name: _FIELDS[name] for name in EDITABLE},
}
NEW_SCHEDULE: Final[Schema] = {
    "type": "object",
    "description": "The schedule, its options, and the fields of its jobs.",
    "required": ["name", "schedule"],
    "properties": {
        "name": TEXT,
        "schedule": {**TEXT, "description": "A cron expression with five fields, or an interval such as `every 90s`."},
        **optional(
            tz={**TEXT, "description": "Default: the time zone of the server."},
            overlap={"type": "string", "enum": ["skip", "queue", "allow"]},
            catch_up={"type": "string", "description": "`none`, `one` or `all:N`."},
            jitter=DURATION,
            until=TEXT,
            replace=FLAG,
        ),
        **{
            name: _FIELDS[name] for name, (known, _) in readers().items() if known not in {"id", "run_at", "depends_on"}
        },
    },
}
_NOT_CHANGED: Final = ("name", "replace")
CHANGED_SCHEDULE: Final[Schema] = {
    "type": "object",
    "properties": {name: schema for name, schema in NEW_SCHEDULE["properties"].items() if name not in _NOT_CHANGED},
    "minProperties": 1,
}
NEW_ALERT: Final[Schema] = {
    **only(
        "name",
        name=TEXT,
        dead={"type": "integer", "minimum": 1, "maximum": MAX_DEAD_JOBS},
        queue=_NAME,
        **dict.fromkeys(("within", "oldest", "no_worker", "for", "repeat"), DURATION),
        webhook=TEXT,
        command=NAME,
    ),
    "description": "One condition (`dead`, `oldest` or `no_worker`) and one action (`webhook` or `command`). "
    "`command` is rejected with 403 unless the server was started with `--allow-alert-commands`.",
}
CHANGED_ALERT: Final[Schema] = {
    **NEW_ALERT,
    "properties": {name: schema for name, schema in NEW_ALERT["properties"].items() if name != "name"},
    "required": [],
    "minProperties": 1,
}

# ── responses ───────────────────────────────────────────────────────────────────────────────────────────────────────

TICK: Final[Schema] = exactly(
    **dict.fromkeys(("at", "decided_at"), TIME),
    **dict.fromkeys(("job", "error", "reason"), maybe("string")),
    state=_or_null(STATE),
    exit_code=maybe("integer"),
    times=COUNT,
    by_hand=FLAG,
)
SCHEDULE: Final[Schema] = exactly(
    **dict.fromkeys(("name", "schedule", "tz", "queue", "overlap", "catch_up"), TEXT),
    **dict.fromkeys(("command", "waiting"), maybe("string")),
    argv=maybe("array", items=TEXT),
    job={"type": "object"},
    jitter=NUMBER,
    paused=FLAG,
    **dict.fromkeys(("until", "next_at"), TIME_OR_NULL),
    last={"oneOf": [ref("Tick"), {"type": "null"}]},
    **dict.fromkeys(("created_at", "updated_at"), TIME),
)
ALERT: Final[Schema] = exactly(
    name=TEXT,
    kind={"type": "string", "enum": [kind.value for kind in Kind]},
    **dict.fromkeys(("threshold", "for"), NUMBER),
    **dict.fromkeys(("within", "repeat", "value"), maybe("number")),
    **dict.fromkeys(("queue", "webhook", "command"), maybe("string")),
    state={"type": "string", "enum": ["ok", "firing", "paused"]},
    **dict.fromkeys(("changed_at", "checked_at", "told_at"), TIME_OR_NULL),
    message={"type": ["string", "null"], "enum": [*(fate.value for fate in NotificationStatus), None]},
    untold=COUNT,
    created_at=TIME,
)
NOTIFICATION: Final[Schema] = exactly(
    at=TIME,
    event={"type": "string", "enum": list(AlertEvent)},
    text=TEXT,
    status={"type": "string", "enum": list(NotificationStatus)},
    job=TEXT,
    error=maybe("string"),
)
ANSWER: Final[Schema] = exactly(done=array(TEXT), refused=array(exactly(id=TEXT, code=TEXT, message=TEXT)))
PREVIEW: Final[Schema] = exactly(count=COUNT, states=STATES, sample=array(TEXT))
FINDING: Final[Schema] = exactly(code=TEXT, severity=TEXT, message=TEXT, hint=TEXT, fixable=FLAG)

COMPONENTS: Final[dict[str, Schema]] = {
    "Job": JOB,
    "Run": RUN,
    "NewJob": NEW_JOB,
    "Change": CHANGE,
    "Answer": ANSWER,
    "Preview": PREVIEW,
    "Acted": {"oneOf": [ref("Answer"), ref("Preview")]},
    "Shown": {"allOf": [ref("Job"), exactly(history=array(ref("Run")), output=maybe("string"))]},
    "Enqueued": {"allOf": [ref("Job"), exactly(duplicate=FLAG)]},
    "Jobs": {
        **exactly(
            items=array(ref("Job")),
            **dict.fromkeys(("next_cursor", "previous_cursor"), maybe("string")),
            before=COUNT,
            total=maybe("integer"),
            **dict.fromkeys(("total_is_exact", "is_partial"), FLAG),
        ),
        "description": "`before`: the number of jobs on earlier pages. `total`: how many jobs match, null without `count`; there may be "
        "more unless `total_is_exact`. `is_partial`: the search has stopped at its time limit, and `next_cursor` continues it.",
    },
    "Explanation": exactly(id=TEXT, state=STATE, queue=TEXT, reasons=array(exactly(code=TEXT, message=TEXT))),
    "Graph": exactly(
        id=TEXT,
        nodes=array(exactly(id=TEXT, state=STATE, queue=TEXT, command=maybe("string"), error=maybe("string"))),
        edges=array(exactly(parent=TEXT, child=TEXT, when=TEXT, state=TEXT)),
        more=FLAG,
    ),
    "LogLines": exactly(first=COUNT, lines=array(TEXT), total=COUNT),
    "LogMatches": exactly(items=array(exactly(line=COUNT, text=TEXT)), next_line=maybe("integer")),
    "Status": of_class(Status, without=("lost", "firing")),
    "Metrics": of_class(Metrics),
    "Queue": exactly(
        name=TEXT,
        paused=FLAG,
        states=STATES,
        **dict.fromkeys(("concurrency", "per_key", "priority", "max_retries"), maybe("integer")),
        **dict.fromkeys(("rate", *_HOOKS), maybe("string")),
        **dict.fromkeys(("timeout", "rate_now"), maybe("number")),
        limits=LIMITS,
        next_start_at=TIME_OR_NULL,
    ),
    "Batch": exactly(
        name=TEXT,
        **dict.fromkeys(("jobs", "done", "failed", "running", "waiting", "removed"), COUNT),
        states=STATES,
        rate=maybe("number"),
        left_ms=maybe("integer"),
        created_at=TIME,
        completed_at=TIME_OR_NULL,
        **dict.fromkeys(("on_complete", "on_complete_job"), maybe("string")),
    ),
    "Schedule": SCHEDULE,
    "ScheduleShown": {"allOf": [ref("Schedule"), exactly(ticks=array(ref("Tick")))]},
    "NewSchedule": NEW_SCHEDULE,
    "ScheduleChange": CHANGED_SCHEDULE,
    "Tick": TICK,
    "Alert": ALERT,
    "AlertShown": {"allOf": [ref("Alert"), exactly(notifications=array(NOTIFICATION))]},
    "Worker": WORKER,
    "Setting": exactly(key=TEXT, value={}, default={}, source=TEXT),
    "Checkup": exactly(
        home=TEXT,
        store=TEXT,
        problems=COUNT,
        notes=COUNT,
        fixed=array(of_class(Repair)),
        checks=array(exactly(check=TEXT, status=TEXT, message=maybe("string"), findings=array(FINDING))),
    ),
    "Problem": {
        **exactly(type=TEXT, title=TEXT, status=INTEGER, detail=TEXT, code=TEXT, hint=TEXT),
        "description": "RFC 9457. `code` is a stable identifier, `hint` suggests an action.",
    },
}
