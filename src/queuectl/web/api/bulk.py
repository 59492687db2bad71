"""Actions on many jobs, named or selected by a filter, and the dead letter queue. A preview counts the jobs and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, QueuectlError, UnknownName, UsageError
from queuectl.jobs.edit import JobEdit, parse_edit
from queuectl.jobs.model import BulkResult, Job
from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.maintenance.pruner import Plan
from queuectl.operations import control
from queuectl.operations import control as use
from queuectl.operations.bulk import apply_to_each, find_jobs, find_refusals, resolve_ids
from queuectl.operations.query import restrict_states
from queuectl.store.protocol import MAX_DEAD_GROUPED, Store
from queuectl.store.types import Chosen
from queuectl.text import closest_match, short_repr
from queuectl.units import from_ms, iso
from queuectl.web.api.jobs import SORT, job_page, job_shown
from queuectl.web.api.operation import (
    CURSOR,
    LIMIT,
    SELECTORS,
    WHERE_SCHEMA,
    ApiRequest,
    Operation,
    parse_flag,
    parse_object,
    parse_texts,
    parse_where,
)
from queuectl.web.schemas import COUNT, FLAG, ID, TEXT, TIME, array, exactly, maybe, optional, ref
from queuectl.web.store_threads import StoreSession

Do = Callable[[StoreSession, Store, Iterable[str], bool], BulkResult]
PREVIEW_SIZE: Final = 10
ANY: Final[Callable[[Chosen | Job], bool]] = lambda _: True  # noqa: E731 - a constant, and known by its name


class Action(NamedTuple):
    able: frozenset[State]
    done: str  # past participle, for messages
    do: Do
    wants: Callable[[Chosen | Job], bool] = ANY  # whether a matching job would change


def _cancel(session: StoreSession, store: Store, refs: Iterable[str], exact: bool) -> BulkResult:
    return control.cancel(store, session.clock, refs, rescue=session.rescue, exact=exact)


def _prune(session: StoreSession, store: Store, refs: Iterable[str], exact: bool) -> BulkResult:
    def remove(ids: Sequence[str]) -> Mapping[str, QueuectlError]:
        session.prune(Plan(dict.fromkeys(FINAL, store.now_ms()), frozenset(ids)))
        left = {job.id: job.state for job in find_jobs(store, ids).values()}
        return find_refusals(
            left, left, able=(), verb="prune", hint=lambda _: "only jobs that have ended can be pruned"
        )

    return apply_to_each(store, refs, remove, exact=exact)


ACTIONS: Final = {
    "cancel": Action(control.CANCELLABLE, "cancelled", _cancel),
    "retry": Action(
        control.RETRYABLE, "retried", lambda _, store, refs, exact: control.retry(store, refs, exact=exact)
    ),
    "hold": Action(
        WAITING, "held", lambda _, store, refs, exact: control.hold(store, refs, exact=exact), lambda job: not job.held
    ),
    "release": Action(
        WAITING,
        "released",
        lambda _, store, refs, exact: control.release(store, refs, exact=exact),
        lambda job: job.held,
    ),
    "run-now": Action(
        control.CLAIMABLE, "made due", lambda _, store, refs, exact: control.run_now(store, refs, exact=exact)
    ),
    "prune": Action(FINAL, "pruned", _prune),
    "purge": Action(control.DEAD, "purged", lambda _, store, refs, exact: control.purge_dead(store, refs, exact=exact)),
}
RETRY_DEAD: Final = Action(
    control.DEAD, "retried", lambda _, store, refs, exact: control.retry_dead(store, refs, exact=exact)
)
_ACTION_NAMES: Final = [*ACTIONS, "edit"]


def act_on_jobs(session: StoreSession, call: ApiRequest) -> Any:
    body = parse_object(call.body, "body", known=["action", "ids", "where", "change", "preview"])
    return perform(session, _action(body), body)


def perform(session: StoreSession, action: Action, body: Mapping[str, Any]) -> dict[str, Any]:
    """Act on `ids`, or on the jobs that match `where`. `{}` there means all jobs, so one of the two is required."""
    if (body.get("ids") is None) == (body.get("where") is None):
        raise UsageError("expected either ids or where", hint='like {"where": {"queue": "mail"}} or {"ids": ["7f3a"]}')
    is_preview = parse_flag(body, "preview")
    if body.get("ids") is not None:
        ids, is_exact = list(parse_texts(body["ids"], "ids")), False
        if is_preview:
            found = find_jobs(session.reads, resolve_ids(session.reads, ids).done).values()
            return _preview([(job.id, job.state) for job in found if job.state in action.able])
    else:
        where = restrict_states(
            parse_where(body["where"], session.reads), action.able, done=action.done, subject="state"
        )
        chosen = [job for job in session.reads.choose(where) if action.wants(job)]
        if is_preview:
            return _preview([(job.id, job.state) for job in chosen])
        ids, is_exact = [job.id for job in chosen], True
    if ids and not is_exact and not (picked := resolve_ids(session.reads, ids)).done:
        return picked.to_dict()  # none of them exists: do not create a database
    return (action.do(session, session.open_store(), ids, is_exact) if ids else BulkResult([], [])).to_dict()


def _action(body: Mapping[str, Any]) -> Action:
    name = body.get("action")
    if name == "edit":
        return _edit(body.get("change"))
    if body.get("change") is not None:
        raise InvalidInput("change", "is allowed with the action edit only", hint="omit it")
    if not isinstance(name, str):
        raise InvalidInput(
            "action", f"expected a text, got {short_repr(name)}", hint=f"one of: {', '.join(_ACTION_NAMES)}"
        )
    if name not in ACTIONS:
        raise UnknownName("action", name, nearest=closest_match(name, _ACTION_NAMES), known=_ACTION_NAMES)
    return ACTIONS[name]


def _edit(fields: object) -> Action:
    if not isinstance(fields, dict) or (change := parse_edit(fields)) == JobEdit():
        raise InvalidInput(
            "change", f"expected fields to change, got {short_repr(fields)}", hint='like {"priority": 5}'
        )
    return Action(WAITING, "edited", lambda _, store, refs, exact: control.edit(store, refs, change, exact=exact))


def _preview(chosen: Sequence[tuple[str, State]]) -> dict[str, Any]:
    counts = dict.fromkeys((state.value for state in State), 0)
    for _, state in chosen:
        counts[state.value] += 1
    return {"count": len(chosen), "states": counts, "sample": [job_id for job_id, _ in chosen[:PREVIEW_SIZE]]}


TARGETS: Final = optional(ids=array(ID), where=WHERE_SCHEMA, preview=FLAG)

OPERATIONS: Final = (
    Operation(
        "POST",
        "/jobs/actions",
        act_on_jobs,
        "Act on many jobs: those named, or all that match. `preview` only counts them.",
        ref("Acted"),
        body={
            "type": "object",
            "additionalProperties": False,
            "required": ["action"],
            "properties": {
                "action": {"type": "string", "enum": _ACTION_NAMES},
                **TARGETS,
                **optional(change=ref("Change")),
            },
        },
        slow=True,
    ),
)


_DLQ_FIELDS: Final = ("ids", "where", "preview")


def list_dead(session: StoreSession, call: ApiRequest) -> Any:
    return job_page(session, {**call.query, "state": (State.DEAD.value,)})


def show_dead(session: StoreSession, call: ApiRequest) -> Any:
    return job_shown(session, use.require_dead(session.reads, call.path["id"]))


def dead_by_error(session: StoreSession, call: ApiRequest) -> Any:
    found = session.reads.dead_by_error(limit=call.query["limit"])
    return [
        {"error": one.error, "queue": one.queue, "jobs": one.jobs, "newest": one.newest, "at": iso(from_ms(one.at_ms))}
        for one in found
    ]


def retry_dead(session: StoreSession, call: ApiRequest) -> Any:
    return perform(session, RETRY_DEAD, parse_object(call.body, "body", known=list(_DLQ_FIELDS)))


def purge_dead(session: StoreSession, call: ApiRequest) -> Any:
    return perform(session, ACTIONS["purge"], parse_object(call.body, "body", known=list(_DLQ_FIELDS)))


_ERROR_GROUP: Final = exactly(error=TEXT, queue=maybe("string"), jobs=COUNT, newest=TEXT, at=TIME)
_DLQ_BODY: Final = {"type": "object", "additionalProperties": False, "properties": TARGETS}
_DLQ_SELECTORS: Final = tuple(param for param in SELECTORS if param.name != "state")

DLQ_OPERATIONS: Final = (
    Operation(
        "GET",
        "/dlq",
        list_dead,
        "List dead jobs.",
        ref("Jobs"),
        (*_DLQ_SELECTORS, SORT, LIMIT, CURSOR),
        tag="dlq",
    ),
    Operation(
        "GET",
        "/deaths",
        dead_by_error,
        f"Group the last {MAX_DEAD_GROUPED:,} dead jobs by error, the most frequent first; `newest` is the job that died last.",
        array(_ERROR_GROUP),
        (LIMIT,),
        tag="dlq",
    ),
    Operation(
        "POST",
        "/dlq/retry",
        retry_dead,
        "Retry dead jobs: those named, or all that match.",
        ref("Acted"),
        body=_DLQ_BODY,
        tag="dlq",
        slow=True,
    ),
    Operation(
        "POST",
        "/dlq/purge",
        purge_dead,
        "Remove dead jobs with their history and logs: those named, or all that match.",
        ref("Acted"),
        body=_DLQ_BODY,
        tag="dlq",
        slow=True,
    ),
    Operation("GET", "/dlq/{id}", show_dead, "Show a dead job.", ref("Shown"), tag="dlq"),
)
