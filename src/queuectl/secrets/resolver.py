"""Resolve the secrets of jobs: from a file of the data directory, else from the external provider.

A worker resolves them before it starts a job and keeps them only until then. Files are read at once; the provider runs beside the
worker's loop, because it may take long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from queuectl.clock import Clock
from queuectl.errors import QueuectlError, SecretNotFound, SecretUnusable
from queuectl.policy.gate import Gate
from queuectl.process.helper_command import HelperFailure, HelperRunner, run_helper
from queuectl.secrets.files import check_value, read
from queuectl.secrets.provider import Provider, load_provider, provider_command
from queuectl.secrets.rules import MAX_TOTAL_BYTES, SecretRequest, parse_stored


class Secret(NamedTuple):
    variable: str
    entry: str
    value: bytes

    def __repr__(self) -> str:
        """Without the value, which must not end up in a log or traceback."""
        return f"Secret({self.variable!r}, {self.entry!r})"


class Unresolved(NamedTuple):
    """`problem`: one line, for the owner of the job and the administrator of the host."""

    problem: str


class _PendingJob:
    """The secrets of one job that is about to start."""

    def __init__(self, requests: Sequence[SecretRequest]) -> None:
        self.requests = requests
        self.values: dict[str, bytes] = {}
        self.open: set[str] = set()
        self.problem: Unresolved | None = None

    def fail(self, error: QueuectlError) -> None:
        self.problem = self.problem or Unresolved(f"{error.message}: {error.hint}")


class SecretResolver:
    """Resolves the secrets of jobs for the loop of a worker, without blocking it."""

    def __init__(self, home: str, *, user: int, runner: HelperRunner, gate: Gate) -> None:
        self._home = home
        self._user = user
        self._gate = gate
        self._runner = runner
        self._jobs: dict[str, _PendingJob] = {}  # by token

    def fileno(self) -> int:
        return self._runner.fileno()

    def close(self) -> None:
        self._jobs.clear()
        self._runner.close()

    def begin(self, token: str, secrets: Sequence[str], *, now: float) -> None:
        """Start to resolve the secrets of a job."""
        job = self._jobs[token] = _PendingJob(parse_stored(secrets))
        for entry in dict.fromkeys(one.entry for one in job.requests):
            try:
                self._find(token, job, entry, now)
            except QueuectlError as error:
                job.fail(error)

    def turn(self, now: float) -> None:
        """Process what the provider has printed."""
        for key, result in self._runner.results(now).items():
            token, entry = key if isinstance(key, tuple) else ("", "")
            if (job := self._jobs.get(token)) is None:
                continue
            job.open.discard(entry)
            try:
                if isinstance(result, HelperFailure):
                    raise SecretUnusable(entry, result.problem, hint=f"queuectl secret check {entry} on that host")
                job.values[entry] = check_value(entry, result)
            except SecretUnusable as error:
                job.fail(error)

    def is_known(self, token: str) -> bool:
        """Whether all secrets of the job are resolved, or one has failed."""
        job = self._jobs[token]
        return job.problem is not None or not job.open

    def take(self, token: str) -> list[Secret] | Unresolved:
        """Return the resolved secrets of a job, and forget them."""
        job = self._jobs.get(token)
        if job is None:  # the policy forbade them when the job was claimed
            return Unresolved("its secrets were not requested: the policy has changed in the meantime")
        self.drop(token)
        if job.problem is not None:
            return job.problem
        found = [Secret(one.variable, one.entry, job.values[one.entry]) for one in job.requests]
        if sum(len(one.value) for one in found) > MAX_TOTAL_BYTES:
            problem = f"its secrets are longer than {MAX_TOTAL_BYTES:,} bytes together: let it read a file instead"
            return Unresolved(problem)
        return found

    def drop(self, token: str) -> None:
        if (job := self._jobs.pop(token, None)) is not None:
            for entry in job.open:
                self._runner.cancel((token, entry))

    def wake_times(self) -> Iterator[float]:
        return self._runner.wake_times()

    def _find(self, token: str, job: _PendingJob, entry: str, now: float) -> None:
        found = _read_or_provider(self._home, entry, user=self._user)
        if isinstance(found, bytes):
            job.values[entry] = found
            return
        command = provider_command(found, entry, home=self._home, gate=self._gate)
        job.open.add(entry)
        self._runner.start((token, entry), command, now=now)


def resolve_secret(home: str, name: str, *, user: int, gate: Gate, clock: Clock) -> bytes:
    """Resolve one secret as a worker does, and wait for the provider.

    Raises SecretNotFound, SecretUnusable, or an error about secrets.toml.
    """
    found = _read_or_provider(home, name, user=user)
    if isinstance(found, bytes):
        return found
    result = run_helper(provider_command(found, name, home=home, gate=gate), clock)
    if isinstance(result, HelperFailure):
        raise SecretUnusable(name, result.problem, hint=f"try it by hand: {' '.join(found.argv(name))}")
    return check_value(name, result)


def _read_or_provider(home: str, name: str, *, user: int) -> bytes | Provider:
    """The value in a file, else the provider to ask. Raises SecretNotFound if there is neither."""
    value = read(home, name, user=user)
    if value is not None:
        return value
    provider = load_provider(home, name, user=user)
    if provider is None:
        raise SecretNotFound(name)
    return provider
