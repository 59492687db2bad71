"""The pages of alerts: their state, forms to add, change, pause, test and remove them, and their notifications."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from queuectl.alerts import operations as use
from queuectl.alerts.rules import Alert, Kind
from queuectl.config import working_directory
from queuectl.errors import (
    CommandFailed,
    CommandRefused,
    InvalidInput,
    QueuectlError,
    Unavailable,
    WebhookRefused,
    WebhookUnanswered,
)
from queuectl.jobs.model import BulkResult
from queuectl.store.alerts import LastNotification, last_notifications, stored_notifications
from queuectl.store_threads import WebSession
from queuectl.text import escape_control
from queuectl.units import format_duration, from_ms
from queuectl.web.api.alerts import alert_context, alert_delivery, alert_request, require_done
from queuectl.web.pages.render import (
    Fields,
    Notice,
    PageRequest,
    Redirect,
    View,
    confirm,
    done,
    part,
    refused,
    refused_form,
    sentence,
)
from queuectl.webhooks.rules import redact_url

MAX_NOTIFICATIONS: Final = 50
CONDITIONS: Final = (
    (Kind.DEAD, "Dead jobs", "number of jobs, e.g. 10"),
    (Kind.OLDEST, "Oldest job waits", "time, e.g. 10m"),
    (Kind.NO_WORKER, "No worker", "time, e.g. 2m"),
)


def show(session: WebSession, ask: PageRequest, error: QueuectlError | None = None) -> View:
    found = session.reads.alerts.all()
    messages = last_notifications(session.reads, found)
    fields = ask.query if error is None else ask.form
    values: dict[str, Any] = {
        "alerts": [_row(one, messages.get(one.name)) for one in found],
        "notifications": _notifications(session, None),
        **_form(session, fields.text, error),
        **refused_form(ask, "/alerts", error),
    }
    return View("alerts.html", "Alerts", values, status=200 if error is None else 422)


def show_one(session: WebSession, ask: PageRequest, error: QueuectlError | None = None) -> View:
    found = session.reads.alerts.get(ask.param("name"))
    present = {
        "kind": found.kind.value,
        "threshold": _text(found, found.threshold),
        "within": _duration(found.within_ms),
        "queue": found.queue or "",
        "for": _duration(found.for_ms or None),
        "repeat": _duration(found.repeat_ms),
        "webhook": "" if found.url is None else redact_url(found.url),
        "command": found.command or "",
    }
    values: dict[str, Any] = {
        **_row(found, last_notifications(session.reads, [found]).get(found.name)),
        "now": None if found.value is None else found.describe(found.value),
        "repeat": _duration(found.repeat_ms),
        "for_": _duration(found.for_ms or None),
        "created_at": from_ms(found.created_ms),
        "notifications": _notifications(session, found.name),
        **_form(session, present.get if error is None else ask.form.text, error),
        **refused_form(ask, f"/alerts/{part(found.name)}", error),
    }
    return View("alert.html", f"Alert {found.name}", values, status=200 if error is None else 422)


def _row(alert: Alert, message: LastNotification | None) -> dict[str, Any]:
    return {
        "name": alert.name,
        "state": alert.state,
        "condition": alert.condition,
        "kind": alert.kind.value,
        "queue": alert.queue,
        "value": None
        if alert.value is None
        else _text(alert, alert.value - alert.value % 1000 * (alert.kind != "dead")),
        "threshold": _text(alert, alert.threshold),
        "hold": _duration(alert.for_ms or None),
        "changed_at": None if alert.changed_ms is None else from_ms(alert.changed_ms),
        "checked_at": None if alert.checked_ms is None else from_ms(alert.checked_ms),
        "told_at": None if alert.told_ms is None else from_ms(alert.told_ms),
        "message": None if message is None else message._asdict(),
        "target": redact_url(alert.url) if alert.url is not None else alert.command,
        "has_command": alert.command is not None,
    }


def _form(session: WebSession, value_of: Callable[[str], str | None], error: QueuectlError | None) -> dict[str, Any]:
    """The values of the form. An error is shown at its field."""
    subject = error.subject if isinstance(error, InvalidInput) else None
    at = "threshold" if subject in {kind.name.lower() for kind in Kind} else subject
    return {
        "value_of": lambda name: value_of(name) or "",
        "error": error,
        "error_at": at,
        "conditions": CONDITIONS,
        "accepts_commands": session.accepts_alert_commands,
    }


def _notifications(session: WebSession, name: str | None) -> Sequence[dict[str, Any]]:
    return [
        {**one._asdict(), "at": datetime.fromisoformat(one.at)}
        for one in stored_notifications(session.reads, name, limit=MAX_NOTIFICATIONS)
    ]


def _text(alert: Alert, value: int) -> str:
    return f"{value:,}" if alert.kind is Kind.DEAD else format_duration(value)


def _duration(ms: int | None) -> str:
    return "" if ms is None else format_duration(ms)


def _given(form: Fields, *, nothing: str | None) -> dict[str, Any]:
    """The fields of the form as the API takes them. `nothing`: the value of an empty field."""
    kind = next((kind for kind in Kind if kind.value == form.one("kind")), Kind.DEAD)
    given: dict[str, Any] = {kind.name.lower(): (form.one("threshold") or "").replace(",", "")}
    for name in ("queue", "for", "repeat", "within"):
        if name != "within" or kind is Kind.DEAD:
            given[name] = form.one(name) or nothing
    return {**given, "webhook": form.one("webhook"), "command": form.text("command")}


def add(session: WebSession, ask: PageRequest) -> View | Redirect:
    try:
        request = alert_request(session, {"name": ask.form.one("name") or "", **_given(ask.form, nothing=None)})
        added = use.add(request, cwd=working_directory(), reads=lambda: session.reads, open_store=session.open_store)
    except Unavailable:
        raise
    except QueuectlError as error:
        return show(session, ask, error)
    return Redirect("/alerts", done(f"Alert {added.name} added"))


def edit(session: WebSession, ask: PageRequest) -> View | Redirect:
    name = ask.param("name")
    before = session.reads.alerts.get(name)
    given = _given(ask.form, nothing=use.NO_VALUE)
    # The form has the redacted URL: the path may be a secret.
    if before.url is not None and given["webhook"] == redact_url(before.url):
        given["webhook"] = None
    if given["command"] == before.command:
        given["command"] = None
    try:
        use.edit(alert_request(session, {"name": name, **given}), alert_context(session), cwd=working_directory())
    except Unavailable:
        raise
    except QueuectlError as error:
        return show_one(session, ask, error)
    return Redirect(f"/alerts/{part(name)}", done(f"Alert {name} changed"))


def set_paused(session: WebSession, ask: PageRequest, *, paused: bool) -> Notice:
    name = ask.param("name")
    return _set_paused(name, paused, session)._replace(undo=partial(_set_paused, name, not paused))


def _set_paused(name: str, paused: bool, session: WebSession) -> Notice:
    _act(session, use.pause_all if paused else use.resume_all, name)
    return done(f"Alert {name} {'paused' if paused else 'resumed'}")


def test(session: WebSession, ask: PageRequest) -> View | Notice:
    name = ask.param("name")
    alert = session.reads.alerts.get(name)
    if not ask.is_confirmed:
        target = "the webhook" if alert.command is None else "its command on this server"
        text = f"Sends a notification with the state test to {target} now. The audit log records it."
        return confirm(ask, "Test", "alert", text, name=name, back="/alerts")
    try:
        text = alert_delivery(session).test(name)
    except (CommandFailed, CommandRefused, WebhookRefused, WebhookUnanswered) as error:
        return refused(sentence(error.message), error.hint)
    return done(f"Test of {name}: {escape_control(text)}")


def remove(session: WebSession, ask: PageRequest) -> View | Redirect:
    name = ask.param("name")
    if not ask.is_confirmed:
        text = "Notifications that are queued are still delivered."
        return confirm(ask, "Remove", "alert", text, name=name, back="/alerts", is_grave=True)
    _act(session, use.remove_all, name)
    return Redirect("/alerts", done(f"Alert {name} removed"))


def _act(session: WebSession, action: Callable[[list[str], use.Context], BulkResult], name: str) -> None:
    require_done(action([name], alert_context(session)))
