"""The way to the logs, for the users as whom jobs run: through the home, which is closed to all others."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

from queuectl import home as places
from queuectl.job.user import Account
from queuectl.output.access import ENTER, let_too


def open_doors(home: str, accounts: Collection[Account]) -> str | None:
    """Let them through the directories of ours, where they can see nothing but what they know by name and may read. Returns
    what is in the way, None: nothing that is ours."""
    users = [account.uid for account in accounts]
    try:
        for path in (home, places.logs(home)) if users else ():
            let_too(path, users, ENTER)
    except OSError as exc:
        return f"jobs cannot read their logs in {home}: {exc.strerror}"
    return None


def barred(home: str, account: Account) -> str | None:
    """The first directory above the home that this user cannot enter."""
    place = os.path.realpath(home)
    above = []
    while place != "/":
        place = os.path.dirname(place)
        above.append(place)
    return next((path for path in reversed(above) if not _may_enter(os.stat(path), account)), None)


def _may_enter(found: os.stat_result, account: Account) -> bool:
    if found.st_uid == account.uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == account.gid or found.st_gid in account.groups:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)
