"""The map of the home: which file lies where. Only names; nothing here changes the disk but `make_home`.

queue.db            the store (with -wal and -shm beside it, and -new while it is made)
logs/ID.log         what each job printed
logs/ID.log.cut     what is to stay of it, while it is being cut
logs/ID.log.masked  where secrets were taken out of it, and which; not what they are
logs/ID.parents/    what its parents printed on other hosts, while it runs
workers/NAME.lock   held while the worker lives
workers/NAME.bell   a pipe that wakes it
workers/NAME.runs   which processes it has made
workers/NAME.N.kept the same of a worker that is gone, as long as some of them run on
workers/NAME.log    what it said, if it was detached
workers/NAME.gone   logs that are about to be removed
backups/            made before something is removed
secrets/NAME        what jobs of this host may be given as secrets
secrets.toml        whom to ask for those that are not there
"""

from __future__ import annotations

import os

from queuectl import errors

KEPT = ".kept"


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


def bell_file(home: str, worker: str) -> str:
    return os.path.join(home, "workers", f"{worker}.bell")


def runs_file(home: str, worker: str) -> str:
    return os.path.join(home, "workers", f"{worker}.runs")


def kept_file(home: str, worker: str, keeper: int) -> str:
    return os.path.join(home, "workers", f"{worker}.{keeper}{KEPT}")


def worker_log(home: str, worker: str) -> str:
    return os.path.join(home, "workers", f"{worker}.log")


def removing_file(home: str, writer: str) -> str:
    return os.path.join(home, "workers", f"{writer}.gone")


def removing_files(home: str) -> list[str]:
    folder = os.path.dirname(removing_file(home, ""))
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(".gone")]


def make_home(home: str) -> None:
    """Make the home itself, private to this user; leave it as it is if it is there."""
    _make(home, home)


def make_folders(home: str) -> None:
    """Make the directories of the home."""
    _make(home, logs(home), os.path.join(home, "workers"))


def _make(home: str, *paths: str) -> None:
    try:
        for path in paths:
            # Asked first: makedirs costs a system call that fails for each that is there, at every enqueue.
            if not os.path.isdir(path):
                os.makedirs(path, mode=0o700, exist_ok=True)
    except FileExistsError as exc:
        raise errors.HomeUnusable(home, "it is not a directory") from exc
    except OSError as exc:
        raise errors.HomeUnusable(home, exc.strerror or str(exc)) from exc
