"""Secrets that a job asks for: by name only. What they are is found out by the worker that runs it, on its host.

A job says `VARIABLE` or `VARIABLE=ENTRY`: which variable it wants, and under which name the host knows the secret, if that is
another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput, UnknownName
from queuectl.job.duration import parse_duration_ms
from queuectl.job.names import ID_PATTERN
from queuectl.job.nearest import nearest
from queuectl.job.shown import cut, shown

MOST: Final = 32
LARGEST: Final = 49_152  # bytes of all that one job has: they travel in one message, see process/relief.py
ALLOWED: Final = "letters, digits and . _ : - beginning with a letter or digit"
HINT: Final = "like --secret DB_PASSWORD, or --secret PGPASSWORD=db-password if its name on the host is another"

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# No slash, and no dash or dot in front: it becomes the name of a file, and a word of a command.
_ENTRY: Final = re.compile(ID_PATTERN)


# In a word of a command: the name of the secret that is asked for.
PLACE: Final = "{name}"
PATIENCE_MS: Final = 10_000
LONGEST_MS: Final = 300_000
KEYS: Final = ("command", "timeout")


class Wanted(NamedTuple):
    """A secret that a job asks for."""

    variable: str
    entry: str

    def __str__(self) -> str:
        return self.variable if self.variable == self.entry else f"{self.variable}={self.entry}"


def secrets(value: object, name: str) -> tuple[str, ...]:
    """As they are kept: sorted, each variable once. Raises InvalidInput."""
    if not isinstance(value, (list, tuple)):
        raise InvalidInput(name, f"expected a list of names, got {shown(value)}", hint=_hint(name))
    found: dict[str, Wanted] = {}
    for item in value:
        one = _wanted(item, name)
        if found.setdefault(one.variable, one) != one:
            raise InvalidInput(
                name, f"{one.variable} is asked for twice, as two secrets", hint="leave one of them away"
            )
    if len(found) > MOST:
        raise InvalidInput(
            name, f"{len(found)} secrets, over {MOST}", hint="put what belongs together into one of them"
        )
    return tuple(str(found[variable]) for variable in sorted(found))


def entry(value: object, name: str) -> str:
    """The name of a secret, as the host knows it. Raises InvalidInput."""
    if isinstance(value, str) and _ENTRY.fullmatch(value):
        return value
    raise InvalidInput(name, f"not the name of a secret: {shown(value)}", hint=f"1 to 128 {ALLOWED}")


def wanted(kept: Iterable[str]) -> list[Wanted]:
    """What `secrets` has kept."""
    return [_parted(text) for text in kept]


def merged(before: object, on_top: object) -> object:
    """Those of a job with those of its options, which win: each variable counts for itself. What cannot be read is for others to
    refuse."""
    if not isinstance(before, (list, tuple)) or not isinstance(on_top, (list, tuple)):
        return on_top
    named = {str(item).partition("=")[0] for item in on_top}
    return [*(item for item in before if str(item).partition("=")[0] not in named), *on_top]


def is_entry(text: str) -> bool:
    return _ENTRY.fullmatch(text) is not None


def _wanted(item: object, name: str) -> Wanted:
    if not isinstance(item, str):
        raise InvalidInput(name, f"expected a name, got {shown(item)}", hint=_hint(name))
    one = _parted(item)
    if not _VARIABLE.fullmatch(one.variable):
        other = f"; the host may call it otherwise: MY_SECRET={one.entry}" if is_entry(one.entry) else ""
        raise InvalidInput(name, f"not the name of a variable: {shown(one.variable)}", hint=_hint(name) + other)
    if one.variable.startswith("QUEUECTL_"):
        raise InvalidInput(name, f"{shown(one.variable)} is one of ours", hint="give it another name")
    entry(one.entry, name)
    return one


def _parted(text: str) -> Wanted:
    variable, equals, name = text.partition("=")
    return Wanted(variable, name if equals else variable)


def _hint(name: str) -> str:
    return HINT if name.startswith("--") else 'like "secrets": ["DB_PASSWORD", "PGPASSWORD=db-password"]'


# ── whom to ask ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Teller(NamedTuple):
    """A command of the host that prints a secret, such as a password manager's."""

    command: tuple[str, ...]
    timeout_ms: int = PATIENCE_MS

    def words(self, name: str) -> list[str]:
        return [word.replace(PLACE, name) for word in self.command]


def parse_teller(said: Mapping[str, Any], *, subject: str) -> Teller:
    """From the tables of a secrets.toml. Raises InvalidInput or UnknownName, which name `subject`, the file."""
    for key in said:
        if key not in KEYS:
            raise UnknownName("setting in " + subject, cut(key), nearest=nearest(key, KEYS), known=KEYS)
    command, hint = said.get("command"), 'like command = ["pass", "show", "{name}"]'
    if not isinstance(command, list) or not command:
        raise InvalidInput(f"{subject}: command", f"expected a list of words, got {shown(command)}", hint=hint)
    for word in command:
        if not isinstance(word, str) or "\0" in word:
            raise InvalidInput(f"{subject}: command", f"expected text, got {shown(word)}", hint=hint)
    if not command[0] or PLACE in command[0] or not any(PLACE in word for word in command):
        problem = f"expected a program, and {PLACE} in one of the words behind it"
        raise InvalidInput(f"{subject}: command", problem, hint=hint)
    about = f"{subject}: timeout"
    timeout_ms = parse_duration_ms(said.get("timeout", PATIENCE_MS // 1000), subject=about)
    if not 0 < timeout_ms <= LONGEST_MS:
        raise InvalidInput(about, "expected up to five minutes", hint='like timeout = "10s"')
    return Teller(tuple(command), timeout_ms)
