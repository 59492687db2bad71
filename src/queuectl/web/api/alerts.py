"""Alerts: list, add, change, pause, test and remove them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from queuectl.alerts import operations as alerts
from queuectl.alerts.evaluator import AlertDelivery
from queuectl.config import environ, working_directory
from queuectl.jobs.model import BulkResult
from queuectl.store_threads import WebSession
from queuectl.web.api.operation import PAGING, ApiRequest, Created, Operations, listing, paginate
from queuectl.web.middleware import Refused
from queuectl.web.schemas import CHANGED_ALERT, NEW_ALERT, TEXT, exactly, ref

ALERTS: Final = Operations("alerts")

_log: Final = logging.getLogger(__name__)


@ALERTS("GET /alerts", "List alerts with their state.", listing(ref("Alert")), params=PAGING)
def list_alerts(session: WebSession, call: ApiRequest) -> Any:
    return paginate(call, alerts.to_dicts(session.reads, session.reads.alerts.all()), name="name")


@ALERTS("POST /alerts", "Add an alert.", ref("Alert"), body=NEW_ALERT, checks_types=False, status=201)
def add_alert(session: WebSession, call: ApiRequest) -> Any:
    request = alert_request(session, {"name": None, **call.body})
    added = alerts.add(request, cwd=working_directory(), reads=lambda: session.reads, open_store=session.open_store)
    return Created(added.to_dict(), location=f"/alerts/{added.name}")


def alert_request(session: WebSession, given: Mapping[str, Any]) -> alerts.AlertRequest:
    """Raises Refused for a command if this server does not accept one."""
    if given.get("command") is not None and not session.accepts_alert_commands:
        # A command runs on this host: only its operator may allow clients to set one.
        detail = "command: this server does not accept alert commands over HTTP"
        hint = "give webhook instead; the operator can start the server with --allow-alert-commands"
        raise Refused(HTTPStatus.FORBIDDEN, "alert-commands-off", detail, hint=hint)
    return alerts.AlertRequest(**{"hold" if name == "for" else name: value for name, value in given.items()})


def alert_context(session: WebSession) -> alerts.Context:
    return alerts.Context(lambda: session.reads, session.open_store)


@ALERTS("GET /alerts/{name}", "Show an alert with its latest notifications that are stored.", ref("AlertShown"))
def show_alert(session: WebSession, call: ApiRequest) -> Any:
    return alerts.show(session.reads, call.path["name"])


@ALERTS(
    "PATCH /alerts/{name}",
    "Change an alert. Omitted fields keep their value; `none` removes within, queue, repeat or for.",
    ref("AlertShown"),
    body=CHANGED_ALERT,
    checks_types=False,
)
def edit_alert(session: WebSession, call: ApiRequest) -> Any:
    request = alert_request(session, {**call.body, "name": call.path["name"]})
    alerts.edit(request, alert_context(session), cwd=working_directory())
    return show_alert(session, call)


@ALERTS("POST /alerts/{name}/pause", "Pause an alert. It is not evaluated and does not fire.", ref("AlertShown"))
def pause_alert(session: WebSession, call: ApiRequest) -> Any:
    require_done(alerts.pause_all([call.path["name"]], alert_context(session)))
    return show_alert(session, call)


@ALERTS("POST /alerts/{name}/resume", "Resume an alert.", ref("AlertShown"))
def resume_alert(session: WebSession, call: ApiRequest) -> Any:
    require_done(alerts.resume_all([call.path["name"]], alert_context(session)))
    return show_alert(session, call)


@ALERTS("DELETE /alerts/{name}", "Remove an alert.", ref("Answer"))
def remove_alert(session: WebSession, call: ApiRequest) -> Any:
    answer = require_done(alerts.remove_all([call.path["name"]], alert_context(session)))
    return {"done": answer.done, "refused": []}


def require_done(answer: BulkResult) -> BulkResult:
    """Raise the error of the first one that was refused."""
    for _, error in answer.refused:
        raise error
    return answer


@ALERTS(
    "POST /alerts/{name}/test",
    "Send a test notification: call the webhook or run the command on the server. Recorded in the audit log.",
    exactly(name=TEXT, state=TEXT, text=TEXT),
    slow=True,
)
def test_alert(session: WebSession, call: ApiRequest) -> Any:
    name = call.path["name"]
    session.reads.alerts.get(name)  # before a database is created only to find that it has no such alert
    return {"name": name, "state": "test", "text": alert_delivery(session).test(name)}


def alert_delivery(session: WebSession) -> AlertDelivery:
    """Deliver alerts with the current policy; if its file is unusable, with the previous one."""
    session.gate.policy.follow(lambda _: None, lambda problem: _log.warning("%s", problem))
    return AlertDelivery(
        session.open_store(), lambda: session.settings, environ(), gate=session.gate, clock=session.clock
    )
