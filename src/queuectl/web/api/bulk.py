"""Many jobs at once: those named, or all that match. A preview tells how many that would be, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from queuectl.clock import SystemClock
from queuectl.errors import InvalidInput, UsageError
from queuectl.job.change import read_change
from queuectl.job.lifecycle import WAITING, State
from queuectl.job.nearest import nearest
from queuectl.job.shown import shown
from queuectl.queue import amend, control, dlq
from queuectl.queue.filters import able_only
from queuectl.queue.pick import Answer
from queuectl.store.protocol import Store
from queuectl.web.api.operation import Call, Operation, Room
from queuectl.web.api.schemas import COUNT, FLAG, STATES, TEXT, array, exactly, ref
from queuectl.web.api.words import WHERE_SCHEMA, an_object, texts, where_of
from queuectl.web.desk import Desk

Do = Callable[[Desk, Store, Iterable[str], bool], Answer]


class Action(NamedTuple):
    able: frozenset[State]
    done: str  # what is said of a job that it was done to
    do: Do


def _cancel(desk: Desk, store: Store, refs: Iterable[str], exact: bool) -> Answer:
    return control.cancel(store, SystemClock(), refs, rescue=desk.rescue, exact=exact)


ACTIONS: Final = {
    "cancel": Action(control.CANCELLABLE, "cancelled", _cancel),
    "retry": Action(
        control.REVIVABLE, "retried", lambda _, store, refs, exact: control.retry(store, refs, exact=exact)
    ),
    "hold": Action(WAITING, "held", lambda _, store, refs, exact: amend.hold(store, refs, exact=exact)),
    "release": Action(WAITING, "released", lambda _, store, refs, exact: amend.release(store, refs, exact=exact)),
    "run-now": Action(
        amend.CLAIMABLE, "made due", lambda _, store, refs, exact: amend.run_now(store, refs, exact=exact)
    ),
    "purge": Action(dlq.DEAD, "purged", lambda _, store, refs, exact: dlq.purge(store, refs, exact=exact)),
}
_KNOWN: Final = [*ACTIONS, "edit"]


def act_on_jobs(desk: Desk, call: Call) -> Any:
    """By ids, or by `where`; `{}` there means all, so one of the two has to be said."""
    said = an_object(call.body, "body", known=["action", "ids", "where", "change", "preview"])
    action = _action(said)
    if ("ids" in said) == ("where" in said):
        raise UsageError("expected either ids or where", hint='like {"action": "retry", "where": {"state": "dead"}}')
    ids: Iterable[str]
    if "ids" in said:
        ids, exact = texts(said["ids"], "ids"), False
    else:
        where = able_only(where_of(said["where"], desk.reads), action.able, done=action.done, subject="state")
        if said.get("preview") is True:
            return _preview(desk, where)
        ids, exact = [job.id for job in desk.reads.choose(where)], True
    return (action.do(desk, desk.open_store(), ids, exact) if ids else Answer([], [])).to_dict()


def _action(said: dict[str, Any]) -> Action:
    name = said.get("action")
    if name == "edit":
        change = read_change(an_object_or_refuse(said.get("change")))
        return Action(WAITING, "edited", lambda _, store, refs, exact: amend.edit(store, refs, change, exact=exact))
    if not isinstance(name, str) or name not in ACTIONS:
        close = nearest(name, _KNOWN) if isinstance(name, str) else None
        hint = f"did you mean {close!r}?" if close else f"one of: {', '.join(_KNOWN)}"
        raise InvalidInput("action", f"unknown: {shown(name)}", hint=hint)
    return ACTIONS[name]


def an_object_or_refuse(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise InvalidInput("change", f"expected the fields to change, got {shown(value)}", hint='like {"priority": 5}')


def _preview(desk: Desk, where: Any) -> dict[str, Any]:
    chosen = desk.reads.choose(where)
    counts = dict.fromkeys((state.value for state in State), 0)
    for job in chosen:
        counts[job.state.value] += 1
    return {"count": len(chosen), "states": counts, "sample": [job.id for job in chosen[:10]]}


OPERATIONS: Final = (
    Operation(
        "POST",
        "/jobs/actions",
        act_on_jobs,
        "Do something to many jobs: those named, or all that match. `preview` only counts them.",
        {"oneOf": [ref("Answer"), exactly(count=COUNT, states=STATES, sample=array(TEXT))]},
        body={
            "type": "object",
            "additionalProperties": False,
            "required": ["action"],
            "properties": {
                "action": {"type": "string", "enum": _KNOWN},
                "ids": array(TEXT),
                "where": WHERE_SCHEMA,
                "change": {"type": "object"},
                "preview": FLAG,
            },
        },
        room=Room.WAIT,
    ),
)
