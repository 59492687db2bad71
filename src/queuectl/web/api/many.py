"""Many jobs in one request: a list of them, one for each item, an array; under a name, with something to run at the end."""

from __future__ import annotations

from typing import Any, Final

from queuectl.errors import InvalidInput, UsageError
from queuectl.job.shown import shown
from queuectl.queue import many
from queuectl.queue.intake import Given, Intake
from queuectl.web.api.jobs import IDEMPOTENCY_KEY, added, fields_of, request_of
from queuectl.web.api.operation import Call, Made, Operation
from queuectl.web.api.schemas import TEXT, array, optional, ref
from queuectl.web.api.words import an_object, texts
from queuectl.web.desk import Desk

_SOURCES: Final = ("jobs", "for_each", "array")
_KNOWN: Final = (*_SOURCES, "job", "colsep", "batch", "on_complete")


def enqueue_many(desk: Desk, call: Call) -> Any:
    said = an_object(call.body, "body", known=list(_KNOWN))
    job = {} if said.get("job") is None else fields_of(said["job"])
    intake = _intake(said, job)
    # In an array the fields of a job are each one's own already; elsewhere they are what all of them get.
    common = {} if said.get("array") is not None else {k: v for k, v in job.items() if k not in {"command", "argv"}}
    batch, last = _text(said, "batch"), _text(said, "on_complete")
    jobs = desk.add(intake, common, batch=batch, on_complete=last, idempotency=request_of(call, "/jobs/many"))
    return Made([added(one) for one in jobs], is_new=any(not one.is_duplicate for one in jobs))


def _intake(said: dict[str, Any], job: dict[str, Any]) -> Intake:
    chosen = [name for name in _SOURCES if said.get(name) is not None]
    if len(chosen) != 1:
        raise UsageError("expected one of jobs, for_each and array", hint='like {"jobs": [{"command": "true"}]}')
    if chosen != ["for_each"] and said.get("colsep") is not None:
        raise InvalidInput("colsep", "it is for for_each", hint="leave it away")
    match chosen[0]:
        case "jobs":
            if not isinstance(said["jobs"], list):
                raise InvalidInput(
                    "jobs", f"expected a list of jobs, got {shown(said['jobs'])}", hint="like [{…}, {…}]"
                )
            return Given([fields_of(item) for item in said["jobs"]], is_batch=True)
        case "for_each":
            command, argv = job.get("command"), job.get("argv")
            if (command is None) == (argv is None):
                hint = 'like {"for_each": ["a", "b"], "job": {"command": "gzip {}"}}'
                raise InvalidInput("job", "expected either a command or an argv", hint=hint)
            template = texts(argv, "argv") if command is None else _text(job, "command") or ""
            return many.for_each_given(texts(said["for_each"], "for_each"), template, colsep=_text(said, "colsep"))
        case _:
            return many.array(job, _text(said, "array") or "", flags={}, subject="array")


def _text(said: dict[str, Any], name: str) -> str | None:
    value = said.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(name, f"expected a text, got {shown(value)}", hint="write it in quotes")
    return value


OPERATIONS: Final = (
    Operation(
        "POST",
        "/jobs/many",
        enqueue_many,
        "Add many jobs, all or none: a list, one for each item, or an array, as `enqueue --file`, `--for-each` and `--array` do.",
        array(ref("Enqueued")),
        body={
            "type": "object",
            "additionalProperties": False,
            "properties": optional(
                jobs=array(ref("NewJob")),
                for_each={**array(TEXT), "description": "Each takes the place of {} in the command of `job`."},
                array={**TEXT, "description": "Indices, and how many at a time: 1-100, 0-90:30%4."},
                job={**ref("NewJob"), "description": "What all of them get, or what to run for each."},
                colsep=TEXT,
                batch=TEXT,
                on_complete=TEXT,
            ),
        },
        status=201,
        headers=(IDEMPOTENCY_KEY,),
    ),
)
