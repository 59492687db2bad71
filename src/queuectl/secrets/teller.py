"""Whom this host asks for secrets that lie in no file: what secrets.toml says, if it can be relied on."""

from __future__ import annotations

import os
import stat
from typing import Final

from queuectl import home as places
from queuectl.errors import InvalidInput, SecretUnusable
from queuectl.gate import Gate
from queuectl.job.policy import PROVIDER, Refusal
from queuectl.job.secrets import LARGEST as LARGEST_SECRET
from queuectl.job.secrets import Teller, parse_teller
from queuectl.policy.guard import Wish
from queuectl.policy.paths import walk
from queuectl.process.asking import Question

LARGEST: Final = 1 << 16


def teller_of(home: str, name: str, *, user: int) -> Teller | None:
    """None if nothing is said. Raises SecretUnusable, about the secret that is asked for, if somebody but `user` and root could say
    what runs; InvalidInput or UnknownName for what cannot be understood."""
    path = places.secrets_settings(home)
    if not os.path.lexists(path):
        return None
    try:
        way = walk(path, user=user)
        if way.weak is not None:
            problem = f"{path} says whom to ask, and {way.weak} can be changed by others"
            raise SecretUnusable(name, problem, hint=f"chown and chmod go-w {way.weak}")
        fd = os.open(way.real, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise SecretUnusable(name, f"{path} is not a file", hint="docs/how-to/secrets.md shows one")
            text = file.read(LARGEST + 1)
    except OSError as exc:
        problem = f"{path}: {(exc.strerror or str(exc)).lower()}"
        raise SecretUnusable(name, problem, hint="docs/how-to/secrets.md shows one") from exc
    return parse_teller(_tables(text, path), subject=path)


def provider_command(teller: Teller, name: str, *, home: str, gate: Gate) -> Question:
    """What to run for the secret `name`. Raises SecretUnusable if the policy refuses the provider."""
    wish = Wish(PROVIDER, None, teller.words(name), home, {}, teller.timeout_ms, sets_timeout=False, sets_cwd=False)
    found = gate.command(wish, name=teller.command[0], longest=LARGEST_SECRET + 1)
    if isinstance(found, Refusal):
        problem = f"its provider {teller.command[0]} is refused by policy: {found.rule}: {found.problem}"
        raise SecretUnusable(name, problem, hint="[secret-provider] in policy.toml has the rules for it")
    return found


def _tables(text: bytes, path: str) -> dict[str, object]:
    import tomllib  # here, since most homes have no such file

    try:
        if len(text) > LARGEST:
            raise ValueError("it is larger than 64 KiB")
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(path, f"is not TOML: {exc}", hint="docs/how-to/secrets.md shows one") from exc
