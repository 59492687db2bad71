"""Alerts: who is told when things go wrong. The server looks at them by itself, see web/alerting.py."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from queuectl.config import working_directory
from queuectl.job.alert import Kind
from queuectl.queue import alerts as use
from queuectl.store.messages import Fate
from queuectl.web.alerting import teller
from queuectl.web.api.listing import PAGING, listing, page
from queuectl.web.api.operation import Call, Made, Operation, Room
from queuectl.web.api.schemas import (
    COUNT,
    DURATION,
    MOMENT,
    MOMENT_OR_NULL,
    NUMBER,
    TEXT,
    Schema,
    exactly,
    maybe,
    optional,
    ref,
)
from queuectl.web.api.words import an_object
from queuectl.web.desk import Desk
from queuectl.web.problems import Refused


def list_alerts(desk: Desk, call: Call) -> Any:
    return page(call, use.to_dicts(desk.reads, desk.reads.alerts()), name="name")


def show_alert(desk: Desk, call: Call) -> Any:
    return use.to_dicts(desk.reads, [desk.reads.alert(call.path["name"])])[0]


def add_alert(desk: Desk, call: Call) -> Any:
    said = an_object(call.body, "body", known=list(_NEW["properties"]))
    if said.get("command") is not None and not desk.accepts_alert_commands:
        # A command runs on this host, as far as its policy allows. Whether clients may choose one, its operator decides.
        detail = "command: this server does not accept alert commands over HTTP"
        hint = "give webhook instead; the operator can start the server with --allow-alert-commands"
        raise Refused(HTTPStatus.FORBIDDEN, "alert-commands-off", detail, hint=hint)
    said = {"hold" if name == "for" else name: value for name, value in said.items()}
    wish = use.Wish(**{"name": None, **said})
    added = use.add(wish, cwd=working_directory(), reads=lambda: desk.reads, open_store=desk.open_store)
    return Made(added.to_dict(), location=f"/alerts/{added.name}")


def remove_alert(desk: Desk, call: Call) -> Any:
    answer = use.remove_all([call.path["name"]], reads=lambda: desk.reads, open_store=desk.open_store)
    for _, error in answer.refused:
        raise error
    return {"done": answer.done, "refused": []}


def test_alert(desk: Desk, call: Call) -> Any:
    name = call.path["name"]
    desk.reads.alert(name)  # before a database is created only to find that it has no such alert
    return {"name": name, "state": "test", "text": teller(desk).test(name)}


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
    changed_at=MOMENT_OR_NULL,
    checked_at=MOMENT_OR_NULL,
    told_at=MOMENT_OR_NULL,
    message={"type": ["string", "null"], "enum": [*(fate.value for fate in Fate), None]},
    untold=COUNT,
    created_at=MOMENT,
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
            dead={"type": "integer", "minimum": 1, "maximum": use.MOST_DEAD},
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
    Operation("GET", "/alerts", list_alerts, "All alerts, and how each stands.", listing(_ALERT), PAGING, tag="alerts"),
    Operation("POST", "/alerts", add_alert, "Add an alert.", _ALERT, body=_NEW, status=201, tag="alerts"),
    Operation("GET", "/alerts/{name}", show_alert, "One alert.", _ALERT, tag="alerts"),
    Operation("DELETE", "/alerts/{name}", remove_alert, "Remove an alert.", ref("Answer"), tag="alerts"),
    Operation(
        "POST",
        "/alerts/{name}/test",
        test_alert,
        "Call its webhook or run its command now, from the server. The audit log records it.",
        exactly(name=TEXT, state=TEXT, text=TEXT),
        tag="alerts",
        room=Room.WAIT,
    ),
)
