"""Many jobs at once: those named, or all that match. A preview tells how many that would be, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, QueuectlError, UnknownName, UsageError
from queuectl.job.change import Change, read_change
from queuectl.job.lifecycle import FINAL, WAITING, State
from queuectl.job.model import Job
from queuectl.job.nearest import nearest
from queuectl.job.shown import shown
from queuectl.queue import amend, control, dlq
from queuectl.queue.filters import able_only
from queuectl.queue.pick import Answer, find, for_each, pick, refuse
from queuectl.store.protocol import Chosen, Store
from queuectl.upkeep.prune import Plan
from queuectl.web.api.operation import Call, Operation, Room
from queuectl.web.api.schemas import FLAG, ID, array, optional, ref
from queuectl.web.api.words import WHERE_SCHEMA, a_flag, an_object, texts, where_of
from queuectl.web.desk import Desk

Do = Callable[[Desk, Store, Iterable[str], bool], Answer]
SAMPLE: Final = 10
ANY: Final[Callable[[Chosen | Job], bool]] = lambda _: True  # noqa: E731 - a constant, and known by its name


class Action(NamedTuple):
    able: frozenset[State]
    done: str  # what is said of a job that it was done to
    do: Do
    wants: Callable[[Chosen | Job], bool] = ANY  # of those that match: whether there is something to do


def _cancel(desk: Desk, store: Store, refs: Iterable[str], exact: bool) -> Answer:
    return control.cancel(store, desk.clock, refs, rescue=desk.rescue, exact=exact)


def _prune(desk: Desk, store: Store, refs: Iterable[str], exact: bool) -> Answer:
    def remove(ids: Sequence[str]) -> Mapping[str, QueuectlError]:
        desk.prune(Plan(dict.fromkeys(FINAL, store.now_ms()), frozenset(ids)))
        left = {job.id: job.state for job in find(store, ids).values()}
        return refuse(left, left, able=(), verb="prune", hint=lambda _: "only jobs that have ended can be pruned")

    return for_each(store, refs, remove, exact=exact)


ACTIONS: Final = {
    "cancel": Action(control.CANCELLABLE, "cancelled", _cancel),
    "retry": Action(
        control.REVIVABLE, "retried", lambda _, store, refs, exact: control.retry(store, refs, exact=exact)
    ),
    "hold": Action(
        WAITING, "held", lambda _, store, refs, exact: amend.hold(store, refs, exact=exact), lambda job: not job.held
    ),
    "release": Action(
        WAITING, "released", lambda _, store, refs, exact: amend.release(store, refs, exact=exact), lambda job: job.held
    ),
    "run-now": Action(
        amend.CLAIMABLE, "made due", lambda _, store, refs, exact: amend.run_now(store, refs, exact=exact)
    ),
    "prune": Action(FINAL, "pruned", _prune),
    "purge": Action(dlq.DEAD, "purged", lambda _, store, refs, exact: dlq.purge(store, refs, exact=exact)),
}
RETRY_DEAD: Final = Action(dlq.DEAD, "retried", lambda _, store, refs, exact: dlq.retry(store, refs, exact=exact))
_KNOWN: Final = [*ACTIONS, "edit"]


def act_on_jobs(desk: Desk, call: Call) -> Any:
    said = an_object(call.body, "body", known=["action", "ids", "where", "change", "preview"])
    return act_on_chosen(desk, _action(said), said)


def act_on_chosen(desk: Desk, action: Action, said: Mapping[str, Any]) -> dict[str, Any]:
    """By ids, or by `where`; `{}` there means all, so one of the two has to be said."""
    if (said.get("ids") is None) == (said.get("where") is None):
        raise UsageError("expected either ids or where", hint='like {"where": {"queue": "mail"}} or {"ids": ["7f3a"]}')
    is_preview = a_flag(said, "preview")
    if said.get("ids") is not None:
        ids, is_exact = list(texts(said["ids"], "ids")), False
        if is_preview:
            found = find(desk.reads, pick(desk.reads, ids).done).values()
            return _preview([(job.id, job.state) for job in found if job.state in action.able])
    else:
        where = able_only(where_of(said["where"], desk.reads), action.able, done=action.done, subject="state")
        chosen = [job for job in desk.reads.choose(where) if action.wants(job)]
        if is_preview:
            return _preview([(job.id, job.state) for job in chosen])
        ids, is_exact = [job.id for job in chosen], True
    if ids and not is_exact and not (picked := pick(desk.reads, ids)).done:
        return picked.to_dict()  # where there is none of them, no store is made to say so
    return (action.do(desk, desk.open_store(), ids, is_exact) if ids else Answer([], [])).to_dict()


def _action(said: Mapping[str, Any]) -> Action:
    name = said.get("action")
    if name == "edit":
        return _edit(said.get("change"))
    if said.get("change") is not None:
        raise InvalidInput("change", "it is for the action edit", hint="leave it away")
    if not isinstance(name, str):
        raise InvalidInput("action", f"expected a text, got {shown(name)}", hint=f"one of: {', '.join(_KNOWN)}")
    if name not in ACTIONS:
        raise UnknownName("action", name, nearest=nearest(name, _KNOWN), known=_KNOWN)
    return ACTIONS[name]


def _edit(fields: object) -> Action:
    if not isinstance(fields, dict) or (change := read_change(fields)) == Change():
        raise InvalidInput("change", f"expected fields to change, got {shown(fields)}", hint='like {"priority": 5}')
    return Action(WAITING, "edited", lambda _, store, refs, exact: amend.edit(store, refs, change, exact=exact))


def _preview(chosen: Sequence[tuple[str, State]]) -> dict[str, Any]:
    counts = dict.fromkeys((state.value for state in State), 0)
    for _, state in chosen:
        counts[state.value] += 1
    return {"count": len(chosen), "states": counts, "sample": [job_id for job_id, _ in chosen[:SAMPLE]]}


TARGETS: Final = optional(ids=array(ID), where=WHERE_SCHEMA, preview=FLAG)

OPERATIONS: Final = (
    Operation(
        "POST",
        "/jobs/actions",
        act_on_jobs,
        "Do something to many jobs: those named, or all that match. `preview` only counts them.",
        ref("Acted"),
        body={
            "type": "object",
            "additionalProperties": False,
            "required": ["action"],
            "properties": {"action": {"type": "string", "enum": _KNOWN}, **TARGETS, **optional(change=ref("Change"))},
        },
        room=Room.WAIT,
    ),
)
