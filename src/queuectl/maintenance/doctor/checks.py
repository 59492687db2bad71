"""The list of checks, and how they run: one that fails is a finding, and the others still run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import QueuectlError
from queuectl.maintenance.doctor.configuration import policy, secrets, settings
from queuectl.maintenance.doctor.database import alerts, clock, schema, store
from queuectl.maintenance.doctor.files import file_system, home, leftovers, logs, permissions, space
from queuectl.maintenance.doctor.finding import CheckResult, Finding, Severity, Target, problem
from queuectl.maintenance.doctor.workers import jobs, processes, workers


class Check(NamedTuple):
    name: str
    look: Callable[[Target], CheckResult]
    needs_store: bool = False


CHECKS: Final = (
    Check("home", home),
    Check("permissions", permissions),
    Check("disk-space", space),
    Check("file-system", file_system),
    Check("store", store),
    Check("schema", schema, needs_store=True),
    Check("clock", clock, needs_store=True),
    Check("settings", settings),
    Check("policy", policy),
    Check("secrets", secrets),
    Check("logs", logs, needs_store=True),
    Check("workers", workers, needs_store=True),
    Check("jobs", jobs, needs_store=True),
    Check("alerts", alerts, needs_store=True),
    Check("processes", processes, needs_store=True),
    Check("leftovers", leftovers, needs_store=True),
)


class CheckReport(NamedTuple):
    """The result of a check. `fine` is None if it did not run: there is no database, or it cannot be opened."""

    name: str
    fine: str | None
    findings: list[Finding]

    @property
    def status(self) -> str:
        if self.fine is None:
            return "skipped"
        severities = {finding.severity for finding in self.findings}
        return next((one.value for one in Severity if one in severities), "ok")

    def to_dict(self) -> dict[str, Any]:
        findings = [finding.to_dict() for finding in self.findings]
        return {"check": self.name, "status": self.status, "message": self.fine or None, "findings": findings}


class Repair(NamedTuple):
    """What was done about a finding, or why it could not be done."""

    check: str
    code: str
    done: bool
    message: str


def examine(target: Target, checks: Iterable[Check] = CHECKS) -> list[CheckReport]:
    """Run the checks. Changes nothing, and never raises."""
    return [_examine(target, check) for check in checks]


def _examine(target: Target, check: Check) -> CheckReport:
    if check.needs_store and target.store is None:
        return CheckReport(check.name, None, [])
    try:
        seen = check.look(target)
    except QueuectlError as error:
        return CheckReport(check.name, "", [problem(error.code, error.message, error.hint)])
    except Exception as error:  # noqa: BLE001 - a check that fails tells more than no report at all
        return CheckReport(check.name, "", [problem("check-failed", f"cannot be checked: {_describe(error)}", _HINT)])
    return CheckReport(check.name, "" if seen.findings else seen.fine, list(seen.findings))


def fix(checked: Iterable[CheckReport]) -> list[Repair]:
    """Repair what is safe to repair. If one repair fails, the others still run."""
    done = []
    for check in checked:
        for finding in check.findings:
            if finding.fix is None:
                continue
            try:
                done.append(Repair(check.name, finding.code, True, finding.fix()))
            except QueuectlError as error:
                done.append(Repair(check.name, finding.code, False, error.message))
            except OSError as error:
                done.append(Repair(check.name, finding.code, False, _describe(error)))
    return done


def count(checked: Iterable[CheckReport]) -> dict[Severity, int]:
    found = [finding.severity for check in checked for finding in check.findings]
    return {severity: found.count(severity) for severity in Severity}


def report(target: Target, checked: Sequence[CheckReport], fixed: Sequence[Repair]) -> dict[str, Any]:
    """As JSON."""
    counts = count(checked)
    return {
        "home": target.home,
        "store": target.address,
        "problems": counts[Severity.PROBLEM],
        "notes": counts[Severity.NOTE],
        "fixed": [one._asdict() for one in fixed],
        "checks": [check.to_dict() for check in checked],
    }


_HINT: Final = "put that right first, then ask again"


def _describe(error: Exception) -> str:
    # Of anything but a system call its class only: the message may quote an address with a password.
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or type(error).__name__
    return type(error).__name__
