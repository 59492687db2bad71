"""The policy of this home: can it be relied on, and can it be walked around?"""

from __future__ import annotations

import os
from collections.abc import Iterator

from queuectl.maintenance.doctor.finding import Finding, Patient, Seen, note, problem
from queuectl.policy.accounts import first_closed_directory
from queuectl.policy.evaluator import Evaluator
from queuectl.policy.lint import lint_policy
from queuectl.policy.parser import LoadedPolicy, default_path, read_policy
from queuectl.process.libc import keyring_problem


def policy(patient: Patient) -> Seen:
    path = default_path(patient.home)
    if not os.path.lexists(path):
        as_root = ", as root" if os.path.isdir(patient.home) and not os.stat(patient.home).st_uid else ""
        return Seen(f"there is none: a worker runs whatever is enqueued{as_root}")
    # Whom its workers run as.
    user = os.stat(patient.home).st_uid
    found = read_policy(path, user=user)
    findings = [
        (problem if weak.is_open else note)(weak.code, f"{weak.rule}: {weak.message}", weak.hint)
        for weak in lint_policy(found.policy, user=user, accounts=found.accounts)
    ]
    return Seen(f"{path} holds", [*findings, *_of_logs(patient.home, found, user), *_of_keys(found, user)])


def _of_keys(found: LoadedPolicy, user: int) -> Iterator[Finding]:
    """Jobs of other users get a session keyring of their own, where the system lets the worker make one."""
    accounts = [
        account for account in Evaluator(found.policy, user=user, accounts=found.accounts).accounts() if account.uid
    ]
    if accounts and not user and (why := keyring_problem()) is not None:
        message = f"jobs of other users inherit the session keyring of the worker ({why}), and may use the keys in it"
        hint = "start the worker with an empty one: as a system service, or with keyctl session - queuectl worker start"
        yield note("policy-keyring", message, hint)


def _of_logs(home: str, found: LoadedPolicy, user: int) -> Iterator[Finding]:
    for account in Evaluator(found.policy, user=user, accounts=found.accounts).accounts():
        if (place := first_closed_directory(home, account)) is not None:
            message = (
                f"{account.name} cannot enter {place}, and so not read the logs of the jobs that run as {account.name}"
            )
            yield note("policy-logs-unreachable", message, "a home where all may pass by: --home /var/lib/queuectl")
