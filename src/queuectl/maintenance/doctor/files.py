"""The home: who may read and write what is in it, and what lies there that nobody needs any more."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from queuectl import paths as places
from queuectl.filelock import is_held, take_lock
from queuectl.logs.acl import names_users
from queuectl.maintenance.doctor.finding import Finding, Patient, Seen, count, named, note, problem
from queuectl.paths import lock_file
from queuectl.process.ending import orphans
from queuectl.process.ledger import read_ledger

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
MOST_FILES: Final = 100_000  # of one directory: a home may hold millions of logs

POINTER: Final = "queuectl.toml"
FOLDERS: Final = ("logs", "workers", "backups", "secrets")
OF_A_WORKER: Final = (".lock", ".bell", ".runs")


def home(patient: Patient) -> Seen:
    try:
        os.lstat(patient.home)
    except PermissionError:
        return Seen("", [_unreachable(patient.home)])
    except OSError:
        return Seen(f"there is none at {patient.home} yet: the first command that writes makes it")
    if not os.path.isdir(patient.home):
        message = f"{patient.home} is not a directory"
        return Seen("", [problem("home-unusable", message, "choose another with --home or QUEUECTL_HOME")])
    found = os.stat(patient.home)
    owner, mode = places.user_name(found.st_uid), stat.S_IMODE(found.st_mode)
    findings: list[Finding] = []
    if found.st_uid != patient.user:
        message = f"{patient.home} belongs to {owner}, and you are {places.user_name(patient.user)}"
        hint = f"use it as {owner}; commands and workers of other users reject it unless you add --trust-home"
        findings.append(note("home-of-another", message, hint))
    if not os.access(patient.home, os.R_OK | os.W_OK | os.X_OK):
        message = f"{patient.home} cannot be read and written: it belongs to {owner}, mode {mode:04o}"
        hint = f"use it as {owner}, or choose another with --home or QUEUECTL_HOME"
        findings.append(problem("home-unusable", message, hint))
    return Seen(patient.home, findings)


def _unreachable(home: str) -> Finding:
    """A directory above it may not be entered: name that one."""
    above = os.path.dirname(home)
    while not os.access(above, os.X_OK) and not os.access(os.path.dirname(above), os.X_OK):
        above = os.path.dirname(above)
    found = os.stat(above)
    owner, mode = places.user_name(found.st_uid), stat.S_IMODE(found.st_mode)
    message = f"{home} cannot be examined: {above} belongs to {owner}, mode {mode:04o}"
    return problem("home-unusable", message, f"use it as {owner}, or choose another with --home or QUEUECTL_HOME")


# ── permissions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def permissions(patient: Patient) -> Seen:
    if not os.path.isdir(patient.home):
        return Seen("there is nothing to check")
    findings = [*_of_home(patient.home)]
    ours = list(_ours(patient))
    # Where jobs run as other users, those are named, one by one: see policy/accounts.py.
    if open_ones := [path for path, found in ours if found.st_mode & OTHERS and not names_users(path)]:
        message = (
            f"{count(len(open_ones), 'file')} of ours {_be(open_ones)} open to others: {_short(open_ones, patient)}"
        )
        hint = "queuectl doctor --fix, or: chmod go= FILE"
        findings.append(problem("open-to-others", message, hint, lambda: _close(open_ones)))
    owner = os.stat(patient.home).st_uid
    if foreign := [path for path, found in ours if found.st_uid != owner]:
        message = (
            f"{count(len(foreign), 'file')} in the home {_be(foreign)} not of {places.user_name(owner)}, who owns it:"
            f" {_short(foreign, patient)}"
        )
        hint = (
            f"give them back: chown {places.user_name(owner)} FILE; they come from a queuectl that another user has run"
        )
        findings.append(problem("owner-differs", message, hint))
    return Seen("what is ours is its owner's alone", findings)


def _of_home(home: str) -> Iterator[Finding]:
    """It may be somebody else's directory, made for more than this: told, never changed."""
    mode = stat.S_IMODE(os.stat(home).st_mode)
    hint = f"chmod 700 {home}; a directory is not changed by --fix: it may be meant for more than this"
    if mode & places.OTHERS_WRITE:
        yield problem(
            "home-writable", f"{home} can be written by others ({mode:o}): they could replace the database", hint
        )
    elif mode & OTHERS and not names_users(home):
        yield note("home-readable", f"{home} can be entered by others ({mode:o}): they see the names of jobs", hint)


