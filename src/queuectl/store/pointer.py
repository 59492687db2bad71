"""`queuectl.toml` in a home: where its store is, if it is elsewhere. That one key and no other.

For a URL with a password, which belongs neither into a command line nor into the environment of every job: so the file has to
be its owner's alone.
"""

from __future__ import annotations

import os
import re
import stat
from typing import Final

from queuectl import errors

NAME: Final = "queuectl.toml"
_FORM: Final = 'write one line: db = "postgresql://…"'


def address_of(home: str) -> str | None:
    """The address that the file names; None if there is no such file.

    Raises InvalidInput for one that says something else, HomeUnusable for one that others can read.
    """
    path = os.path.join(home, NAME)
    try:
        file = open(path, "rb")  # noqa: SIM115 # closed below, after its mode was asked of the very file that is read
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise errors.HomeUnusable(home, f"{NAME}: {exc.strerror}") from exc
    with file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise errors.HomeUnusable(home, f"others can read its {NAME}", hint=f"chmod 600 {path}")
        text = file.read()
    return _parse(text, path)


def _parse(text: bytes, path: str) -> str | None:
    import tomllib  # here, since most homes have no such file

    try:
        found = tomllib.loads(text.decode())
    except ValueError as exc:
        # Not `from` it, and not in its words: they may quote the password.
        line = re.search(r"at line \d+", str(exc)) if isinstance(exc, tomllib.TOMLDecodeError) else None
        where = f" {line[0]}" if line else ""
        raise errors.InvalidInput(path, f"is not TOML{where}", hint=_FORM) from None
    for key in found:
        if key != "db":
            hint = f"{_FORM}; settings are in the store: queuectl config set KEY VALUE"
            raise errors.InvalidInput(path, f"unknown key {key!r}", hint=hint)
    address = found.get("db")
    if address is None or (isinstance(address, str) and address):
        return address
    raise errors.InvalidInput(path, "db is not an address", hint=_FORM)
