"""The directory in which a job finds the output of its parents.

If all of them ran on this host, that is the directory of the logs. Otherwise, or if a log has two segments, one is made beside the log of
the job: with links to logs of this host, and files for what is in the database. One for each run, since the worker of a lost run may clean
up when the next run has begun.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Final

from queuectl.logs.acl import ENTER, READ, grant
from queuectl.logs.writer import share_log

SUFFIX: Final = ".log"
FOLDER_SUFFIX: Final = ".parents"  # instead of that: the directories for the runs of a job


def log_beside(log: str, job_id: str) -> str:
    """The log of another job of the same data directory."""
    return log_in(os.path.dirname(log), job_id)


def folder_for(log: str, run: int) -> str:
    return os.path.join(_all_folders(log), str(run))


def folder_of(log: str, run: int) -> str:
    """The directory that a run is given."""
    made = folder_for(log, run)
    return made if os.path.isdir(made) else os.path.dirname(log)


def make_folder(log: str, run: int) -> str:
    """Raises OSError."""
    folder = folder_for(log, run)
    # One by one: makedirs gives the mode to the last of them only.
    for path in (os.path.dirname(log), _all_folders(log), folder):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)
    return folder


def log_in(folder: str, job_id: str) -> str:
    return os.path.join(folder, job_id + SUFFIX)


def link_log(path: str, log: str) -> None:
    """Raises OSError."""
    os.symlink(log, path)


def write_log(path: str, pieces: Iterable[bytes]) -> None:
    """Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.writelines(pieces)


def share_logs(log: str, run: int, parents: Iterable[str], *, reader: int) -> None:
    """Let the user of the run read the output of its parents, as far as that is possible."""
    folder = folder_of(log, run)
    with contextlib.suppress(OSError):
        if folder == folder_for(log, run):
            grant(_all_folders(log), [reader], ENTER)
            grant(folder, [reader], ENTER | READ)
    for parent in parents:
        path = os.path.realpath(log_in(folder, parent))
        with contextlib.suppress(OSError):
            share_log(path, reader)


def remove_folder(log: str, run: int) -> None:
    """Remove that of one run, as far as possible: the rest is removed with the log of the job."""
    _remove(folder_for(log, run))
    with contextlib.suppress(OSError):  # another run has one
        os.rmdir(_all_folders(log))


def remove_folders(log: str) -> None:
    """Remove those of all runs."""
    _remove(_all_folders(log))


def _all_folders(log: str) -> str:
    return log.removesuffix(SUFFIX) + FOLDER_SUFFIX


def _remove(folder: str) -> None:
    """With all that the job has put there. Any of it may be replaced by a link at any moment: by descriptors, nothing is removed that a link
    points to."""
    with contextlib.suppress(OSError, RecursionError):  # there is none, as a rule; or it is too deep
        for _, folders, files, fd in os.fwalk(folder, topdown=False):
            for name in (*files, *folders):
                _remove_one(name, fd)
        _remove_one(folder)


def _remove_one(name: str, folder: int | None = None) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except NotADirectoryError:
        os.unlink(name, dir_fd=folder)
