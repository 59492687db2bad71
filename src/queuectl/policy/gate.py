"""The active policy of this host, and the gate for every program that queuectl starts for a user.

Such programs are jobs, alert commands and secret providers. The gate evaluates the policy and returns the program, user and limits to
start with. Schedules and batches add jobs, which pass the gate when a worker starts them. tests/test_architecture.py lists every module
that starts a process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from queuectl.clock import SystemClock
from queuectl.config import job_environment_base
from queuectl.errors import QueuectlError
from queuectl.events import PolicyInForce, Sink, StoreTrouble
from queuectl.policy.accounts import grant_log_access
from queuectl.policy.evaluator import NO_VARIABLES, SHELL, Decision, Evaluator, Request
from queuectl.policy.parser import FileVersion, default_path, file_version, has_policy, read_policy
from queuectl.policy.rules import Refusal
from queuectl.process.helper_command import HelperCommand, HelperFailure, run_helper
from queuectl.process.spawn import NO_SETUP, ChildSetup, with_limits
from queuectl.process.system import system

# Contains the database URL with its password: not passed to programs of other users.
_DB_VARIABLE: Final = "QUEUECTL_DB"
CHECK_INTERVAL: Final = 1.0  # seconds between checks of the file
PROBE_SECONDS: Final = 2.0
PROBE_AGAIN_AFTER: Final = 10.0


class MountProbe:
    """Finds mounts whose server does not answer: examining a file there would stop this process without end."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._silent: dict[str, float] = {}  # by mount: when to ask again

    def find_silent(self, paths: Iterable[str]) -> str | None:
        """The first such mount that one of these paths is on. Takes a few seconds for a mount that has just stopped to answer."""
        for path in paths:
            mount = None if "\0" in path else system.remote_mount(lambda: [os.fsencode(path)])  # noqa: B023 - called at once
            if mount is not None and not self._answers(mount):
                return mount
        return None

    def _answers(self, mount: str) -> bool:
        if self._clock.monotonic() < self._silent.get(mount, 0.0):
            return False
        look = HelperCommand(["sh", "-c", 'test -e "$1/."; :', "sh", mount], PROBE_SECONDS, 0, {}, "/", SHELL)
        if not isinstance(run_helper(look, self._clock), HelperFailure):
            return True
        self._silent[mount] = self._clock.monotonic() + PROBE_AGAIN_AFTER
        return False


class PolicyLoader:
    """Holds the active policy. `evaluator` is None if there is no policy: everything may run."""

    def __init__(self, path: str | None, *, user: int = 0, environment: Mapping[str, str] = NO_VARIABLES) -> None:
        """`environment`: of this process; the PATH of a program may come from it."""
        self.evaluator: Evaluator | None = None
        self.path = path
        self._user = user
        self._environment = environment
        self._mounts = MountProbe()
        self._version: FileVersion | None = None

    def load(self) -> None:
        """Read the file. Raises PolicyUnusable or UsageError; the active policy then stays the same."""
        assert self.path is not None
        found = read_policy(self.path, user=self._user)
        self.evaluator = Evaluator(
            found.policy,
            user=self._user,
            accounts=found.accounts,
            environment=self._environment,
            find_silent=self._mounts.find_silent,
        )
        self._version = found.version

    def follow(self, on_change: Callable[[str], None], on_trouble: Callable[[str], None]) -> None:
        """Reload the file if it has changed. A file that is missing or unusable is reported once and changes nothing."""
        if self.path is None:
            return
        version = file_version(self.path)
        if version == self._version:
            return
        try:
            self.load()
        except QueuectlError as error:
            self._version = version
            on_trouble(f"{error.message}; the previous policy stays active")
        else:
            on_change(self.path)


def open_policy(
    home: str, given: str | None, *, user: int, environment: Mapping[str, str] = NO_VARIABLES
) -> PolicyLoader:
    """Load the policy of this host: the file `given`, else policy.toml of the data directory, if it exists. Raises as `load` does."""
    loader = PolicyLoader(default_path(home) if given is None else given, user=user, environment=environment)
    if given is not None or has_policy(home):
        loader.load()
    return loader


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
    home: str, given: str | None, environ: Mapping[str, str], *, inherited: Mapping[str, str] = NO_VARIABLES
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


class PolicyReloadTask:
    """The maintenance task of a worker that reloads the policy."""

    adds_work: Final = False

    def __init__(self, policy: PolicyLoader, *, home: str, emit: Sink) -> None:
        self._policy = policy
        self._home = home
        self._emit = emit

    def step(self, now: float) -> float:
        self._policy.follow(on_change=self.begin, on_trouble=self._report)
        return now + CHECK_INTERVAL

    def begin(self, path: str) -> None:
        """Report the active policy and give its users access to the logs."""
        self._emit(PolicyInForce(path))
        evaluator = self._policy.evaluator
        if evaluator is not None and (problem := grant_log_access(self._home, evaluator.accounts())):
            self._report(problem)

    def _report(self, problem: str) -> None:
        self._emit(StoreTrouble(problem, is_retried=False))
