"""The table of checks, and going through it: one that fails is a finding, and the others still run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import QueuectlError
from queuectl.maintenance.doctor.alerts import alerts
from queuectl.maintenance.doctor.disk import file_system, space
from queuectl.maintenance.doctor.files import home, leftovers, logs, permissions
from queuectl.maintenance.doctor.finding import Finding, Patient, Seen, Severity, problem
from queuectl.maintenance.doctor.policy import policy
from queuectl.maintenance.doctor.processes import processes
from queuectl.maintenance.doctor.secrets import secrets
from queuectl.maintenance.doctor.settings import settings
from queuectl.maintenance.doctor.store import clock, schema, store
from queuectl.maintenance.doctor.workers import jobs, workers


class Check(NamedTuple):
    name: str
    look: Callable[[Patient], Seen]
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


class Checked(NamedTuple):
    """What came of a check. `fine` is None if it was not done: there is no store, or it cannot be opened."""

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


class Fixed(NamedTuple):
    """What was done about a finding, or why it could not be."""

    check: str
    code: str
    done: bool
    message: str


def examine(patient: Patient, checks: Iterable[Check] = CHECKS) -> list[Checked]:
    """Go through the checks. Changes nothing, and never raises."""
    return [_examine(patient, check) for check in checks]


def _examine(patient: Patient, check: Check) -> Checked:
    if check.needs_store and patient.store is None:
        return Checked(check.name, None, [])
    try:
        seen = check.look(patient)
    except QueuectlError as error:
        return Checked(check.name, "", [problem(error.code, error.message, error.hint)])
    except Exception as error:  # noqa: BLE001 - a check that cannot be made says more about what is wrong than no check at all
        return Checked(check.name, "", [problem("check-failed", f"cannot be checked: {_words(error)}", _HINT)])
    return Checked(check.name, "" if seen.findings else seen.fine, list(seen.findings))


def fix(checked: Iterable[Checked]) -> list[Fixed]:
    """Do what is safe about each finding. One that fails does not keep the others from it."""
    done = []
    for check in checked:
        for finding in check.findings:
            if finding.fix is None:
                continue
            try:
                done.append(Fixed(check.name, finding.code, True, finding.fix()))
            except QueuectlError as error:
                done.append(Fixed(check.name, finding.code, False, error.message))
            except OSError as error:
                done.append(Fixed(check.name, finding.code, False, _words(error)))
    return done


def count(checked: Iterable[Checked]) -> dict[Severity, int]:
    found = [finding.severity for check in checked for finding in check.findings]
    return {severity: found.count(severity) for severity in Severity}


def report(patient: Patient, checked: Sequence[Checked], fixed: Sequence[Fixed]) -> dict[str, Any]:
    """What every surface tells programs."""
    counts = count(checked)
    return {
        "home": patient.home,
        "store": patient.address,
        "problems": counts[Severity.PROBLEM],
        "notes": counts[Severity.NOTE],
        "fixed": [one._asdict() for one in fixed],
        "checks": [check.to_dict() for check in checked],
    }


_HINT: Final = "put that right first, then ask again"


def _words(error: Exception) -> str:
    # Of a system call its own words and the file. Of anything else the kind only: words may quote an address.
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or type(error).__name__
    return type(error).__name__
