"""Alerts: what they say, whether anybody looks, and whether those who are to be told can be reached."""

from __future__ import annotations

from typing import Final

from queuectl.alerts.rules import Alert
from queuectl.maintenance.doctor.finding import Finding, Patient, Seen, count, named, note
from queuectl.store.alerts import NotificationStatus, last_notifications
from queuectl.units import format_duration

UNLOOKED_MS: Final = 10 * 60 * 1000
LATE_MS: Final = 10 * 60 * 1000  # nine tries have been made by then, if somebody makes them


def alerts(patient: Patient) -> Seen:
    found = patient.opened.alerts()
    now_ms = patient.opened.now_ms()
    findings = [_firing(alert) for alert in found if alert.is_firing]
    if unlooked := [alert for alert in found if now_ms - (alert.checked_ms or alert.created_ms) > UNLOOKED_MS]:
        since = max(now_ms - (alert.checked_ms or alert.created_ms) for alert in unlooked)
        message = f"nobody has looked at {named([alert.name for alert in unlooked])} for {_whole(since)}"
        hint = "a worker and the dashboard do; from a crontab: queuectl alert check"
        findings.append(note("alert-unchecked", message, hint))
    if untold := [alert for alert in found if alert.untold]:
        message = f"nobody has been told yet of {named([alert.name for alert in untold])}"
        hint = f"see whether they can be reached: queuectl alert test {untold[0].name}"
        findings.append(note("alert-untold", message, hint))
    findings += _unheard(patient, found, now_ms)
    return Seen(f"{count(len(found), 'alert')}, none firing" if found else "none: queuectl alert add", findings)


def _unheard(patient: Patient, found: list[Alert], now_ms: int) -> list[Finding]:
    """Of whom the last message is a job that has not done its work."""
    messages = last_notifications(patient.opened, found)
    findings = []
    for alert in found:
        fate, job = messages.get(alert.name, (None, None))
        age = now_ms - (alert.told_ms or now_ms)
        if fate is NotificationStatus.DEAD:
            message = f"the last message of {alert.name} of {_whole(age)} ago has failed for good"
            findings.append(note("alert-unheard", message, f"queuectl logs {job} says why; then queuectl retry {job}"))
        elif fate is NotificationStatus.QUEUED and age > LATE_MS:
            message = f"the last message of {alert.name} has waited for {_whole(age)}"
            findings.append(note("alert-unheard", message, f"see why: queuectl explain {job}"))
    return findings


def _firing(alert: Alert) -> Finding:
    message = f"{alert.name} fires: {alert.describe(alert.value or 0)}"
    return note("alert-firing", message, f"queuectl alert show {alert.name}")


def _whole(ms: int) -> str:
    return format_duration(ms - ms % 1000)
