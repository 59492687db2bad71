"""Reading a policy.toml, if it is one that can be relied on."""

from __future__ import annotations

import os
import stat
from typing import Final, NamedTuple

from queuectl.errors import InvalidInput, PolicyUnusable
from queuectl.job.policy import Policy
from queuectl.job.policytables import parse_policy
from queuectl.policy.accounts import Accounts, find_accounts
from queuectl.policy.paths import walk

NAME: Final = "policy.toml"
LARGEST: Final = 1 << 20


class Stamp(NamedTuple):
    """Another one: the file, or what stands in it, is another."""

    device: int
    inode: int
    size: int
    written_ns: int
    changed_ns: int


class Loaded(NamedTuple):
    path: str
    policy: Policy
    accounts: Accounts
    stamp: Stamp


def place_of(home: str) -> str:
    return os.path.join(home, NAME)


def stamp_of(path: str) -> Stamp | None:
    try:
        return _stamp(os.stat(path))
    except OSError:
        return None


def read_policy(path: str, *, user: int) -> Loaded:
    """Raises PolicyUnusable if it is not there, if somebody but `user` and root could change it, or if it names users whom
    nobody knows here; InvalidInput for what cannot be understood."""
    try:
        way = walk(path, user=user)
        if way.weak is not None:
            raise PolicyUnusable(path, f"{way.weak} can be changed by others", hint=f"chown and chmod go-w {way.weak}")
        # Of the very file that is read: nobody but us and root can have put another one there since.
        fd = os.open(way.real, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):  # an empty pipe would allow everything
                raise PolicyUnusable(path, "it is not a file")
            text = file.read(LARGEST + 1)
    except OSError as exc:
        raise PolicyUnusable(path, (exc.strerror or str(exc)).lower()) from exc
    if len(text) > LARGEST:
        raise PolicyUnusable(path, "it is larger than 1 MiB")
    policy = parse_policy(_tables(text, path), subject=path)
    return Loaded(path, policy, find_accounts(policy, path), _stamp(found))


def _tables(text: bytes, path: str) -> dict[str, object]:
    import tomllib  # here, since most homes have no such file

    try:
        return tomllib.loads(text.decode())
    except (ValueError, RecursionError) as exc:
        raise InvalidInput(path, f"is not TOML: {exc}", hint="docs/how-to/policy.md shows one") from exc


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
