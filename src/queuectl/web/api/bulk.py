"""Actions on many jobs, named or selected by a filter, and the dead letter queue. A preview counts the jobs and changes nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, QueuectlError, UnknownName, UsageError
from queuectl.jobs.edit import JobEdit, parse_edit
from queuectl.jobs.model import BulkResult, Job
from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.maintenance.pruner import MAX_ROWS, Plan, Pruned, Pruner, prune
from queuectl.operations import control
from queuectl.operations.bulk import apply_to_each, find_jobs, find_refusals, resolve_ids
from queuectl.operations.query import restrict_states
from queuectl.store.store import Store
from queuectl.store.types import Chosen
from queuectl.store_threads import WebSession
from queuectl.text import closest_match, short_repr
from queuectl.units import from_ms, iso
from queuectl.web.api.jobs import PAGE, job_details, job_page
from queuectl.web.api.operation import (
    LIMIT,
    SELECTORS,
    WHERE_SCHEMA,
    ApiRequest,
    Operations,
    parse_where,
)
from queuectl.web.schemas import COUNT, FLAG, ID, TEXT, TIME, array, exactly, maybe, only, ref

BULK: Final = Operations("jobs")
DLQ: Final = Operations("dlq")

PREVIEW_SIZE: Final = 10


def ANY(_: Chosen | Job) -> bool:  # noqa: N802 - the default of Action.wants, which is compared by identity
    return True


class Action(NamedTuple):
    able: frozenset[State]
    done: str  # past participle, for messages
    do: Callable[[WebSession, Store, Iterable[str], bool], BulkResult]
    wants: Callable[[Chosen | Job], bool] = ANY  # whether a matching job would change


def _action(
    able: frozenset[State], done: str, change: Callable[..., BulkResult], wants: Callable[[Chosen | Job], bool] = ANY
) -> Action:
    """An action that needs the store only."""
    return Action(able, done, lambda _, store, refs, exact: change(store, refs, exact=exact), wants)


def _cancel(session: WebSession, store: Store, refs: Iterable[str], exact: bool) -> BulkResult:
    return control.cancel(store, session.clock, refs, rescue=session.rescue, exact=exact)


def run_pruner(session: WebSession, plan: Plan) -> Pruned:
    pruner = Pruner(session.open_store(), home=session.home, writer=f"prune-{os.getpid()}", rows=MAX_ROWS)
    return prune(pruner, plan, clock=session.clock, advance=lambda _: None)


def _prune(session: WebSession, store: Store, refs: Iterable[str], exact: bool) -> BulkResult:
    def remove(ids: Sequence[str]) -> Mapping[str, QueuectlError]:
        run_pruner(session, Plan(dict.fromkeys(FINAL, store.now_ms()), frozenset(ids)))
        left = {job.id: job.state for job in find_jobs(store, ids).values()}
        hint = "only jobs that have ended can be pruned"
        return find_refusals(left, left, able=(), verb="prune", hint=lambda _: hint)

    return apply_to_each(store, refs, remove, exact=exact)


def edit_action(change: JobEdit) -> Action:
    return Action(WAITING, "edited", lambda _, store, refs, exact: control.edit(store, refs, change, exact=exact))


ACTIONS: Final = {
    "cancel": Action(control.CANCELLABLE, "cancelled", _cancel),
    "retry": _action(control.RETRYABLE, "retried", control.retry),
    "hold": _action(WAITING, "held", control.hold, lambda job: not job.held),
    "release": _action(WAITING, "released", control.release, lambda job: job.held),
    "run-now": _action(control.CLAIMABLE, "made due", control.run_now),
    "prune": Action(FINAL, "pruned", _prune),
    "purge": _action(control.DEAD, "purged", control.purge_dead),
}
_RETRY_DEAD: Final = _action(control.DEAD, "retried", control.retry_dead)
_ACTION_NAMES: Final = [*ACTIONS, "edit"]
_TARGETS: Final = {"ids": array(ID), "where": WHERE_SCHEMA, "preview": FLAG}


@BULK(
    "POST /jobs/actions",
    "Act on many jobs: the given IDs, or all that match. With `preview`, only count them.",
    ref("Acted"),
    body=only("action", action={"type": "string", "enum": _ACTION_NAMES}, **_TARGETS, change=ref("Change")),
    slow=True,
)
def act_on_jobs(session: WebSession, call: ApiRequest) -> Any:
    return _perform(session, _parse_action(call.body), call.body)


def _perform(session: WebSession, action: Action, body: Mapping[str, Any]) -> dict[str, Any]:
    """Act on `ids`, or on the jobs that match `where`. `{}` there means all jobs, so one of the two is required."""
    if (body.get("ids") is None) == (body.get("where") is None):
        raise UsageError(
            "expected either ids or where", hint='for example {"where": {"queue": "mail"}} or {"ids": ["7f3a"]}'
        )
    if body.get("ids") is not None:
        ids, is_exact = list(body["ids"]), False
        if body.get("preview"):
            found = find_jobs(session.reads, resolve_ids(session.reads, ids).done).values()
            return _preview([job for job in found if job.state in action.able])
    else:
        where = parse_where(body["where"], session.reads)
        where = restrict_states(where, action.able, done=action.done, subject="state")
        chosen = [job for job in session.reads.choose(where) if action.wants(job)]
        if body.get("preview"):
            return _preview(chosen)
        ids, is_exact = [job.id for job in chosen], True
    if ids and not is_exact and not (picked := resolve_ids(session.reads, ids)).done:
        return picked.to_dict()  # none of them exists: do not create a database
    return (action.do(session, session.open_store(), ids, is_exact) if ids else BulkResult([], [])).to_dict()


def _parse_action(body: Mapping[str, Any]) -> Action:
    name, fields = body.get("action"), body.get("change")
    if name == "edit":
        if not isinstance(fields, dict) or (change := parse_edit(fields)) == JobEdit():
            problem = f"expected fields to change, got {short_repr(fields)}"
            raise InvalidInput("change", problem, hint='for example {"priority": 5}')
        return edit_action(change)
    if fields is not None:
        raise InvalidInput("change", "is allowed with the action edit only", hint="omit it")
    if name is None:
        raise InvalidInput("action", "expected a text, got null", hint=f"one of: {', '.join(_ACTION_NAMES)}")
    if name not in ACTIONS:
        raise UnknownName("action", name, nearest=closest_match(name, _ACTION_NAMES), known=_ACTION_NAMES)
    return ACTIONS[name]


def _preview(chosen: Sequence[Chosen | Job]) -> dict[str, Any]:
    counts = {state.value: sum(job.state is state for job in chosen) for state in State}
    return {"count": len(chosen), "states": counts, "sample": [job.id for job in chosen[:PREVIEW_SIZE]]}


# ── the dead letter queue ───────────────────────────────────────────────────────────────────────────────────────────

_DLQ_SELECTORS: Final = tuple(param for param in SELECTORS if param.name != "state")


@DLQ("GET /dlq", "List dead jobs.", ref("Jobs"), params=(*_DLQ_SELECTORS, *PAGE))
def list_dead(session: WebSession, call: ApiRequest) -> Any:
    return job_page(session, {**call.query, "state": (State.DEAD.value,)})


@DLQ(
    "GET /deaths",
    "Group dead jobs by error and last output, without numbers, IDs and paths, most frequent first. `fingerprint` selects the jobs of a group; "
    "`newest` is the job that died last, which has this `error` and `last_output`.",
    array(
        exactly(
            **dict.fromkeys(("fingerprint", "error"), TEXT),
            **dict.fromkeys(("last_output", "queue"), maybe("string")),
            jobs=COUNT,
            newest=TEXT,
            at=TIME,
        )
    ),
    params=(LIMIT,),
)
def dead_by_error(session: WebSession, call: ApiRequest) -> Any:
    fields = ("fingerprint", "error", "last_output", "queue", "jobs", "newest")
    return [
        {**{name: getattr(one, name) for name in fields}, "at": iso(from_ms(one.at_ms))}
        for one in session.reads.failures(limit=call.query["limit"])
    ]


@DLQ(
    "POST /dlq/retry",
    "Retry dead jobs: the given IDs, or all that match.",
    ref("Acted"),
    body=only(**_TARGETS),
    slow=True,
)
def retry_dead(session: WebSession, call: ApiRequest) -> Any:
    return _perform(session, _RETRY_DEAD, call.body)


@DLQ(
    "POST /dlq/purge",
    "Remove dead jobs with their history and logs: the given IDs, or all that match.",
    ref("Acted"),
    body=only(**_TARGETS),
    slow=True,
)
def purge_dead(session: WebSession, call: ApiRequest) -> Any:
    return _perform(session, ACTIONS["purge"], call.body)


@DLQ("GET /dlq/{id}", "Show a dead job.", ref("Shown"))
def show_dead(session: WebSession, call: ApiRequest) -> Any:
    return job_details(session, control.require_dead(session.reads, call.path["id"]))
