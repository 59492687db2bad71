"""The database: whether it exists, is ours and sound, and whether its time agrees with ours. The alerts in it: whether they fire, are checked,
and reach their receivers.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import Final

from queuectl.alerts.rules import Alert
from queuectl.errors import StoreGone, StoreReadOnly
from queuectl.filelock import is_held
from queuectl.maintenance.doctor.finding import CheckResult, Finding, Target, count, note, problem, shortened
from queuectl.maintenance.lock_breaker import hint_for, lock_holder
from queuectl.paths import lock_file
from queuectl.store.alerts import NotificationStatus, last_notifications
from queuectl.units import format_duration, to_ms

TOLERANCE_MS: Final = 2_000
MAX_PROBLEMS: Final = 10


def store(target: Target) -> CheckResult:
    if (trouble := target.trouble) is not None:
        return CheckResult("", [problem(trouble.code, trouble.message, trouble.hint)])
    if target.store is None:
        if target.store_file and (name := _worker_in(target.home)):
            gone = StoreGone(target.store_file, worker=name)
            return CheckResult("", [problem(gone.code, gone.message, gone.hint)])
        return CheckResult(f"there is none at {target.address} yet: the first job makes it")
    health = target.health
    findings = [
        problem("store-damaged", f"{target.address}: {words}", "stop the workers, keep a copy of it, restore a backup")
        for words in health.problems[:MAX_PROBLEMS]
    ]
    findings += [problem(found.code, found.message, found.hint) for found in health.hindrances]
    findings += [note(*caution) for caution in health.cautions]
    if target.store_file is not None and (holder := lock_holder(target.store_file)) and holder.is_stopped:
        message = f"{target.address} is locked by process {holder.process.pid} ({holder.program}), which is stopped"
        findings.append(problem("store-locked", message, hint_for(holder)))
    if target.store_file is not None and not os.access(target.store_file, os.W_OK):
        fixed = StoreReadOnly(target.store_file)
        findings.append(problem(fixed.code, fixed.message, fixed.hint))
    return CheckResult(f"sound, {health.engine}, {count(target.opened.count(), 'job')}, {target.address}", findings)


def _worker_in(home: str) -> str | None:
    """A live worker of this data directory: it had a database."""
    folder = os.path.dirname(lock_file(home, ""))
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    held = (name for name in names if name.endswith(".lock") and is_held(os.path.join(folder, name)))
    return next((name.removesuffix(".lock") for name in held), None)


def schema(target: Target) -> CheckResult:
    health = target.health
    if health.schema == health.known:
        return CheckResult(f"version {health.schema}, the one of this queuectl")
    message = f"the store has schema version {health.schema}, this queuectl knows {health.known}"
    return CheckResult("", [problem("schema-version", message, "use one version of queuectl on all machines")])


def clock(target: Target) -> CheckResult:
    return _against_server(target) if target.opened.is_shared else _against_times(target)


def _against_server(target: Target) -> CheckResult:
    skew_ms = target.clock.now_ms() - target.opened.now_ms()
    if abs(skew_ms) <= TOLERANCE_MS:
        return CheckResult("agrees with the database")
    way = "ahead of" if skew_ms > 0 else "behind"
    message = f"the clock of this machine is {format_duration(abs(skew_ms))} {way} the database's, by which all jobs go"
    return CheckResult("", [note("clock-differs", message, "set it by NTP; jobs run on time all the same")])


def _against_times(target: Target) -> CheckResult:
    """A file has no clock, but the times in it cannot be later than now."""
    now_ms = target.clock.now_ms()
    newest = [to_ms(job.updated_at) for job in islice(target.opened.jobs(limit=1), 1)]
    newest += [to_ms(worker.heartbeat_at) for worker in target.opened.workers()]
    ahead_ms = max(newest, default=now_ms) - now_ms
    findings: list[Finding] = []
    if ahead_ms > TOLERANCE_MS:
        message = f"the store holds times that are {format_duration(ahead_ms)} ahead of the clock: it was set back"
        hint = "set the clock right; until then retries and delayed jobs wait that much longer"
        findings.append(problem("clock-went-back", message, hint))
    return CheckResult("not behind the database", findings)


# ── alerts ───────────────────────────────────────────────────────────────────────────────────────────────────────────

UNCHECKED_MS: Final = 10 * 60 * 1000
LATE_MS: Final = 10 * 60 * 1000  # nine attempts have been made by then, if a worker makes them


def alerts(target: Target) -> CheckResult:
    found = target.opened.alerts()
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
    return CheckResult(f"{count(len(found), 'alert')}, none firing" if found else "none: queuectl alert add", findings)


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
