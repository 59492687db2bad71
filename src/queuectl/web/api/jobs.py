"""Jobs: adding, looking, and what can be done to one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

from queuectl.config import host_name
from queuectl.errors import InvalidInput
from queuectl.job.model import Job
from queuectl.job.moment import parse_moment_ms
from queuectl.queue import explain as explaining
from queuectl.queue import inspect
from queuectl.queue.filters import parse_sort
from queuectl.queue.intake import Given
from queuectl.queue.ordering import MOST_SORTED
from queuectl.store.protocol import Sort
from queuectl.web.api.operation import Call, Made, Operation, Param, Room
from queuectl.web.api.schemas import MOMENT, array, optional, ref
from queuectl.web.api.words import CURSOR, LIMIT, SELECTORS, to_filter
from queuectl.web.desk import Desk

LONGEST_KEY: Final = 255
IDEMPOTENCY_KEY: Final = Param(
    "Idempotency-Key",
    "The same request again with the same key, within 24 hours, adds nothing and is answered the same.",
    {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
)


def list_jobs(desk: Desk, call: Call) -> Any:
    return job_page(desk, call.query)


def job_page(desk: Desk, query: Mapping[str, Any]) -> dict[str, Any]:
    where = to_filter(query, desk.reads)
    sort, descending = parse_sort(query["sort"])
    page = inspect.page(
        desk.reads, where, sort=sort, descending=descending, limit=query["limit"], cursor=query["cursor"]
    )
    return {"items": [job.to_dict() for job in page.jobs], "next_cursor": page.next_cursor}


def enqueue(desk: Desk, call: Call) -> Any:
    """One job for an object, many, all or none, for an array."""
    asked = request_of(call, "/jobs")
    if isinstance(call.body, list):
        jobs = desk.add(Given([fields_of(item) for item in call.body], is_batch=True), {}, idempotency=asked)
        return Made([added(job) for job in jobs], is_new=any(not job.is_duplicate for job in jobs))
    (job,) = desk.add(Given([fields_of(call.body)], is_batch=False), {}, idempotency=asked)
    return Made(added(job), is_new=not job.is_duplicate, location=location(job))


def request_of(call: Call, path: str) -> tuple[str, str] | None:
    """The key that the client gave this request, and by what it is told from another one; None if it gave none."""
    key = call.headers.get(IDEMPOTENCY_KEY.name.lower())
    if key is None:
        return None
    if not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
        hint = "choose one at random for each request, like a UUID"
        raise InvalidInput(IDEMPOTENCY_KEY.name, f"expected 1 to {LONGEST_KEY} visible ASCII characters", hint=hint)
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
    return f"/jobs/{job.id}"  # an id holds nothing that a path could not


def show_job(desk: Desk, call: Call) -> Any:
    return job_shown(desk, call.path["id"])


def job_shown(desk: Desk, job_id: str) -> dict[str, Any]:
    limit = desk.settings.output_limit
    return inspect.show(desk.reads, job_id, host=host_name(), output_limit=limit, is_alive=desk.is_serving()).to_dict()


def explain_job(desk: Desk, call: Call) -> Any:
    return explaining.explain(desk.reads, call.path["id"], is_alive=desk.is_serving()).to_dict()


def show_graph(desk: Desk, call: Call) -> Any:
    return desk.graph(call.path["id"])


def edit_job(desk: Desk, call: Call) -> Any:
    fields = dict(fields_of(call.body))
    seen = fields.pop("as_of", None)
    as_of = None if seen is None else parse_moment_ms(seen, subject="as_of", local=None)
    return desk.change(call.path["id"], fields, as_of=as_of).to_dict()


def clone_job(desk: Desk, call: Call) -> Any:
    job = desk.copy(call.path["id"], {} if call.body is None else fields_of(call.body))
    return Made(job.to_dict(), location=location(job))


def cancel_job(desk: Desk, call: Call) -> Any:
    return desk.cancel(call.path["id"]).to_dict()


def retry_job(desk: Desk, call: Call) -> Any:
    return desk.retry(call.path["id"]).to_dict()


def hold_job(desk: Desk, call: Call) -> Any:
    return desk.hold(call.path["id"]).to_dict()


def release_job(desk: Desk, call: Call) -> Any:
    return desk.release(call.path["id"]).to_dict()


def run_job_now(desk: Desk, call: Call) -> Any:
    return desk.run_now(call.path["id"]).to_dict()


def _act(path: str, does: Callable[[Desk, Call], Any], summary: str, *, room: Room = Room.ASK) -> Operation:
    return Operation("POST", f"/jobs/{{id}}/{path}", does, summary, ref("Job"), room=room)


SORT: Final = Param(
    "sort",
    f"By what; a - before it reverses the order. Up to {MOST_SORTED:,} jobs are sorted; created, and finished of one state that "
    "has ended, is the order of any number.",
    {"type": "string", "enum": [sign + sort.value for sort in Sort for sign in ("", "-")], "default": "created"},
)

OPERATIONS: Final = (
    Operation(
        "GET",
        "/jobs",
        list_jobs,
        "The jobs that match, a page at a time.",
        ref("Jobs"),
        (*SELECTORS, SORT, LIMIT, CURSOR),
    ),
    Operation(
        "POST",
        "/jobs",
        enqueue,
        "Add a job, or with an array many of them, all or none.",
        {"oneOf": [ref("Enqueued"), array(ref("Enqueued"))]},
        body={"oneOf": [ref("NewJob"), array(ref("NewJob"))]},
        status=201,
        headers=(IDEMPOTENCY_KEY,),
    ),
    Operation(
        "GET", "/jobs/{id}", show_job, "Everything about one job: its history and the end of its output.", ref("Shown")
    ),
    Operation(
        "PATCH",
        "/jobs/{id}",
        edit_job,
        "Change a job that waits. With `as_of`, the `updated_at` that you have seen, only if nobody was faster.",
        ref("Job"),
        body={"allOf": [ref("Change")], "properties": optional(as_of=MOMENT), "minProperties": 1},
    ),
    Operation("GET", "/jobs/{id}/explain", explain_job, "Why a job is not running.", ref("Explanation")),
    Operation("GET", "/jobs/{id}/graph", show_graph, "What a job waits for, and what waits for it.", ref("Graph")),
    _act("cancel", cancel_job, "Call a job off; answers when it is so, also if it runs.", room=Room.WAIT),
    _act("retry", retry_job, "Give a failed, dead or cancelled job another chance."),
    _act("hold", hold_job, "Keep a job that waits from being run."),
    _act("release", release_job, "Let go a job that is held."),
    _act("run-now", run_job_now, "Make a job due now."),
    Operation(
        "POST",
        "/jobs/{id}/clone",
        clone_job,
        "Add a new job with the same fields, but for those given.",
        ref("Job"),
        body=ref("NewJob"),
        status=201,
    ),
)
