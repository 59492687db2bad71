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


def optional(**properties: Schema) -> Schema:
    """Properties that may be left away; null says the same."""
    return {name: _or_null(schema) for name, schema in properties.items()}


def _or_null(schema: Schema) -> Schema:
    if "type" not in schema:
        return {"oneOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    found = {**schema, "type": [*kinds, "null"]}
    return {**found, "enum": [*schema["enum"], None]} if "enum" in schema else found


TEXT: Final[Schema] = {"type": "string"}
WORD: Final[Schema] = {"type": "string", "minLength": 1}
ID: Final[Schema] = {"type": "string", "description": "An id, the beginning of one, or `last`."}
NUMBER: Final[Schema] = {"type": "number"}
WHOLE: Final[Schema] = {"type": "integer"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
FLAG: Final[Schema] = {"type": "boolean"}
MOMENT: Final[Schema] = {"type": "string", "format": "date-time"}
MOMENT_OR_NULL: Final[Schema] = maybe("string", format="date-time")
DURATION: Final[Schema] = {"type": ["string", "number"], "description": "Seconds, or a text like 90s, 1h30m, 2d."}
SIZE: Final[Schema] = {"type": ["string", "number"], "description": "Bytes, or a text like 512MiB, 2GiB."}
STATE: Final[Schema] = {"type": "string", "enum": [state.value for state in State]}
STATES: Final[Schema] = exactly(**{state.value: COUNT for state in State})
SPREAD: Final[Schema] = exactly(
    count=COUNT, **{name: maybe("number") for name in ("avg", "min", "max", "p50", "p95", "p99")}
)
ENV: Final[Schema] = {
    "type": "object",
    "additionalProperties": TEXT,
    "description": "Values are never told: each is ***.",
}
DEPENDENCY: Final[Schema] = {"oneOf": [TEXT, exactly(id=TEXT)]}

LIMITS: Final[Schema] = {
    "type": "object",
    "additionalProperties": WHOLE,
    "description": "What a run may use, as far as it is limited: sizes in bytes, cpu_time in seconds.",
}

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
    run_at=MOMENT,
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
    cwd=TEXT,
    env=ENV,
    tags=array(TEXT),
    depends_on=array(DEPENDENCY),
    unique_key=maybe("string"),
    cron=maybe("string"),
    held=FLAG,
    reason=maybe("string"),
    log=maybe("string"),
    limits=LIMITS,
    secrets=array(TEXT),
)

RUN: Final[Schema] = exactly(
    number={"type": "integer", "minimum": 1},
    worker=TEXT,
    host=TEXT,
    pid=maybe("integer"),
    started_at=MOMENT_OR_NULL,
    finished_at=MOMENT_OR_NULL,
    duration_ms=maybe("integer"),
    exit_code=maybe("integer"),
    signal=maybe("integer"),
    error=maybe("string"),
    outcome=TEXT,
    cpu_user_ms=maybe("integer"),
    cpu_system_ms=maybe("integer"),
    max_rss_bytes=maybe("integer"),
    read_bytes=maybe("integer"),
    written_bytes=maybe("integer"),
    peak_memory_bytes=maybe("integer"),
)

# What can be said of a job: the rules themselves are those of job/spec.py, which names what is wrong better than a schema can.
_OF_JOBS: Final[Schema] = optional(
    command={"type": "string", "minLength": 1},
    argv={"type": "array", "items": TEXT, "minItems": 1},
    queue={"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"},
    priority={"type": "integer", "minimum": -1_000_000, "maximum": 1_000_000},
    max_retries={"type": "integer", "minimum": 0, "maximum": 1_000_000},
    timeout=DURATION,
    run_at={"type": "string", "description": "ISO 8601; local to the server without a zone."},
    delay=DURATION,
    secrets={"type": "array", "items": TEXT, "maxItems": 32},
)
OF_RUNS: Final[Schema] = optional(
    memory=SIZE,
    cpu_time=DURATION,
    nice={"type": "integer", "minimum": -20, "maximum": 19},
    open_files={"type": "integer", "minimum": 0, "maximum": 1_048_576},
    processes={"type": "integer", "minimum": 0, "maximum": 4_194_304},
    file_size=SIZE,
)
_HOOKS: Final[Schema] = optional(on_success=TEXT, on_failure=TEXT, on_dead=TEXT)
NEW_JOB: Final[Schema] = {
    "type": "object",
    "description": "The fields of enqueue: command or argv, and what else is to hold. docs/reference/json.md has all of them.",
    "properties": {
        **optional(id={"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"}),
        **_OF_JOBS,
        **optional(
            backoff_base={"type": "number", "minimum": 1},
            cwd=TEXT,
            env={"type": "object", "additionalProperties": TEXT},
            tags={"type": "array", "items": TEXT, "maxItems": 32},
            depends_on=array(DEPENDENCY),
            unique_key=TEXT,
        ),
        **OF_RUNS,
        **_HOOKS,
    },
}
CHANGE: Final[Schema] = {
    "type": "object",
    "description": "What to change of a job that waits; timeout 0 takes the limit away.",
    "properties": {**_OF_JOBS, **OF_RUNS, **_HOOKS},
}
NEW_SCHEDULE: Final[Schema] = {
    "type": "object",
    "description": "When, how, and the fields of the job that it adds.",
    "required": ["name", "schedule"],
    "properties": {
        "name": TEXT,
        "schedule": {**TEXT, "description": "Five fields, or like every 90s."},
        **optional(
            tz={**TEXT, "description": "The server's unless it is given."},
            overlap={"type": "string", "enum": ["skip", "queue", "allow"]},
            catch_up={"type": "string", "description": "none, one or all:N."},
            jitter=DURATION,
            until=TEXT,
            replace=FLAG,
        ),
        **{
            name: schema for name, schema in NEW_JOB["properties"].items() if name not in {"id", "run_at", "depends_on"}
        },
    },
}

TICK: Final[Schema] = exactly(
    at=MOMENT,
    decided_at=MOMENT,
    job=maybe("string"),
    state={"enum": [*STATE["enum"], None]},
    exit_code=maybe("integer"),
    error=maybe("string"),
    reason=maybe("string"),
    times=COUNT,
    by_hand=FLAG,
)
SCHEDULE: Final[Schema] = exactly(
    name=TEXT,
    schedule=TEXT,
    tz=TEXT,
    command=maybe("string"),
    argv=maybe("array", items=TEXT),
    queue=TEXT,
    job={"type": "object"},
    overlap=TEXT,
    catch_up=TEXT,
    jitter=NUMBER,
    until=MOMENT_OR_NULL,
    paused=FLAG,
    next_at=MOMENT_OR_NULL,
    last={"oneOf": [ref("Tick"), {"type": "null"}]},
    waiting=maybe("string"),
    created_at=MOMENT,
    updated_at=MOMENT,
)

ANSWER: Final[Schema] = exactly(done=array(TEXT), refused=array(exactly(id=TEXT, code=TEXT, message=TEXT)))
PREVIEW: Final[Schema] = exactly(count=COUNT, states=STATES, sample=array(TEXT))
FINDING: Final[Schema] = exactly(code=TEXT, severity=TEXT, message=TEXT, hint=TEXT, fixable=FLAG)
