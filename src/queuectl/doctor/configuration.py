"""The installation: another program of this name. Settings, the policy and secrets: whether they are valid, and whether the policy can
be bypassed. Alerts: whether they fire, are checked and reach their receivers."""

from __future__ import annotations

import os
from typing import Final

from queuectl import paths
from queuectl.alerts.rules import Alert
from queuectl.config import faults
from queuectl.doctor.finding import CheckResult, Finding, Target, note, problem, reported
from queuectl.installation import DISTRIBUTION, conflict, repair_command
from queuectl.policy.accounts import first_closed_directory
from queuectl.policy.evaluator import Evaluator
from queuectl.policy.lint import lint_policy
from queuectl.policy.parser import default_path, read_policy
from queuectl.process.linux import keyring_problem
from queuectl.secrets.files import names, unusable
from queuectl.secrets.resolver import load_provider
from queuectl.store.alerts import NotificationStatus, last_notifications
from queuectl.text import plural, shortened
from queuectl.units import format_duration


def installation(_: Target) -> CheckResult:
    if (other := conflict()) is None:
        return "no other program of this name"
    message = f"{other.name} {other.version}, a different program, is installed in the environment of {DISTRIBUTION}"
    found = problem("other-distribution", f"{message}: both have files of the same names", repair_command())
    return [found]


def settings(target: Target) -> CheckResult:
    stored = {} if target.store is None else target.store.config()
    found = faults(stored, target.environ)
    return [problem("setting-invalid", error.message, error.hint) for error in found] or "all valid"


def policy(target: Target) -> CheckResult:
    path = default_path(target.home)
    if not os.path.lexists(path):
        as_root = ", as root" if os.path.isdir(target.home) and not os.stat(target.home).st_uid else ""
        return f"there is none: a worker runs whatever is enqueued{as_root}"
    # As this user its workers run.
    user = os.stat(target.home).st_uid
    found = read_policy(path, user=user)
    accounts = Evaluator(found.policy, user=user, accounts=found.accounts).accounts()
    findings = [
        (problem if weak.is_open else note)(weak.code, f"{weak.rule}: {weak.message}", weak.hint)
        for weak in lint_policy(found.policy, user=user, accounts=found.accounts)
    ]
    for account in accounts:
        if (place := first_closed_directory(target.home, account)) is not None:
            name = account.name
            message = f"{name} cannot enter {place}, and so not read the logs of the jobs that run as {name}"
            hint = "a data directory that all users can enter: --home /var/lib/queuectl"
            findings.append(note("policy-logs-unreachable", message, hint))
    # Jobs of other users get their own session keyring, if the system lets the supervisor create one.
    if accounts and (why := keyring_problem()) is not None:
        message = f"jobs of other users inherit the session keyring of the worker ({why}), and may use the keys in it"
        hint = "start the worker with an empty one: as a system service, or with keyctl session - queuectl worker start"
        findings.append(note("policy-keyring", message, hint))
    return findings or f"{path} holds"


def secrets(target: Target) -> CheckResult:
    found, asked = names(target.home), os.path.lexists(paths.secrets_settings(target.home))
    if not found and not asked:
        return "there are none in this data directory"
    # As this user its workers run.
    user = os.stat(target.home).st_uid
    findings = [reported(error) for _, error in unusable(target.home, user=user)]
    provider = load_provider(target.home, "any", user=user)
    others = "" if provider is None else f"; {provider.command[0]} is asked for others"
    return findings or f"{plural(len(found), 'secret')} in {paths.secrets(target.home)}{others}"


# ── alerts ───────────────────────────────────────────────────────────────────────────────────────────────────────────

UNCHECKED_MS: Final = 10 * 60 * 1000
LATE_MS: Final = 10 * 60 * 1000  # nine attempts have been made by then, if a worker makes them


def alerts(target: Target) -> CheckResult:
    found = target.opened.alerts.all()
    now_ms = target.opened.now_ms()
    findings = [_firing(alert) for alert in found if alert.is_firing]
    if unchecked := [alert for alert in found if now_ms - (alert.checked_ms or alert.created_ms) > UNCHECKED_MS]:
        since = max(now_ms - (alert.checked_ms or alert.created_ms) for alert in unchecked)
        message = f"no worker has checked {shortened([alert.name for alert in unchecked])} for {_whole(since)}"
        hint = "a worker and the dashboard do; from a crontab: queuectl alert check"
        findings.append(note("alert-unchecked", message, hint))
    if unsent := [alert for alert in found if alert.untold]:
        message = f"no notification has been sent yet for {shortened([alert.name for alert in unsent])}"
        hint = f"see whether they can be reached: queuectl alert test {unsent[0].name}"
        findings.append(note("alert-untold", message, hint))
    findings += _unheard(target, found, now_ms)
    return findings or (f"{plural(len(found), 'alert')}, none firing" if found else "none: queuectl alert add")


def _unheard(target: Target, found: list[Alert], now_ms: int) -> list[Finding]:
    """Alerts whose last notification has not been delivered."""
    messages = last_notifications(target.opened, found)
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
