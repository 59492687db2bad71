"""The configuration: settings, the policy, and secrets. Whether they are valid, and whether the policy can be bypassed."""

from __future__ import annotations

import os
from collections.abc import Iterator

from queuectl import paths
from queuectl.config import faults
from queuectl.maintenance.doctor.finding import CheckResult, Finding, Target, count, note, problem
from queuectl.policy.accounts import first_closed_directory
from queuectl.policy.evaluator import Evaluator
from queuectl.policy.lint import lint_policy
from queuectl.policy.parser import LoadedPolicy, default_path, read_policy
from queuectl.process.linux import keyring_problem
from queuectl.secrets.files import names, unusable
from queuectl.secrets.provider import load_provider


def settings(target: Target) -> CheckResult:
    stored = {} if target.store is None else target.store.config()
    found = faults(stored, target.environ)
    return CheckResult("all valid", [problem("setting-invalid", error.message, error.hint) for error in found])


def policy(target: Target) -> CheckResult:
    path = default_path(target.home)
    if not os.path.lexists(path):
        as_root = ", as root" if os.path.isdir(target.home) and not os.stat(target.home).st_uid else ""
        return CheckResult(f"there is none: a worker runs whatever is enqueued{as_root}")
    # As this user its workers run.
    user = os.stat(target.home).st_uid
    found = read_policy(path, user=user)
    findings = [
        (problem if weak.is_open else note)(weak.code, f"{weak.rule}: {weak.message}", weak.hint)
        for weak in lint_policy(found.policy, user=user, accounts=found.accounts)
    ]
    return CheckResult(f"{path} holds", [*findings, *_of_logs(target.home, found, user), *_of_keys(found, user)])


def _of_keys(found: LoadedPolicy, user: int) -> Iterator[Finding]:
    """Jobs of other users get their own session keyring, if the system lets the supervisor create one."""
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


def secrets(target: Target) -> CheckResult:
    found, asked = names(target.home), os.path.lexists(paths.secrets_settings(target.home))
    if not found and not asked:
        return CheckResult("there are none in this home")
    # As this user its workers run.
    user = os.stat(target.home).st_uid
    findings = [problem(error.code, error.message, error.hint) for _, error in unusable(target.home, user=user)]
    provider = load_provider(target.home, "any", user=user)
    others = "" if provider is None else f"; {provider.command[0]} is asked for others"
    return CheckResult(f"{count(len(found), 'secret')} in {paths.secrets(target.home)}{others}", findings)
