"""The gate for every program that queuectl starts for a user: jobs, alert commands, secret providers.

It evaluates the policy of this host and returns the program, user and limits to start with. Schedules and batches add jobs, which
pass the gate when a worker starts them. tests/test_architecture.py lists every module that starts a process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from queuectl.config import job_environment_base
from queuectl.policy.evaluator import SHELL, Decision, Request
from queuectl.policy.loader import PolicyLoader, open_policy
from queuectl.policy.rules import Refusal
from queuectl.process.helper_command import HelperCommand
from queuectl.process.spawn import NO_SETUP, ChildSetup, with_limits

# Contains the database URL with its password: not passed to programs of other users.
_DB_VARIABLE: Final = "QUEUECTL_DB"


class Gate:
    def __init__(self, policy: PolicyLoader, environment: Mapping[str, str]) -> None:
        """`environment`: inherited by programs, before the policy restricts it."""
        self.policy = policy
        self.environment = environment

    def admit(self, request: Request) -> Decision | Refusal:
        """Decide whether a program may start, and how. Without a policy every program may, as the user of this process."""
        evaluator = self.policy.evaluator
        if evaluator is None:
            called = request.argv[0] if request.argv else SHELL
            return Decision("no policy", "", called, request.cwd, None, request.timeout_ms, limits=request.limits)
        return evaluator.evaluate(request)

    def command(self, request: Request, *, name: str, max_output: int, is_log: bool = False) -> HelperCommand | Refusal:
        """Like `admit`, for a command that this process runs itself and waits for. `name`: for errors. `max_output`: in
        bytes. `is_log`: include stderr, and keep the end of output that is too long."""
        decision = self.admit(request)
        if isinstance(decision, Refusal):
            return decision
        assert decision.timeout_ms is not None
        argv = list(request.argv) if request.argv is not None else shell_words(request.command or "")
        evaluator, environment = self.policy.evaluator, dict(self.environment)
        if evaluator is not None:
            environment = evaluator.of(request.queue).seen(environment, decision.account)
        if decision.account is not None:
            environment.pop(_DB_VARIABLE, None)
        return HelperCommand(
            [decision.called, *argv[1:]] if decision.program else argv,
            decision.timeout_ms / 1000,
            max_output,
            environment={**environment, **request.env},
            cwd=decision.cwd if decision.account is None or request.sets_cwd else "/",
            program=decision.program or None,
            setup=with_limits(child_setup(decision), decision.limits),
            name=name,
            is_log=is_log,
        )


def open_gate(
    home: str, given: str | None, environ: Mapping[str, str], *, inherited: Mapping[str, str] = MappingProxyType({})
) -> Gate:
    """Open the gate with the policy of this host, as a worker does. Raises as `open_policy` does."""
    environment = {**job_environment_base(environ), **inherited}
    return Gate(open_policy(home, given, user=os.geteuid(), environment=environment), environment)


def child_setup(decision: Decision) -> ChildSetup:
    """What the new process does to become the user that the policy names, and the directory that it must start in."""
    setup = NO_SETUP._replace(umask=decision.umask, inside=decision.place)
    account = decision.account
    return setup if account is None else setup._replace(user=(account.uid, account.gid), groups=account.groups)


def shell_words(command: str) -> list[str]:
    # Without "--" a shell would parse such a command as an option.
    separator = ["--"] if command[:1] in ("-", "+") else []
    return [SHELL, "-c", *separator, command]
