"""Where a store is, as people write it: what kind of store an address names, and how to show it to anybody.

Pure text: nothing here connects, and nothing here loads a driver.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from queuectl import errors

HIDDEN: Final = "***"

_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")
# A password of a URL stands between the first colon behind the user and the last @: written by hand it may hold an @, a /
# or a ? that should have been escaped, and then too it must not be shown.
_PASSWORD: Final = re.compile(r"^(\w+://[^:@/?]*):.*@", re.DOTALL)
_PARAMETER: Final = re.compile(r"(?i)([?&](?:password|sslpassword|sslkey|passfile|oauth_client_secret)=)[^&]*")


class SqliteFile(NamedTuple):
    path: str

    def shown(self) -> str:
        return self.path


class PostgresUrl(NamedTuple):
    """A URL for libpq. Its text may hold a password: `shown` is for every other eye."""

    url: str

    def shown(self) -> str:
        return shown(self.url)

    def __repr__(self) -> str:
        return f"PostgresUrl({self.shown()!r})"


Address = SqliteFile | PostgresUrl


def parse_address(text: str) -> Address:
    """The store that `text` names: a URL, or the path of a file. Raises StoreUnsupported for any other scheme."""
    if text.startswith(_SQLITE):
        return SqliteFile(os.path.abspath(text.removeprefix(_SQLITE)))
    if text.startswith(_POSTGRES):
        return PostgresUrl(text)
    scheme, separator, _ = text.partition("://")
    if separator:
        raise errors.StoreUnsupported(scheme)
    return SqliteFile(os.path.abspath(text))


def shown(text: str) -> str:
    """An address without what is secret in it, for messages, lists and logs."""
    if not text.startswith(_POSTGRES):
        return text
    # Rather too much than too little: an @ that somebody left in a parameter hides the host too.
    return _PARAMETER.sub(rf"\1{HIDDEN}", _PASSWORD.sub(rf"\1:{HIDDEN}@", text))