def _ours(patient: Patient) -> Iterator[tuple[str, os.stat_result]]:
    """What we made, in the home and where the store is. Never through a link: what that leads to is not ours."""
    file = patient.store_file
    beside = [f"{file}{ending}" for ending in ("", "-wal", "-shm")] if file else []
    paths: Iterable[str] = (*beside, os.path.join(patient.home, POINTER))
    for path in paths:
        yield from _seen(path)
    for name in FOLDERS:
        folder = os.path.join(patient.home, name)
        for path, found in _seen(folder):
            yield path, found
            if stat.S_ISDIR(found.st_mode):
                with os.scandir(folder) as entries:
                    for entry in islice(entries, MOST_FILES):
                        yield from _seen(entry.path)


def _seen(path: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):  # not there, or not any more
        return
    if not stat.S_ISLNK(found.st_mode):
        yield path, found


def _close(paths: list[str]) -> str:
    for path in paths:
        for _, found in _seen(path):
            os.chmod(path, stat.S_IMODE(found.st_mode) & ~OTHERS)
    return f"closed {count(len(paths), 'file')} to others"


# ── logs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def logs(patient: Patient) -> Seen:
    folder = places.logs(patient.home)
    if not os.path.isdir(patient.home):
        return Seen("there are none yet")
    if not os.path.lexists(folder):
        message = f"{folder} is missing, and with it what jobs have printed"
        hint = "the next job that runs makes it anew, and so does queuectl doctor --fix"
        return Seen("", [note("logs-missing", message, hint, _maker(patient.home))])
    if not os.path.isdir(folder):
        return Seen("", [problem("logs-unusable", f"{folder} is not a directory", "move it away")])
    if not os.access(folder, os.W_OK | os.X_OK) or os.statvfs(folder).f_flag & os.ST_RDONLY:
        message = f"{folder} cannot be written: no job can run"
        return Seen("", [problem("logs-unusable", message, "check its owner, its mode and how it is mounted")])
    return Seen(folder)


def _maker(home: str) -> Callable[[], str]:
    def make() -> str:
        places.make_folders(home)
        return f"made {places.logs(home)}"

    return make


# ── leftovers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def leftovers(patient: Patient) -> Seen:
    """Files of workers that are gone, and that the store does not know: of those it knows, see workers.py."""
    folder = os.path.dirname(lock_file(patient.home, ""))
    if not os.path.isdir(folder):
        return Seen("none")
    known = {worker.id for worker in patient.opened.workers() if worker.home == patient.home}
    found = {
        os.path.splitext(name)[0] for name in os.listdir(folder) if os.path.splitext(name)[1] in OF_A_WORKER
    } - known
    gone = sorted(name for name in found if not is_held(lock_file(patient.home, name)))
    if not gone:
        return Seen("none")
    message = f"files of {count(len(gone), 'worker')} that {'is' if len(gone) == 1 else 'are'} gone: {named(gone)}"
    hint = "they do no harm; queuectl doctor --fix removes them"
    return Seen("", [note("leftovers", message, hint, lambda: _sweep(patient.home, gone))])


def _sweep(home: str, names: list[str]) -> str:
    swept = []
    for name in names:
        # Under its lock, so that no worker can begin under this name meanwhile. What it made may still run: then the ledger
        # is how it can be found.
        lock = take_lock(lock_file(home, name))
        if lock is None:
            continue
        if orphans({**read_ledger(places.runs_file(home, name)).runs}):
            lock.release()
            continue
        for path in (places.wakeup_file(home, name), places.runs_file(home, name)):
            if os.path.lexists(path):
                os.unlink(path)
        lock.remove()
        swept.append(name)
    return f"removed the files of {named(swept)}" if swept else "removed nothing: what these workers made still runs"


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _be(found: list[str]) -> str:
    return "is" if len(found) == 1 else "are"


def _short(paths: list[str], patient: Patient) -> str:
    return named([path.removeprefix(patient.home + "/") for path in paths])
