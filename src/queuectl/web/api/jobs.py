"""Jobs: list, enqueue, show, edit, clone, act on one job, and wait."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from queuectl.config import host_name
from queuectl.errors import InvalidInput, UsageError
from queuectl.jobs.model import Job
from queuectl.jobs.states import FINAL, State
from queuectl.operations import batches, inspect, job_input
from queuectl.operations import explain as explaining
from queuectl.operations import wait as use
from queuectl.operations.enqueue import JobInput, ParsedJobs
from queuectl.operations.query import MAX_SORTED_JOBS, parse_sort
from queuectl.store.types import Filter, Sort
from queuectl.text import short_repr
from queuectl.units import parse_duration_ms, parse_time_ms
from queuectl.web.api.operation import (
    CURSOR,
    LIMIT,
    SELECTORS,
    ApiRequest,
    Created,
    Operation,
    Param,
    parse_object,
    parse_texts,
    to_filter,
)
from queuectl.web.schemas import TEXT, TIME, array, optional, ref
from queuectl.web.store_threads import StoreSession

MAX_KEY_LENGTH: Final = 255
IDEMPOTENCY_KEY: Final = Param(
    "Idempotency-Key",
    "A repeated request with the same key, within 24 hours, adds nothing and gets the same response.",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH},
)


def list_jobs(session: StoreSession, call: ApiRequest) -> Any:
    return job_page(session, call.query)


def job_page(session: StoreSession, query: Mapping[str, Any]) -> dict[str, Any]:
    where = to_filter(query, session.reads)
    sort, descending = parse_sort(query["sort"])
    page = inspect.page(
        session.reads, where, sort=sort, descending=descending, limit=query["limit"], cursor=query["cursor"]
    )
    return {"items": [job.to_dict() for job in page.jobs], "next_cursor": page.next_cursor}


def enqueue(session: StoreSession, call: ApiRequest) -> Any:
    """Add one job for an object; for an array, add all jobs or none."""
    asked = request_of(call, "/jobs")
    if isinstance(call.body, list):
        jobs = session.add(ParsedJobs([fields_of(item) for item in call.body], is_batch=True), {}, idempotency=asked)
        return Created([added(job) for job in jobs], is_new=any(not job.is_duplicate for job in jobs))
    (job,) = session.add(ParsedJobs([fields_of(call.body)], is_batch=False), {}, idempotency=asked)
    return Created(added(job), is_new=not job.is_duplicate, location=location(job))


def request_of(call: ApiRequest, path: str) -> tuple[str, str] | None:
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
    raise InvalidInput(
        "body", "expected the fields of a job, or a list of them", hint='like {"command": "make report"}'
    )


def added(job: Job) -> dict[str, Any]:
    return {**job.to_dict(), "duplicate": job.is_duplicate}


def location(job: Job) -> str:
    return f"/jobs/{job.id}"  # an ID needs no escaping in a path


def show_job(session: StoreSession, call: ApiRequest) -> Any:
    return job_shown(session, call.path["id"])


def job_shown(session: StoreSession, job_id: str) -> dict[str, Any]:
    limit = session.settings.output_limit
    return inspect.show(
        session.reads, job_id, host=host_name(), output_limit=limit, is_alive=session.is_serving()
    ).to_dict()


def explain_job(session: StoreSession, call: ApiRequest) -> Any:
    return explaining.explain(session.reads, call.path["id"], is_alive=session.is_serving()).to_dict()


def show_graph(session: StoreSession, call: ApiRequest) -> Any:
    return session.graph(call.path["id"])


def edit_job(session: StoreSession, call: ApiRequest) -> Any:
    fields = dict(fields_of(call.body))
    seen = fields.pop("as_of", None)
    as_of = None if seen is None else parse_time_ms(seen, subject="as_of", local=None)
    return session.change(call.path["id"], fields, as_of=as_of).to_dict()


def clone_job(session: StoreSession, call: ApiRequest) -> Any:
    job = session.copy(call.path["id"], {} if call.body is None else fields_of(call.body))
    return Created(job.to_dict(), location=location(job))


def cancel_job(session: StoreSession, call: ApiRequest) -> Any:
    return session.cancel(call.path["id"]).to_dict()


def retry_job(session: StoreSession, call: ApiRequest) -> Any:
    return session.retry(call.path["id"]).to_dict()


def hold_job(session: StoreSession, call: ApiRequest) -> Any:
    return session.hold(call.path["id"]).to_dict()


def release_job(session: StoreSession, call: ApiRequest) -> Any:
    return session.release(call.path["id"]).to_dict()


def run_job_now(session: StoreSession, call: ApiRequest) -> Any:
    return session.run_now(call.path["id"]).to_dict()


def _act(path: str, does: Callable[[StoreSession, ApiRequest], Any], summary: str, *, slow: bool = False) -> Operation:
    return Operation("POST", f"/jobs/{{id}}/{path}", does, summary, ref("Job"), slow=slow)


SORT: Final = Param(
    "sort",
    f"Sort key; a leading - reverses the order. Up to {MAX_SORTED_JOBS:,} jobs are sorted; `created`, and `finished` with one final "
    "state, have no limit.",
    {"type": "string", "enum": [sign + sort.value for sort in Sort for sign in ("", "-")], "default": "created"},
)

_JOB_OPERATIONS: Final = (
    Operation(
        "GET",
        "/jobs",
        list_jobs,
        "List jobs.",
        ref("Jobs"),
        (*SELECTORS, SORT, LIMIT, CURSOR),
    ),
    Operation(
        "POST",
        "/jobs",
        enqueue,
        "Add a job, or all jobs of an array in one transaction.",
        {"oneOf": [ref("Enqueued"), array(ref("Enqueued"))]},
        body={"oneOf": [ref("NewJob"), array(ref("NewJob"))]},
        status=201,
        headers=(IDEMPOTENCY_KEY,),
    ),
    Operation("GET", "/jobs/{id}", show_job, "Show a job with its history and the end of its output.", ref("Shown")),
    Operation(
        "PATCH",
        "/jobs/{id}",
        edit_job,
        "Change a waiting job. With `as_of`, an `updated_at` that you have read, only if the job has not changed since.",
        ref("Job"),
        body={"allOf": [ref("Change")], "properties": optional(as_of=TIME), "minProperties": 1},
    ),
    Operation("GET", "/jobs/{id}/explain", explain_job, "Explain why a job is not running.", ref("Explanation")),
    Operation(
        "GET", "/jobs/{id}/graph", show_graph, "Show the dependencies of a job, in both directions.", ref("Graph")
    ),
    _act("cancel", cancel_job, "Cancel a job. Waits until a running job has ended.", slow=True),
    _act("retry", retry_job, "Retry a failed, dead or cancelled job."),
    _act("hold", hold_job, "Hold a waiting job."),
    _act("release", release_job, "Release a held job."),
    _act("run-now", run_job_now, "Make a job due now."),
    Operation(
        "POST",
        "/jobs/{id}/clone",
        clone_job,
        "Add a new job with the same fields, except those given.",
        ref("Job"),
        body=ref("NewJob"),
        status=201,
    ),
)


_SOURCES: Final = ("jobs", "for_each", "array")
_KNOWN: Final = (*_SOURCES, "job", "colsep", "batch", "on_complete")


def enqueue_many(session: StoreSession, call: ApiRequest) -> Any:
    body = parse_object(call.body, "body", known=list(_KNOWN))
    job = {} if body.get("job") is None else fields_of(body["job"])
    jobs_input = _parse_jobs(body, job)
    # Jobs of an array have their own fields; otherwise `job` has the fields that all of them share.
    common = {} if body.get("array") is not None else {k: v for k, v in job.items() if k not in {"command", "argv"}}
    batch, last = _text(body, "batch"), _text(body, "on_complete")
    jobs = session.add(jobs_input, common, batch=batch, on_complete=last, idempotency=request_of(call, "/jobs/many"))
    return Created([added(one) for one in jobs], is_new=any(not one.is_duplicate for one in jobs))


def _parse_jobs(body: dict[str, Any], job: dict[str, Any]) -> JobInput:
    chosen = [name for name in _SOURCES if body.get(name) is not None]
    if len(chosen) != 1:
        raise UsageError("expected one of jobs, for_each and array", hint='like {"jobs": [{"command": "true"}]}')
    if chosen != ["for_each"] and body.get("colsep") is not None:
        raise InvalidInput("colsep", "is allowed with for_each only", hint="omit it")
    match chosen[0]:
        case "jobs":
            if not isinstance(body["jobs"], list):
                raise InvalidInput(
                    "jobs", f"expected a list of jobs, got {short_repr(body['jobs'])}", hint="like [{…}, {…}]"
                )
            return ParsedJobs([fields_of(item) for item in body["jobs"]], is_batch=True)
        case "for_each":
            command, argv = job.get("command"), job.get("argv")
            if (command is None) == (argv is None):
                hint = 'like {"for_each": ["a", "b"], "job": {"command": "gzip {}"}}'
                raise InvalidInput("job", "expected either a command or an argv", hint=hint)
            template = parse_texts(argv, "argv") if command is None else _text(job, "command") or ""
            return job_input.for_each_item(
                parse_texts(body["for_each"], "for_each"), template, colsep=_text(body, "colsep")
            )
        case _:
            return job_input.make_array(job, _text(body, "array") or "", flags={}, subject="array")


def _text(body: dict[str, Any], name: str) -> str | None:
    value = body.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(name, f"expected text, got {short_repr(value)}", hint="write it in quotes")
    return value


_MANY_OPERATIONS: Final = (
    Operation(
        "POST",
        "/jobs/many",
        enqueue_many,
        "Add many jobs in one transaction: a list, one for each item, or an array, like `enqueue --file`, `--for-each` and `--array`.",
        array(ref("Enqueued")),
        body={
            "type": "object",
            "additionalProperties": False,
            "properties": optional(
                jobs=array(ref("NewJob")),
                for_each={**array(TEXT), "description": "Each item replaces {} in the command of `job`."},
                array={**TEXT, "description": "Indices and concurrency, for example 1-100 or 0-90:30%4."},
                job={**ref("NewJob"), "description": "The fields of all jobs, or the job to run for each item."},
                colsep=TEXT,
                batch=TEXT,
                on_complete=TEXT,
            ),
        },
        status=201,
        headers=(IDEMPOTENCY_KEY,),
    ),
)


MAX_WAIT_SECONDS: Final = 60.0  # proxies close longer requests


def wait_for_job(session: StoreSession, call: ApiRequest) -> Any:
    return session.wait(call.path["id"], timeout=_seconds(call)).to_dict()


def wait_for_jobs(session: StoreSession, call: ApiRequest) -> Any:
    where, seconds = to_filter(call.query, session.reads), _seconds(call)
    if bool(call.query["id"]) == (where != Filter(includes_webhooks=where.includes_webhooks)):
        raise UsageError("expected either ids or selectors", hint="like ?id=7f3a&id=81bc, or ?queue=mail")
    if call.query["id"]:
        ids = [session.reads.resolve(one) for one in call.query["id"]]
    else:
        where = where if where.states else where._replace(states=frozenset(State) - FINAL)
        ids = [job.id for job in session.reads.choose(where)]
    ids = list(dict.fromkeys(ids))
    if not ids:
        return []
    ended = use.wait(session.reads, session.clock, ids, any_of_them=call.query["any"], timeout=seconds)
    return [job.to_dict() for job in ended]


def wait_for_batch(session: StoreSession, call: ApiRequest) -> Any:
    return batches.wait(session.reads, session.clock, call.path["name"], timeout=_seconds(call)).to_dict()


def _seconds(call: ApiRequest) -> float:
    return min(parse_duration_ms(call.query["timeout"], subject="timeout") / 1000, MAX_WAIT_SECONDS)


_TIMEOUT: Final = Param("timeout", "Maximum waiting time, up to 60 s; then 504.", {"type": "string", "default": "30s"})

_WAIT_OPERATIONS: Final = (
    Operation(
        "GET",
        "/wait",
        wait_for_jobs,
        "Wait until jobs have ended: those named, or those that match now and have not ended.",
        array(ref("Job")),
        (
            Param("id", "The ID of a job; up to 100.", many=True),
            *SELECTORS,
            Param("any", "Wait until one of them has ended.", {"type": "boolean", "default": False}),
            _TIMEOUT,
        ),
        slow=True,
    ),
    Operation(
        "GET", "/jobs/{id}/wait", wait_for_job, "Wait until a job has ended.", ref("Job"), (_TIMEOUT,), slow=True
    ),
    Operation(
        "GET",
        "/batches/{name}/wait",
        wait_for_batch,
        "Wait until no job of the batch is waiting or running.",
        ref("Batch"),
        (_TIMEOUT,),
        tag="batches",
        slow=True,
    ),
)

# A literal path comes before one with a parameter in the same position.
OPERATIONS: Final = (*_MANY_OPERATIONS, *_JOB_OPERATIONS, *_WAIT_OPERATIONS)
