"""`queuectl doctor`: the list of checks, and how they run. One that fails is a finding, and the others still run.

A data directory and its database are examined in any state: an error that keeps the database from being opened becomes a finding.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from queuectl.clock import Clock
from queuectl.config import here
from queuectl.doctor.configuration import alerts, installation, policy, secrets, settings
from queuectl.doctor.finding import CheckResult, Finding, Severity, Target, problem, reported
from queuectl.doctor.storage import clock, file_system, home, leftovers, logs, permissions, schema, space, store
from queuectl.doctor.workers import jobs, processes, workers
from queuectl.errors import QueuectlError, StoreDamaged
from queuectl.store.address import PostgresUrl, parse_address
from queuectl.store.open import explain_read_only, open_reads, store_exists, store_path
from queuectl.store.store import Store

if TYPE_CHECKING:
    from queuectl.store.sqlite.connection import OnWait


class Check(NamedTuple):
    name: str
    look: Callable[[Target], CheckResult]
    needs_store: bool = False


CHECKS: Final = (
    Check("installation", installation),
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
        return CheckReport(check.name, "", [reported(error)])
    except Exception as error:  # noqa: BLE001 - a check that fails tells more than no report at all
        return CheckReport(check.name, "", [problem("check-failed", f"cannot be checked: {_describe(error)}", _HINT)])
    return CheckReport(check.name, seen, []) if isinstance(seen, str) else CheckReport(check.name, "", list(seen))


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


# ── opening the database ────────────────────────────────────────────────────────────────────────────────────────────


def run_doctor(
    home: str,
    db: Callable[[], str | None],
    *,
    to_fix: bool,
    environ: Mapping[str, str],
    clock: Clock,
    on_wait: OnWait | None = None,
) -> tuple[Target, list[CheckReport], list[Repair]]:
    """Run all checks. With `to_fix`, fix what is safe to fix, and check again if something was fixed."""
    look = partial(_open_for_diagnosis, home, db, environ=environ, clock=clock, on_wait=on_wait)
    with look() as found:
        checked = examine(found)
        fixed = fix(checked) if to_fix else []
    if fixed:
        with look() as found:
            checked = examine(found)
    return found, checked, fixed


@contextmanager
def _open_for_diagnosis(
    home: str,
    db: Callable[[], str | None],
    *,
    environ: Mapping[str, str],
    clock: Clock,
    on_wait: OnWait | None = None,
) -> Iterator[Target]:
    """The input of the checks. Even the address may be invalid. Creates nothing."""
    shown, file, store, named = "the database", None, None, None
    trouble: QueuectlError | None = None
    try:
        named = db()
        address = parse_address(store_path(home, named))
        shown = address.shown()
        file = None if isinstance(address, PostgresUrl) else address.path
        store = _open(home, named, file, clock, on_wait)
    except QueuectlError as error:
        trouble = error
    try:
        yield Target(
            home=home,
            db=None if trouble is not None or named is None else store_path(home, named),
            address=shown,
            store_file=file,
            store=store,
            trouble=trouble,
            here=here(environ),
            environ=environ,
            clock=clock,
            user=os.geteuid(),
        )
    finally:
        if store is not None:
            store.close()


def _open(home: str, db: str | None, file: str | None, clock: Clock, on_wait: OnWait | None) -> Store | None:
    if not store_exists(home, db):
        return None
    if file is not None and os.path.getsize(file) == 0:
        # To SQLite an empty file is a new database; a truncated one must not pass for one.
        raise StoreDamaged(file, "it is empty, 0 bytes", hint=StoreDamaged.IF_EMPTY)
    with explain_read_only(lambda: store_path(home, db)):
        return open_reads(home, db, clock, on_wait=on_wait)
