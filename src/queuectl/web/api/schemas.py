"""The objects of the API, as JSON Schema: the same that every surface shows, see docs/reference/json.md."""

from __future__ import annotations

from typing import Any, Final

from queuectl.job.lifecycle import State

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(kind: str, **more: Any) -> Schema:
    return {"type": [kind, "null"], **more}


def array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def exactly(**properties: Schema) -> Schema:
    """An object that has all of these, and may get more in a later version."""
    return {"type": "object", "properties": properties, "required": list(properties)}


TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "number"}
WHOLE: Final[Schema] = {"type": "integer"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
FLAG: Final[Schema] = {"type": "boolean"}
MOMENT: Final[Schema] = {"type": "string", "format": "date-time"}
MOMENT_OR_NULL: Final[Schema] = maybe("string", format="date-time")
STATE: Final[Schema] = {"type": "string", "enum": [state.value for state in State]}
STATES: Final[Schema] = exactly(**{state.value: COUNT for state in State})

JOB: Final[Schema] = exactly(
    id=TEXT,
    command=maybe("string"),
    argv=maybe("array", items=TEXT),
    state=STATE,
    queue=TEXT,
    priority=WHOLE,
    effective_priority=WHOLE,
    attempts=COUNT,
    runs=COUNT,
    crashes=COUNT,
    max_retries=COUNT,
    backoff_base=NUMBER,
    timeout=maybe("number"),
    run_at=MOMENT_OR_NULL,
    created_at=MOMENT,
    updated_at=MOMENT,
    started_at=MOMENT_OR_NULL,
    finished_at=MOMENT_OR_NULL,
    duration_ms=maybe("integer"),
    wait_ms=maybe("integer"),
    exit_code=maybe("integer"),
    signal=maybe("integer"),
    error=maybe("string"),
    worker=maybe("string"),
    cwd=maybe("string"),
    env={"type": "object", "additionalProperties": TEXT, "description": "Values are never told: each is ***."},
    tags=array(TEXT),
    depends_on=array({}),
    unique_key=maybe("string"),
    cron=maybe("string"),
    held=FLAG,
    reason=maybe("string"),
    log=maybe("string"),
)

RUN: Final[Schema] = exactly(
    number={"type": "integer", "minimum": 1},
    worker=maybe("string"),
    host=maybe("string"),
    pid=maybe("integer"),
    started_at=MOMENT_OR_NULL,
    finished_at=MOMENT_OR_NULL,
    duration_ms=maybe("integer"),
    exit_code=maybe("integer"),
    signal=maybe("integer"),
    error=maybe("string"),
    outcome=TEXT,
)

# What enqueue takes: the rules themselves are those of job/spec.py, which names what is wrong better than a schema can.
NEW_JOB: Final[Schema] = {
    "type": "object",
    "description": "The fields of enqueue: command or argv, and what else is to hold. See docs/reference/json.md.",
    "properties": {
        "command": {"type": "string", "minLength": 1},
        "argv": {"type": "array", "items": TEXT, "minItems": 1},
        "id": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"},
        "queue": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"},
        "priority": {"type": "integer", "minimum": -1_000_000, "maximum": 1_000_000},
        "max_retries": {"type": "integer", "minimum": 0, "maximum": 1_000_000},
        "backoff_base": {"type": "number", "minimum": 1},
        "timeout": {"type": ["number", "string"]},
        "run_at": TEXT,
        "delay": {"type": ["number", "string"]},
        "cwd": TEXT,
        "env": {"type": "object", "additionalProperties": TEXT},
        "tags": {"type": "array", "items": TEXT, "maxItems": 32},
        "depends_on": {"type": "array"},
        "unique_key": TEXT,
    },
}

ANSWER: Final[Schema] = exactly(done=array(TEXT), refused=array(exactly(id=TEXT, code=TEXT, message=TEXT)))

SPREAD: Final[Schema] = exactly(
    count=COUNT, **{name: maybe("number") for name in ("avg", "min", "max", "p50", "p95", "p99")}
)

COMPONENTS: Final[dict[str, Schema]] = {
    "Job": JOB,
    "Run": RUN,
    "NewJob": NEW_JOB,
    "Answer": ANSWER,
    "Shown": {"allOf": [ref("Job"), exactly(history=array(ref("Run")), output=maybe("string"))]},
    "Enqueued": {"allOf": [ref("Job"), exactly(duplicate=FLAG)]},
    "Jobs": exactly(items=array(ref("Job")), next_cursor=maybe("string")),
    "Status": exactly(
        total=COUNT,
        states=STATES,
        workers=exactly(live=COUNT, slots=COUNT, busy=COUNT),
        queues=array(exactly(name=TEXT, paused=FLAG, states=STATES)),
        oldest_waiting_ms=maybe("integer"),
    ),
    "Metrics": exactly(
        total=COUNT,
        states=STATES,
        queues={"type": "object", "additionalProperties": STATES},
        success_rate=maybe("number"),
        average_attempts=maybe("number"),
        duration_ms=SPREAD,
        wait_ms=SPREAD,
        throughput=exactly(minute=COUNT, hour=COUNT, day=COUNT),
    ),
    "Worker": exactly(
        id=TEXT,
        host=TEXT,
        pid=WHOLE,
        state={"type": "string", "enum": ["running", "stopping", "lost"]},
        slots=COUNT,
        busy=COUNT,
        queues=maybe("array", items=TEXT),
        started_at=MOMENT,
        heartbeat_at=MOMENT,
        jobs_done=COUNT,
    ),
    "Setting": exactly(key=TEXT, value={}, default={}, source=TEXT),
    "Problem": {
        **exactly(type=TEXT, title=TEXT, status=WHOLE, detail=TEXT, code=TEXT, hint=TEXT),
        "description": "RFC 9457. `code` is a stable slug for programs, `hint` one line of what to do.",
    },
}
