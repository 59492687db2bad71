"""What the parents of a job printed, in a folder where the job can read it.

Where all of them ran here, that is the folder of the logs. Else one is made beside the log of the job: with links to the logs
that are here, and files for what the store keeps of the others. One for each run, since a worker that was taken for lost tidies up
after its run when another may have begun the next.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import Final

from queuectl.logs.access import ENTER, READ, let_too
from queuectl.logs.writing import Writing

SUFFIX: Final = ".log"
NO_LIMIT: Final = 1 << 62  # nothing is written
FOLDER: Final = ".parents"  # in the place of that: all that was made for the runs of a job


def log_beside(log: str, job_id: str) -> str:
    """Where another job of the same home has its log."""
    return log_in(os.path.dirname(log), job_id)


def folder_for(log: str, run: int) -> str:
    return os.path.join(_all_of(log), str(run))


def folder_of(log: str, run: int) -> str:
    """Where a run finds what its parents printed."""
    made = folder_for(log, run)
    return made if os.path.isdir(made) else os.path.dirname(log)


def make_folder(log: str, run: int) -> str:
    """Raises OSError."""
    folder = folder_for(log, run)
    # One by one: makedirs gives the mode to the last of them only.
    for path in (os.path.dirname(log), _all_of(log), folder):
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
    """Let this user, as whom the run will be, read what its parents printed: as far as it can be had."""
    folder = folder_of(log, run)
    with contextlib.suppress(OSError):
        if folder == folder_for(log, run):
            let_too(_all_of(log), [reader], ENTER)
            let_too(folder, [reader], ENTER | READ)
    for parent in parents:
        path = os.path.realpath(log_in(folder, parent))
        with contextlib.suppress(OSError), Writing(path, limit=NO_LIMIT) as found:
            found.share(reader, too=True)


def remove_folder(log: str, run: int) -> None:
    """As far as it is there and may be removed: what is left goes with the log of the job."""
    _remove(folder_for(log, run))
    with contextlib.suppress(OSError):  # another run has its own
        os.rmdir(_all_of(log))


def remove_folders(log: str) -> None:
    """Of all runs."""
    _remove(_all_of(log))


def _all_of(log: str) -> str:
    return log.removesuffix(SUFFIX) + FOLDER


def _remove(folder: str) -> None:
    """With all that is in it, which may be more than we have put there: it is the job's to use. So it may be a link, at any moment:
    by descriptors, nothing is removed that a link leads to, be it in the place of the folder itself."""
    with contextlib.suppress(OSError, RecursionError):  # not there, as a rule; or deeper than we can go
        for _, folders, files, fd in os.fwalk(folder, topdown=False):
            for name in (*files, *folders):
                _remove_one(name, fd)
        _remove_one(folder)


def _remove_one(name: str, folder: int | None = None) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except NotADirectoryError:
        os.unlink(name, dir_fd=folder)
