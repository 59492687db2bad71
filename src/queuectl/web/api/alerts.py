"""Alerts: list, add, remove and test them; and evaluate them while the server runs."""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any, Final

from queuectl.alerts import operations as use
from queuectl.alerts.delivery import AlertDelivery
from queuectl.clock import Cancelled
from queuectl.config import environ, working_directory
from queuectl.errors import QueuectlError
from queuectl.store_threads import StorePool, WebSession
from queuectl.web.api.operation import PAGING, ApiRequest, Created, Operations, listing, paginate
from queuectl.web.middleware import Refused
from queuectl.web.schemas import NEW_ALERT, TEXT, exactly, ref

ALERTS: Final = Operations("alerts")
INTERVAL_SECONDS: Final = 5.0
RETRY_SECONDS: Final = 30.0  # after an error

_log: Final = logging.getLogger(__name__)


@ALERTS("GET /alerts", "List alerts with their state.", listing(ref("Alert")), params=PAGING)
def list_alerts(session: WebSession, call: ApiRequest) -> Any:
    return paginate(call, use.to_dicts(session.reads, session.reads.alerts()), name="name")


@ALERTS("POST /alerts", "Add an alert.", ref("Alert"), body=NEW_ALERT, status=201)
def add_alert(session: WebSession, call: ApiRequest) -> Any:
    if call.body.get("command") is not None and not session.accepts_alert_commands:
        # A command runs on this host: only its operator may allow clients to set one.
        detail = "command: this server does not accept alert commands over HTTP"
        hint = "give webhook instead; the operator can start the server with --allow-alert-commands"
        raise Refused(HTTPStatus.FORBIDDEN, "alert-commands-off", detail, hint=hint)
    fields = {"hold" if name == "for" else name: value for name, value in call.body.items()}
    request = use.AlertRequest(**{"name": None, **fields})
    added = use.add(request, cwd=working_directory(), reads=lambda: session.reads, open_store=session.open_store)
    return Created(added.to_dict(), location=f"/alerts/{added.name}")


@ALERTS("GET /alerts/{name}", "Show an alert.", ref("Alert"))
def show_alert(session: WebSession, call: ApiRequest) -> Any:
    return use.to_dicts(session.reads, [session.reads.alert(call.path["name"])])[0]


@ALERTS("DELETE /alerts/{name}", "Remove an alert.", ref("Answer"))
def remove_alert(session: WebSession, call: ApiRequest) -> Any:
    answer = use.remove_all([call.path["name"]], reads=lambda: session.reads, open_store=session.open_store)
    for _, error in answer.refused:
        raise error
    return {"done": answer.done, "refused": []}


@ALERTS(
    "POST /alerts/{name}/test",
    "Call its webhook or run its command now, from the server. Recorded in the audit log.",
    exactly(name=TEXT, state=TEXT, text=TEXT),
    slow=True,
)
def test_alert(session: WebSession, call: ApiRequest) -> Any:
    name = call.path["name"]
    session.reads.alert(name)  # before a database is created only to find that it has no such alert
    return {"name": name, "state": "test", "text": alert_delivery(session).test(name)}


async def check_alerts(pool: StorePool[WebSession]) -> None:
    """Evaluate the alerts periodically until the server stops."""
    reported: str | None = None
    while True:
        seconds = INTERVAL_SECONDS
        try:
            await pool.ask(_check)
            reported = None
        except Cancelled:
            return
        except QueuectlError as error:
            if error.message != reported:  # once, not at every check
                reported = error.message
                _log.warning("alerts cannot be evaluated: %s", error.message)
            seconds = RETRY_SECONDS
        await asyncio.sleep(seconds)


def _check(session: WebSession) -> None:
    if not session.has_store or not session.reads.alerts():
        return
    for sent in alert_delivery(session).check():
        if sent.error is not None:
            _log.warning("the notification of the alert %s failed: %s", sent.alert.name, sent.error.message)


def alert_delivery(session: WebSession) -> AlertDelivery:
    """Deliver alerts with the current policy; if its file is unusable, with the previous one."""
    session.gate.policy.follow(lambda _: None, lambda problem: _log.warning("%s", problem))
    return AlertDelivery(
        session.open_store(), lambda: session.settings, environ(), gate=session.gate, clock=session.clock
    )
