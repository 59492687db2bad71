"""Alerts: list, add, remove and test them. web/background.py evaluates them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from queuectl.alerts import operations as use
from queuectl.config import working_directory
from queuectl.web.api.operation import PAGING, ApiRequest, Created, Operations, listing, paginate, parse_object
from queuectl.web.background import alert_delivery
from queuectl.web.middleware import Refused
from queuectl.web.schemas import NEW_ALERT, TEXT, exactly, ref
from queuectl.web.store_threads import StoreSession

ALERTS: Final = Operations("alerts")


@ALERTS.get("/alerts", "List alerts with their state.", listing(ref("Alert")), params=PAGING)
def list_alerts(session: StoreSession, call: ApiRequest) -> Any:
    return paginate(call, use.to_dicts(session.reads, session.reads.alerts()), name="name")


@ALERTS.post("/alerts", "Add an alert.", ref("Alert"), body=NEW_ALERT, status=201)
def add_alert(session: StoreSession, call: ApiRequest) -> Any:
    body = parse_object(call.body, "body", known=list(NEW_ALERT["properties"]))
    if body.get("command") is not None and not session.accepts_alert_commands:
        # A command runs on this host: only its operator may allow clients to set one.
        detail = "command: this server does not accept alert commands over HTTP"
        hint = "give webhook instead; the operator can start the server with --allow-alert-commands"
        raise Refused(HTTPStatus.FORBIDDEN, "alert-commands-off", detail, hint=hint)
    fields = {"hold" if name == "for" else name: value for name, value in body.items()}
    request = use.AlertRequest(**{"name": None, **fields})
    added = use.add(request, cwd=working_directory(), reads=lambda: session.reads, open_store=session.open_store)
    return Created(added.to_dict(), location=f"/alerts/{added.name}")


@ALERTS.get("/alerts/{name}", "Show an alert.", ref("Alert"))
def show_alert(session: StoreSession, call: ApiRequest) -> Any:
    return use.to_dicts(session.reads, [session.reads.alert(call.path["name"])])[0]


@ALERTS.delete("/alerts/{name}", "Remove an alert.", ref("Answer"))
def remove_alert(session: StoreSession, call: ApiRequest) -> Any:
    answer = use.remove_all([call.path["name"]], reads=lambda: session.reads, open_store=session.open_store)
    for _, error in answer.refused:
        raise error
    return {"done": answer.done, "refused": []}


@ALERTS.post(
    "/alerts/{name}/test",
    "Call its webhook or run its command now, from the server. Recorded in the audit log.",
    exactly(name=TEXT, state=TEXT, text=TEXT),
    slow=True,
)
def test_alert(session: StoreSession, call: ApiRequest) -> Any:
    name = call.path["name"]
    session.reads.alert(name)  # before a database is created only to find that it has no such alert
    return {"name": name, "state": "test", "text": alert_delivery(session).test(name)}
