"""The external secret provider of this host: a command, configured in secrets.toml, that prints a secret."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from queuectl import paths as places
from queuectl.errors import InvalidInput, SecretUnusable, UnknownName
from queuectl.policy.evaluator import Request
from queuectl.policy.gate import Gate
from queuectl.policy.parser import parse_toml
from queuectl.policy.paths import UntrustedFile, read_trusted_file
from queuectl.policy.rules import PROVIDER, Refusal
from queuectl.process.helper_command import HelperCommand
from queuectl.secrets.rules import MAX_TOTAL_BYTES
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
