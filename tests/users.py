"""The user of the tests, and another user for jobs."""

from __future__ import annotations

import os
import pwd
from typing import Final

from tests.needs import require

IS_ROOT: Final = os.geteuid() == 0
UNPRIVILEGED: Final = 65534  # the user ID without rights that every distribution has
OTHER: Final = pwd.getpwuid(UNPRIVILEGED).pw_name


def me() -> str:
    """Return the user of the tests, as a policy names it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"{os.geteuid()}:{os.getegid()}"


def other() -> pwd.struct_passwd:
    """Return another user for jobs of root."""
    require("root", IS_ROOT, "only root can change its user")
    return pwd.getpwnam(OTHER)
