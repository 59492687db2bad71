"""The secrets that a job requests, by name only: the worker that runs the job resolves them on its host.

A request is `VARIABLE` or `VARIABLE=ENTRY`: the environment variable, and the name of the secret on the host if it differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.text import ID_PATTERN, short_repr

MAX_SECRETS: Final = 32
MAX_TOTAL_BYTES: Final = 49_152  # of all secrets of a job: the supervisor gets them in one message
ALLOWED: Final = "letters, digits and . _ : - beginning with a letter or digit"
HINT: Final = "like --secret DB_PASSWORD, or --secret PGPASSWORD=db-password if its name on the host is another"

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# No slash, and no dash or dot in front: it becomes a file name and an argument of a command.
_ENTRY: Final = re.compile(ID_PATTERN)


class SecretRequest(NamedTuple):
    variable: str
    entry: str

    def __str__(self) -> str:
        return self.variable if self.variable == self.entry else f"{self.variable}={self.entry}"


def parse_secrets(value: object, name: str) -> tuple[str, ...]:
    """Parse the requests of a job into their stored form: sorted, each variable once. Raises InvalidInput."""
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(name, f"expected a list of names, got {short_repr(value)}", hint=_hint(name))
    found: dict[str, SecretRequest] = {}
    for item in value:
        one = _parse(item, name)
        if found.setdefault(one.variable, one) != one:
            raise InvalidInput(name, f"{one.variable} is requested twice, with two secrets", hint="omit one of them")
    if len(found) > MAX_SECRETS:
        raise InvalidInput(
            name, f"{len(found)} secrets, over {MAX_SECRETS}", hint="combine several values in one secret"
        )
    return tuple(str(found[variable]) for variable in sorted(found))


def parse_entry(value: object, name: str) -> str:
    """Parse the name of a secret on the host. Raises InvalidInput."""
    if isinstance(value, str) and _ENTRY.fullmatch(value):
        return value
    raise InvalidInput(name, f"not the name of a secret: {short_repr(value)}", hint=f"1 to 128 {ALLOWED}")


def parse_stored(stored: Iterable[str]) -> list[SecretRequest]:
    """Parse the stored form that `secrets` returns."""
    return [_split(text) for text in stored]


def merge_secrets(before: object, on_top: object) -> object:
    """Merge the requests of a job with those of its options, which take precedence for each variable. Invalid values are returned as
    they are: `secrets` reports them."""
    if not isinstance(before, (list, tuple)) or not isinstance(on_top, (list, tuple)):
        return on_top
    named = {str(item).partition("=")[0] for item in on_top}
    return [*(item for item in before if str(item).partition("=")[0] not in named), *on_top]


def is_entry(text: str) -> bool:
    return _ENTRY.fullmatch(text) is not None


def _parse(item: object, name: str) -> SecretRequest:
    if not isinstance(item, str):
        raise InvalidInput(name, f"expected a name, got {short_repr(item)}", hint=_hint(name))
    one = _split(item)
    if not _VARIABLE.fullmatch(one.variable):
        other = f"; if the host has it under this name: MY_SECRET={one.entry}" if is_entry(one.entry) else ""
        raise InvalidInput(name, f"not the name of a variable: {short_repr(one.variable)}", hint=_hint(name) + other)
    if one.variable.startswith("QUEUECTL_"):
        raise InvalidInput(name, f"{short_repr(one.variable)} is reserved", hint="use another name")
    parse_entry(one.entry, name)
    return one


def _split(text: str) -> SecretRequest:
    variable, equals, name = text.partition("=")
    return SecretRequest(variable, name if equals else variable)


def _hint(name: str) -> str:
    return HINT if name.startswith("--") else 'like "secrets": ["DB_PASSWORD", "PGPASSWORD=db-password"]'
