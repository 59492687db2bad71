"""Who runs the tests, and as whom they let jobs run."""

from __future__ import annotations

import os
import pwd
from typing import Final

from tests.needs import require

IS_ROOT: Final = os.geteuid() == 0
OTHER: Final = "nobody"


def me() -> str:
    """As a policy says it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"{os.geteuid()}:{os.getegid()}"


def other() -> pwd.struct_passwd:
    """Somebody else, as whom root can run things."""
    require("root", IS_ROOT, "only root can become somebody else")
    return pwd.getpwnam(OTHER)
