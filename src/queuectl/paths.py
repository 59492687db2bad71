"""The paths of the files of a data directory. Only `make_home` and `make_folders` change the disk.

queue.db            the database (with -wal and -shm, and -new while it is created)
logs/ID.log         the output of a job
logs/ID.log.1       the older segment of its log
logs/ID.parents/    the output of its parents on other hosts, while it runs
workers/NAME.lock   locked while the worker is alive
workers/NAME.bell   its wake-up pipe
workers/NAME.runs   the processes it has started
workers/NAME.N.kept the same of a dead worker, while some of them still run
workers/NAME.log    the log of a detached worker
workers/NAME.gone   logs to be removed
backups/            backups made before a reset or restore
secrets/NAME        a secret for jobs of this host
secrets.toml        external providers of secrets
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from queuectl import errors

KEPT = ".kept"
TRUST_VARIABLE = "QUEUECTL_TRUST_HOME"
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Of the data directory, never followed if they are symbolic links. Those of `secrets` and `policy.toml` are checked where they are read.
_NO_LINKS = ("queuectl.toml", "queue.db", "logs", "workers", "backups")


def store_file(home: str) -> str:
    return os.path.join(home, "queue.db")


def logs(home: str) -> str:
    return os.path.join(home, "logs")


def backups(home: str) -> str:
    return os.path.join(home, "backups")


def secrets(home: str) -> str:
    return os.path.join(home, "secrets")


def secret_file(home: str, name: str) -> str:
    return os.path.join(home, "secrets", name)


def secrets_settings(home: str) -> str:
    return os.path.join(home, "secrets.toml")


def lock_file(home: str, worker: str) -> str:
    return os.path.join(home, "workers", f"{worker}.lock")


def wakeup_file(home: str, worker: str) -> str:
    return os.path.join(home, "workers", f"{worker}.bell")


def runs_file(home: str, worker: str) -> str:
    return os.path.join(home, "workers", f"{worker}.runs")


def kept_file(home: str, worker: str, supervisor: int) -> str:
    return os.path.join(home, "workers", f"{worker}.{supervisor}{KEPT}")


def worker_log(home: str, worker: str) -> str:
    return os.path.join(home, "workers", f"{worker}.log")


def removing_file(home: str, writer: str) -> str:
    return os.path.join(home, "workers", f"{writer}.gone")


def removing_files(home: str) -> list[str]:
    folder = os.path.dirname(removing_file(home, ""))
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(".gone")]


def trusts_home(home: str, environ: Mapping[str, str], *, flag: bool) -> bool:
    """Whether the user vouches for this data directory: with the flag, or with its path in $QUEUECTL_TRUST_HOME.

    The variable names one directory, so that it does not vouch for another one that a job or a script uses.
    """
    return flag or environ.get(TRUST_VARIABLE) == home


def check_trusted(path: str, *, may_be_sticky: bool = False) -> None:
    """Raise NotTrusted if another user owns this file or directory, or can write to it. A missing one passes, and so does one of root's.

    `may_be_sticky`: a directory such as /tmp, in which only the owner of a file can replace it, passes.
    """
    try:
        found = os.stat(path)
    except OSError:  # reported, with the reason, by the code that opens it
        return
    if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):  # the same
        return
    if found.st_uid not in (os.geteuid(), 0):
        owner = user_name(found.st_uid)
        raise errors.NotTrusted(path, f"it belongs to {owner}, not to you", hint=f"use it as {owner}")
    if not found.st_mode & OTHERS_WRITE or (may_be_sticky and found.st_mode & stat.S_ISVTX):
        return
    if found.st_mode & stat.S_IWOTH or not _is_private_group(found):
        mode = stat.S_IMODE(found.st_mode)
        raise errors.NotTrusted(path, f"other users can write to it (mode {mode:04o})", hint=f"chmod go-w {path}")


def check_links(home: str) -> None:
    """Raise HomeUnusable if a part of the data directory is a symbolic link: it could point to a file of another user."""
    for name in _NO_LINKS:
        if os.path.islink(os.path.join(home, name)):
            raise errors.HomeUnusable(
                home, f"{name} in it is a symbolic link", hint=f"replace it with a real one, or move {home} as a whole"
            )


def user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _is_private_group(found: os.stat_result) -> bool:
    """Whether the group has the name of the owner and no other members: the group that Debian and Red Hat make for every user."""
    import grp
    import pwd

    try:
        owner, group = pwd.getpwuid(found.st_uid), grp.getgrgid(found.st_gid)
    except KeyError:
        return False
    is_own = (owner.pw_gid, owner.pw_name) == (group.gr_gid, group.gr_name)
    return is_own and not set(group.gr_mem) - {owner.pw_name}


def make_home(home: str) -> None:
    """Create the data directory, private to this user, if it does not exist."""
    _make(home, home)


def make_folders(home: str) -> None:
    """Create the directories of the data directory."""
    _make(home, logs(home), os.path.join(home, "workers"))


def _make(home: str, *paths: str) -> None:
    try:
        for path in paths:
            # Checked first: makedirs costs one failing system call for each existing directory, at every enqueue.
            if not os.path.isdir(path):
                os.makedirs(path, mode=0o700, exist_ok=True)
    except FileExistsError as exc:
        raise errors.HomeUnusable(home, "it is not a directory") from exc
    except OSError as exc:
        raise errors.HomeUnusable(home, exc.strerror or str(exc)) from exc
