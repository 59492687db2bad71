"""As whom a job runs, where its worker is root: what a policy says, and what a login would give that user.

Pure: who these users are on this host is for policy/accounts.py to find out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.job.shown import shown

# Of root's environment, what a job of another user sees where the policy says nothing.
HARMLESS: Final = ("LANG", "LANGUAGE", "LC_*", "TZ")
PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_NAME: Final = re.compile(r"[^\s:/\x00-\x1f\x7f-]([^\s:/\x00-\x1f\x7f]{0,254})")
_LARGEST: Final = (1 << 32) - 2  # the one above it means: leave it as it is
_HINT: Final = 'like user = "deploy", "deploy:www-data", or by numbers "1500:1500"'


class Identity(NamedTuple):
    """As it was said: a name, or a number. `group` None: the user's own."""

    user: str
    group: str | None = None

    def __str__(self) -> str:
        return self.user if self.group is None else f"{self.user}:{self.group}"


class Account(NamedTuple):
    """Who that is on this host."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    shell: str

    @property
    def variables(self) -> Mapping[str, str]:
        """What a login sets."""
        return {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell}


def parse_identity(value: Any, about: str) -> Identity:
    """Raises InvalidInput."""
    # A bare number is one, too; but not any: of absurd lengths Python makes no text.
    text = str(value) if type(value) is int and 0 <= value <= _LARGEST else value
    if not isinstance(text, str):
        raise InvalidInput(about, f"expected a user, got {shown(value)}", hint=_HINT)
    user, colon, group = text.partition(":")
    for name in (user, group) if colon else (user,):
        if not _NAME.fullmatch(name) or (name.isdecimal() and not is_number(name)):
            raise InvalidInput(about, f"not a user: {shown(text)}", hint=_HINT)
    return Identity(user, group if colon else None)


def is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 11 and int(name) <= _LARGEST


def parse_umask(value: Any, about: str) -> int:
    """Raises InvalidInput."""
    # As text: a 27 without quotes would be decimal, and nobody would mean that.
    if not isinstance(value, str) or not re.fullmatch(r"0?[0-7]{3}", value):
        raise InvalidInput(about, f"expected three octal digits as text, got {shown(value)}", hint='like umask = "027"')
    return int(value, 8)
