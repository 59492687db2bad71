"""Load the policy of this host, and reload it when its file changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from queuectl.errors import QueuectlError
from queuectl.events import PolicyInForce, Sink, StoreTrouble
from queuectl.policy.accounts import grant_log_access
from queuectl.policy.evaluator import NO_VARIABLES, Evaluator
from queuectl.policy.parser import FileVersion, LoadedPolicy, default_path, file_version, has_policy, read_policy

CHECK_INTERVAL: Final = 1.0  # seconds between checks of the file


class PolicyLoader:
    """Holds the active policy. `evaluator` is None if there is no policy: everything may run."""

    def __init__(self, path: str | None, *, user: int = 0, environment: Mapping[str, str] = NO_VARIABLES) -> None:
        """`environment`: of this process; the PATH of a program may come from it."""
        self.evaluator: Evaluator | None = None
        self.path = path
        self._user = user
        self._environment = environment
        self._version: FileVersion | None = None

    def load(self) -> None:
        """Read the file. Raises PolicyUnusable or UsageError; the active policy then stays the same."""
        assert self.path is not None
        found: LoadedPolicy = read_policy(self.path, user=self._user)
        self.evaluator = Evaluator(
            found.policy, user=self._user, accounts=found.accounts, environment=self._environment
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
