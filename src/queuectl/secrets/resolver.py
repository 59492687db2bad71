"""Resolve the secrets of jobs: from a file of the data directory, else from the external provider, a command in secrets.toml.

A worker resolves them before it starts a job and keeps them only until then. Files are read at once; the provider runs beside the
worker's loop, because it may take long.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl import paths as places
from queuectl.clock import Clock
from queuectl.errors import InvalidInput, QueuectlError, SecretNotFound, SecretUnusable, UnknownName
from queuectl.policy.evaluator import Request
from queuectl.policy.gate import Gate
from queuectl.policy.parser import parse_toml
from queuectl.policy.paths import UntrustedFile, read_trusted_file
from queuectl.policy.rules import PROVIDER, Refusal
from queuectl.process.helper_command import HelperCommand, HelperFailure, HelperRunner, run_helper
from queuectl.secrets.files import check_value, read
from queuectl.secrets.rules import MAX_TOTAL_BYTES, SecretRequest, parse_stored
from queuectl.text import closest_match, short_repr, truncate
from queuectl.units import parse_duration_ms

MAX_FILE_BYTES: Final = 1 << 16
NAME_PLACEHOLDER: Final = "{name}"  # in an argument of the command: the name of the secret
DEFAULT_TIMEOUT_MS: Final = 10_000
MAX_TIMEOUT_MS: Final = 300_000
KEYS: Final = ("command", "timeout")
_EXAMPLE_HINT: Final = "queuectl help secrets shows one"


class Provider(NamedTuple):
    """A command that prints a secret, for example that of a password manager."""

    command: tuple[str, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    def argv(self, name: str) -> list[str]:
        return [argument.replace(NAME_PLACEHOLDER, name) for argument in self.command]


def parse_provider(tables: Mapping[str, Any], *, subject: str) -> Provider:
    """Parse the tables of a secrets.toml. `subject`: the file. Raises InvalidInput or UnknownName."""
    for key in tables:
        if key not in KEYS:
            raise UnknownName("setting in " + subject, truncate(key), nearest=closest_match(key, KEYS), known=KEYS)
    command, hint = tables.get("command"), 'like command = ["pass", "show", "{name}"]'
    if not isinstance(command, list) or not command:
        raise InvalidInput(f"{subject}: command", f"expected a list of text, got {short_repr(command)}", hint=hint)
    for argument in command:
        if not isinstance(argument, str) or "\0" in argument:
            raise InvalidInput(f"{subject}: command", f"expected text, got {short_repr(argument)}", hint=hint)
    has_name = any(NAME_PLACEHOLDER in argument for argument in command[1:])
    if not command[0] or NAME_PLACEHOLDER in command[0] or not has_name:
        problem = f"expected a program, and {NAME_PLACEHOLDER} in one of its arguments"
        raise InvalidInput(f"{subject}: command", problem, hint=hint)
    about = f"{subject}: timeout"
    timeout_ms = parse_duration_ms(tables.get("timeout", DEFAULT_TIMEOUT_MS // 1000), subject=about)
    if not 0 < timeout_ms <= MAX_TIMEOUT_MS:
        raise InvalidInput(about, "expected up to five minutes", hint='like timeout = "10s"')
    return Provider(tuple(command), timeout_ms)


def load_provider(home: str, name: str, *, user: int) -> Provider | None:
    """Read secrets.toml; None if there is none. `name`: the requested secret, for errors.

    Raises SecretUnusable if users other than `user` and root could change the file; InvalidInput or UnknownName if it is invalid.
    """
    path = places.secrets_settings(home)
    if not os.path.lexists(path):
        return None
    try:
        text, _ = read_trusted_file(path, user=user, max_bytes=MAX_FILE_BYTES)
    except UntrustedFile as exc:
        raise SecretUnusable(name, f"{path} names its provider: {exc.problem}", hint=exc.hint) from exc
    except OSError as exc:
        problem = f"{path}: {(exc.strerror or str(exc)).lower()}"
        raise SecretUnusable(name, problem, hint=_EXAMPLE_HINT) from exc
    return parse_provider(parse_toml(text, path, hint=_EXAMPLE_HINT), subject=path)


def provider_command(provider: Provider, name: str, *, home: str, gate: Gate) -> HelperCommand:
    """The command to run for the secret `name`. Raises SecretUnusable if the policy refuses the provider."""
    program = provider.command[0]
    request = Request(
        PROVIDER, None, provider.argv(name), home, {}, provider.timeout_ms, sets_timeout=False, sets_cwd=False
    )
    found = gate.command(request, name=program, max_output=MAX_TOTAL_BYTES + 1)
    if isinstance(found, Refusal):
        problem = f"its provider {program} is refused by policy: {found.rule}: {found.problem}"
        raise SecretUnusable(name, problem, hint="[secret-provider] in policy.toml has the rules for it")
    return found


# ── the secrets of jobs ─────────────────────────────────────────────────────────────────────────────────────────────


class Secret(NamedTuple):
    variable: str
    entry: str
    value: bytes

    def __repr__(self) -> str:
        """Without the value, which must not end up in a log or traceback."""
        return f"Secret({self.variable!r}, {self.entry!r})"


class Unresolved(NamedTuple):
    problem: str  # one line, for the owner of the job and the administrator of the host


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
