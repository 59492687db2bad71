"""The gate for every program that queuectl starts for a user: jobs, alert commands, secret providers.

It asks the policy of this host, and names the program, user and limits with which the program is started. Schedules and
batches add jobs, which pass here when a worker starts them. tests/test_architecture.py lists every place that starts a process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from queuectl.config import job_environment_base
from queuectl.job.policy import Refusal
from queuectl.policy.force import Force, open_policy
from queuectl.policy.guard import SHELL, Permit, Wish
from queuectl.process.asking import Question
from queuectl.process.between import Between
from queuectl.process.limiting import with_limits

# Hold what opens the database, passwords included: they are not for the program of another user.
_OF_STORE: Final = "QUEUECTL_DB"


class Gate:
    def __init__(self, force: Force, environment: Mapping[str, str]) -> None:
        """`environment`: what programs get of the environment of this process, before the policy restricts it."""
        self.force = force
        self.environment = environment

    def admit(self, wish: Wish) -> Permit | Refusal:
        """Whether this may be started, and how. Without a policy everything may, as the user of this process."""
        guard = self.force.guard
        if guard is None:
            called = wish.argv[0] if wish.argv else SHELL
            return Permit("no policy", "", called, wish.cwd, None, wish.timeout_ms, limits=wish.limits)
        return guard.judge(wish)

    def command(self, wish: Wish, *, name: str, longest: int, is_log: bool = False) -> Question | Refusal:
        """The same for a command that this process runs itself and waits for. `name`: what problems call it. `longest`: bytes of
        output. `is_log`: stderr counts as output, and of too much output the end is kept."""
        permit = self.admit(wish)
        if isinstance(permit, Refusal):
            return permit
        assert permit.timeout_ms is not None
        argv = list(wish.argv) if wish.argv is not None else shell_words(wish.command or "")
        guard, environment = self.force.guard, dict(self.environment)
        if guard is not None:
            environment = guard.of(wish.queue).seen(environment, permit.account)
        if permit.account is not None:
            environment.pop(_OF_STORE, None)
        return Question(
            [permit.called, *argv[1:]] if permit.program else argv,
            permit.timeout_ms / 1000,
            longest,
            environment={**environment, **wish.env},
            cwd=permit.cwd if permit.account is None or wish.sets_cwd else "/",
            program=permit.program or None,
            between=_between(permit),
            name=name,
            is_log=is_log,
        )


def open_gate(
    home: str, given: str | None, environ: Mapping[str, str], *, inherited: Mapping[str, str] = MappingProxyType({})
) -> Gate:
    """With the policy of this host, as a worker has it. Raises as `open_policy` does."""
    environment = {**job_environment_base(environ), **inherited}
    return Gate(open_policy(home, given, user=os.geteuid(), environment=environment), environment)


def between_of(permit: Permit) -> Between | None:
    """How the new process becomes the user that the policy names. None: it stays as it is."""
    account = permit.account
    if account is not None:
        return Between(user=(account.uid, account.gid), groups=account.groups, umask=permit.umask)
    return None if permit.umask is None else Between(umask=permit.umask)


def _between(permit: Permit) -> Between | None:
    between = with_limits(between_of(permit), permit.limits)
    return between if permit.place is None else (between or Between())._replace(inside=permit.place)


def shell_words(command: str) -> list[str]:
    # Without "--" a shell takes a command that begins with one of these for options.
    guard = ["--"] if command[:1] in ("-", "+") else []
    return [SHELL, "-c", *guard, command]
