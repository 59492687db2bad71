"""Jobs: enqueue, list, show, edit and wait; actions on one job."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from queuectl.config import host_name, working_directory
from queuectl.errors import InvalidInput, UsageError
from queuectl.jobs.edit import JobEdit, parse_edit
from queuectl.jobs.fields import absolute
from queuectl.jobs.model import Job
from queuectl.jobs.states import FINAL, State
from queuectl.operations import control, inspect, job_input
from queuectl.operations import explain as explaining
from queuectl.operations import wait as waiting
from queuectl.operations.enqueue import JobInput, job_list, single_job
from queuectl.operations.pages import MAX_COUNTED, page
from queuectl.operations.query import MAX_SORTED_JOBS, MAX_SUGGESTIONS, parse_sort, query_suggestions
from queuectl.store.types import Filter, Sort
from queuectl.store_threads import WebSession
from queuectl.text import short_repr
from queuectl.units import parse_duration_ms, parse_time_ms
from queuectl.web.api.operation import (
    CURSOR,
    LIMIT,
    SELECTORS,
    ApiRequest,
    Created,
    Operations,
    Param,
    parse_texts,
    read_field,
    to_filter,
)
from queuectl.web.schemas import TEXT, TIME, array, only, optional, ref

JOBS: Final = Operations("jobs")

MAX_KEY_LENGTH: Final = 255
IDEMPOTENCY_KEY: Final = Param(
    "Idempotency-Key",
    "Requests with the same key within 24 hours add nothing and get the same response.",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH},
)
SORT: Final = Param(
    "sort",
    f"Sort key. A leading `-` reverses the order. At most {MAX_SORTED_JOBS:,} jobs can be sorted. `created` has no limit, and neither "
    "has `finished` with a single final state.",
    {"type": "string", "enum": [sign + sort.value for sort in Sort for sign in ("", "-")], "default": "created"},
)
COUNT_MATCHES: Final = Param(
    "count", f"Also count the matching jobs, up to {MAX_COUNTED:,}.", {"type": "boolean", "default": False}
)
# For every list of jobs.
PAGE: Final = (SORT, LIMIT, CURSOR, COUNT_MATCHES)
_JOB: Final = ref("Job")
_SHOWN: Final = ref("Shown")
_ENQUEUED: Final = ref("Enqueued")
_NEW_JOB: Final = ref("NewJob")

# ── enqueue ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_SOURCES: Final = ("jobs", "for_each", "array")
_MANY: Final = only(
    jobs=array(_NEW_JOB),
    for_each={**array(TEXT), "description": "Items. Each replaces `{}` in the command of `job`."},
    array={**TEXT, "description": "Indices and concurrency, for example `1-100` or `0-90:30%4`."},
    job={**_NEW_JOB, "description": "Fields for all jobs, or the job to run for each item."},
    colsep=TEXT,
    batch=TEXT,
    on_complete=TEXT,
)


@JOBS(
    "POST /jobs/many",
    "Add many jobs in one transaction: a list, one job per item, or a job array.",
    array(_ENQUEUED),
    body=_MANY,
    status=201,
    headers=(IDEMPOTENCY_KEY,),
)
def enqueue_many(session: WebSession, call: ApiRequest) -> Any:
    body: dict[str, Any] = call.body
    job = {} if body.get("job") is None else fields_of(body["job"])
    jobs_input = _parse_jobs(body, job)
    # Jobs of an array have their own fields; otherwise `job` has the fields that all of them share.
    common = {} if body.get("array") is not None else {k: v for k, v in job.items() if k not in {"command", "argv"}}
    batch, last = body.get("batch"), body.get("on_complete")
    jobs = session.add(jobs_input, common, batch=batch, on_complete=last, idempotency=_request_of(call, "/jobs/many"))
    return Created([added(one) for one in jobs], is_new=any(not one.is_duplicate for one in jobs))


def _parse_jobs(body: dict[str, Any], job: dict[str, Any]) -> JobInput:
    chosen = [name for name in _SOURCES if body.get(name) is not None]
    if len(chosen) != 1:
        raise UsageError("expected one of jobs, for_each and array", hint='for example {"jobs": [{"command": "true"}]}')
    if chosen != ["for_each"] and body.get("colsep") is not None:
        raise InvalidInput("colsep", "is allowed with for_each only", hint="omit it")
    match chosen[0]:
        case "jobs":
            if not isinstance(body["jobs"], list):
                problem = f"expected a list of jobs, got {short_repr(body['jobs'])}"
                raise InvalidInput("jobs", problem, hint="for example [{…}, {…}]")
            return job_list([fields_of(item) for item in body["jobs"]])
        case "for_each":
            command, argv = job.get("command"), job.get("argv")
            if (command is None) == (argv is None):
                hint = 'for example {"for_each": ["a", "b"], "job": {"command": "gzip {}"}}'
                raise InvalidInput("job", "expected either a command or an argv", hint=hint)
            template = parse_texts(argv, "argv") if command is None else read_field(command, "command", TEXT)
            return job_input.for_each_item(body["for_each"], template, colsep=body.get("colsep"))
        case _:
            return job_input.make_array(job, body["array"], flags={}, subject="array")


@JOBS(
    "POST /jobs",
    "Add a job, or a list of jobs in one transaction.",
    {"oneOf": [_ENQUEUED, array(_ENQUEUED)]},
    body={"oneOf": [_NEW_JOB, array(_NEW_JOB)]},
    status=201,
    headers=(IDEMPOTENCY_KEY,),
)
def enqueue(session: WebSession, call: ApiRequest) -> Any:
    """Add one job for an object; for an array, add all jobs or none."""
    is_batch = isinstance(call.body, list)
    items = [fields_of(item) for item in (call.body if is_batch else [call.body])]
    jobs = session.add(
        job_list(items) if is_batch else single_job(items[0]), {}, idempotency=_request_of(call, "/jobs")
    )
    is_new = any(not job.is_duplicate for job in jobs)
    if is_batch:
        return Created([added(job) for job in jobs], is_new=is_new)
    return Created(added(jobs[0]), is_new=is_new, location=location(jobs[0]))


def _request_of(call: ApiRequest, path: str) -> tuple[str, str] | None:
    """The idempotency key of a request and the hash of its content; None without a key."""
    key = call.headers.get(IDEMPOTENCY_KEY.name.lower())
    if key is None:
        return None
    if not 0 < len(key) <= MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        hint = "use a random value for each request, for example a UUID"
        raise InvalidInput(IDEMPOTENCY_KEY.name, f"expected 1 to {MAX_KEY_LENGTH} visible ASCII characters", hint=hint)
    return key, sha256(f"{path} {json.dumps(call.body, sort_keys=True)}".encode()).hexdigest()


def fields_of(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    problem = "expected the fields of a job, or a list of them"
    raise InvalidInput("body", problem, hint='for example {"command": "make report"}')


def added(job: Job) -> dict[str, Any]:
    return {**job.to_dict(), "duplicate": job.is_duplicate}


def location(job: Job) -> str:
    return f"/jobs/{job.id}"  # an ID needs no escaping in a path


# ── one job ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@JOBS("GET /jobs", "List jobs.", ref("Jobs"), params=(*SELECTORS, *PAGE))
def list_jobs(session: WebSession, call: ApiRequest) -> Any:
    return job_page(session, call.query)


def job_page(session: WebSession, query: Mapping[str, Any]) -> dict[str, Any]:
    where, (sort, descending) = to_filter(query, session.reads), parse_sort(query["sort"])
    limit, cursor = query["limit"], query["cursor"]
    found = page(
        session.reads, where, sort=sort, descending=descending, limit=limit, cursor=cursor, counts=query["count"]
    )
    return {
        "items": [job.to_dict() for job in found.jobs],
        "next_cursor": found.next_cursor,
        "previous_cursor": found.previous_cursor,
        "before": found.before,
        "total": found.total,
        "total_is_exact": found.total_is_exact,
        "is_partial": found.is_partial,
    }


@JOBS(
    "GET /search/terms",
    f"List terms to complete a query with: qualifiers, states, and up to {MAX_SUGGESTIONS} queues, tags, workers and batches each.",
    array(TEXT),
)
def list_query_terms(session: WebSession, call: ApiRequest) -> Any:
    return query_suggestions(session.reads)


@JOBS("GET /jobs/{id}", "Show a job with its history and the end of its output.", _SHOWN)
def show_job(session: WebSession, call: ApiRequest) -> Any:
    return job_details(session, call.path["id"])


def job_details(session: WebSession, job_id: str) -> dict[str, Any]:
    limit, serves = session.settings.output_limit, session.is_serving()
    return inspect.show(session.reads, job_id, host=host_name(), output_limit=limit, is_alive=serves).to_dict()


@JOBS(
    "PATCH /jobs/{id}",
    "Change a waiting job. With `as_of`, only if its `updated_at` is still that time.",
    _JOB,
    body={"allOf": [ref("Change")], "properties": optional(as_of=TIME), "minProperties": 1},
)
def edit_job(session: WebSession, call: ApiRequest) -> Any:
    fields = dict(fields_of(call.body))
    seen = fields.pop("as_of", None)
    as_of = None if seen is None else parse_time_ms(seen, subject="as_of", local=None)
    change = parse_edit(fields)
    if change == JobEdit():
        raise UsageError("nothing to change", hint='for example {"priority": 5}')
    found = session.get(call.path["id"]).id
    return session.only(control.edit(session.open_store(), [found], change, as_of=as_of)).to_dict()


@JOBS("GET /jobs/{id}/explain", "Explain why a job is not running.", ref("Explanation"))
def explain_job(session: WebSession, call: ApiRequest) -> Any:
    return explaining.explain(session.reads, call.path["id"], is_alive=session.is_serving()).to_dict()


@JOBS("GET /jobs/{id}/graph", "Show the dependencies of a job, in both directions.", ref("Graph"))
def show_graph(session: WebSession, call: ApiRequest) -> Any:
    return session.graph(call.path["id"])


def _change(
    name: str, path: str, summary: str, change: Callable[[WebSession, str], Job], *, slow: bool = False
) -> None:
    """Declare an action on one job that needs nothing but its ID."""

    def handler(session: WebSession, call: ApiRequest) -> Any:
        return change(session, call.path["id"]).to_dict()

    handler.__name__ = name
    JOBS(f"POST /jobs/{{id}}/{path}", summary, _JOB, slow=slow)(handler)


_change("cancel_job", "cancel", "Cancel a job. Waits until a running job has ended.", WebSession.cancel, slow=True)
_change("retry_job", "retry", "Retry a failed, dead or cancelled job.", WebSession.retry)
_change("hold_job", "hold", "Hold a waiting job.", WebSession.hold)
_change("release_job", "release", "Release a held job.", WebSession.release)
_change("run_job_now", "run-now", "Make a job due now.", WebSession.run_now)


@JOBS(
    "POST /jobs/{id}/clone",
    "Add a copy of a job. Fields in the body replace those of the original.",
    _JOB,
    body=_NEW_JOB,
    status=201,
)
def clone_job(session: WebSession, call: ApiRequest) -> Any:
    fields = {} if call.body is None else fields_of(call.body)
    if isinstance(cwd := fields.get("cwd"), str):
        fields = {**fields, "cwd": absolute(cwd, working_directory())}
    new = control.clone(session.reads, session.reads.resolve(call.path["id"]), fields)
    store = session.open_store()
    job = store.get(store.enqueue([new])[0])
    return Created(job.to_dict(), location=location(job))


# ── wait ────────────────────────────────────────────────────────────────────────────────────────────────────────────

MAX_WAIT_SECONDS: Final = 60.0  # proxies close longer requests
_TIMEOUT: Final = Param(
    "timeout",
    "Maximum time to wait, up to 60 s. After that, the response is 504.",
    {"type": "string", "default": "30s"},
)


@JOBS(
    "GET /wait",
    "Wait until jobs have ended: the given IDs, or all unfinished jobs that match now.",
    array(_JOB),
    params=(
        Param("id", "The ID of a job. Up to 100.", many=True),
        *SELECTORS,
        Param("any", "Return as soon as one of the jobs has ended.", {"type": "boolean", "default": False}),
        _TIMEOUT,
    ),
    slow=True,
)
def wait_for_jobs(session: WebSession, call: ApiRequest) -> Any:
    where, seconds = to_filter(call.query, session.reads), _seconds(call)
    if bool(call.query["id"]) == (where != Filter(includes_webhooks=where.includes_webhooks)):
        raise UsageError("expected either ids or selectors", hint="for example ?id=7f3a&id=81bc, or ?queue=mail")
    if call.query["id"]:
        ids = [session.reads.resolve(one) for one in call.query["id"]]
    else:
        where = where if where.states else where._replace(states=frozenset(State) - FINAL)
        ids = [job.id for job in session.reads.choose(where)]
    ids = list(dict.fromkeys(ids))
    if not ids:
        return []
    ended = waiting.wait(session.reads, session.clock, ids, any_of_them=call.query["any"], timeout=seconds)
    return [job.to_dict() for job in ended]


@JOBS("GET /jobs/{id}/wait", "Wait until a job has ended.", _JOB, params=(_TIMEOUT,), slow=True)
def wait_for_job(session: WebSession, call: ApiRequest) -> Any:
    return session.wait(call.path["id"], timeout=_seconds(call)).to_dict()


@JOBS(
    "GET /batches/{name}/wait",
    "Wait until no job of the batch is waiting or running.",
    ref("Batch"),
    params=(_TIMEOUT,),
    tag="batches",
    slow=True,
)
def wait_for_batch(session: WebSession, call: ApiRequest) -> Any:
    return waiting.wait_batch(session.reads, session.clock, call.path["name"], timeout=_seconds(call)).to_dict()


def _seconds(call: ApiRequest) -> float:
    return min(parse_duration_ms(call.query["timeout"], subject="timeout") / 1000, MAX_WAIT_SECONDS)
