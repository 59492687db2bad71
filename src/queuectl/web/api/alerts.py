"""Alerts: list, add, remove and test them. web/background.py evaluates them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from queuectl.alerts import operations as use
from queuectl.alerts.rules import Kind
from queuectl.config import working_directory
from queuectl.store.alerts import NotificationStatus
from queuectl.web.api.operation import PAGING, ApiRequest, Created, Operation, listing, paginate, parse_object
from queuectl.web.background import alert_delivery
from queuectl.web.middleware import Refused
from queuectl.web.schemas import (
    COUNT,
    DURATION,
    NUMBER,
    TEXT,
    TIME,
    TIME_OR_NULL,
    Schema,
    exactly,
    maybe,
    optional,
    ref,
)
from queuectl.web.store_threads import StoreSession


def list_alerts(session: StoreSession, call: ApiRequest) -> Any:
    return paginate(call, use.to_dicts(session.reads, session.reads.alerts()), name="name")


def show_alert(session: StoreSession, call: ApiRequest) -> Any:
    return use.to_dicts(session.reads, [session.reads.alert(call.path["name"])])[0]


def add_alert(session: StoreSession, call: ApiRequest) -> Any:
    body = parse_object(call.body, "body", known=list(_NEW["properties"]))
    if body.get("command") is not None and not session.accepts_alert_commands:
        # A command runs on this host: only its operator may allow clients to set one.
        detail = "command: this server does not accept alert commands over HTTP"
        hint = "give webhook instead; the operator can start the server with --allow-alert-commands"
        raise Refused(HTTPStatus.FORBIDDEN, "alert-commands-off", detail, hint=hint)
    fields = {"hold" if name == "for" else name: value for name, value in body.items()}
    request = use.AlertRequest(**{"name": None, **fields})
    added = use.add(request, cwd=working_directory(), reads=lambda: session.reads, open_store=session.open_store)
    return Created(added.to_dict(), location=f"/alerts/{added.name}")


def remove_alert(session: StoreSession, call: ApiRequest) -> Any:
    answer = use.remove_all([call.path["name"]], reads=lambda: session.reads, open_store=session.open_store)
    for _, error in answer.refused:
        raise error
    return {"done": answer.done, "refused": []}


def test_alert(session: StoreSession, call: ApiRequest) -> Any:
    name = call.path["name"]
    session.reads.alert(name)  # before a database is created only to find that it has no such alert
    return {"name": name, "state": "test", "text": alert_delivery(session).test(name)}


_STATE: Final[Schema] = {"type": "string", "enum": ["ok", "firing"]}
_ALERT: Final = exactly(
    name=TEXT,
    kind={"type": "string", "enum": [kind.value for kind in Kind]},
    threshold=NUMBER,
    within=maybe("number"),
    queue=maybe("string"),
    **{"for": NUMBER},
    repeat=maybe("number"),
    webhook=maybe("string"),
    command=maybe("string"),
    state=_STATE,
    value=maybe("number"),
    changed_at=TIME_OR_NULL,
    checked_at=TIME_OR_NULL,
    told_at=TIME_OR_NULL,
    message={"type": ["string", "null"], "enum": [*(fate.value for fate in NotificationStatus), None]},
    untold=COUNT,
    created_at=TIME,
)
_NEW: Final[Schema] = {
    "type": "object",
    "description": "One of dead, oldest and no_worker, and one of webhook and command. "
    "A command is accepted only if the server was started with --allow-alert-commands, else the answer is 403.",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": TEXT,
        **optional(
            dead={"type": "integer", "minimum": 1, "maximum": use.MAX_DEAD_JOBS},
            within=DURATION,
            oldest=DURATION,
            no_worker=DURATION,
            queue={"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"},
            **{"for": DURATION},
            repeat=DURATION,
            webhook=TEXT,
            command={"type": "string", "minLength": 1},
        ),
    },
}

OPERATIONS: Final = (
    Operation("GET", "/alerts", list_alerts, "List alerts with their state.", listing(_ALERT), PAGING, tag="alerts"),
    Operation("POST", "/alerts", add_alert, "Add an alert.", _ALERT, body=_NEW, status=201, tag="alerts"),
    Operation("GET", "/alerts/{name}", show_alert, "Show an alert.", _ALERT, tag="alerts"),
    Operation("DELETE", "/alerts/{name}", remove_alert, "Remove an alert.", ref("Answer"), tag="alerts"),
    Operation(
        "POST",
        "/alerts/{name}/test",
        test_alert,
        "Call its webhook or run its command now, from the server. Recorded in the audit log.",
        exactly(name=TEXT, state=TEXT, text=TEXT),
        tag="alerts",
        slow=True,
    ),
)
