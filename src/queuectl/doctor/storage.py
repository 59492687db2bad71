"""Checks of the data directory (permissions, logs, leftovers, disks) and of the database (damage, schema, clock)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from queuectl import paths
from queuectl.doctor.finding import CheckResult, Finding, Target, note, problem, reported
from queuectl.errors import StoreGone, StoreReadOnly
from queuectl.filelock import is_held, take_lock
from queuectl.logs.acl import names_users
from queuectl.maintenance.lock_breaker import hint_for, lock_holder
from queuectl.process import tree
from queuectl.process.journal import read_journal
from queuectl.process.linux import unescape
from queuectl.store.open import live_worker
from queuectl.text import plural, shortened
from queuectl.units import format_duration, to_ms

OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
MAX_FILES: Final = 100_000  # of one directory: a home may hold millions of logs

POINTER: Final = "queuectl.toml"
FOLDERS: Final = ("logs", "workers", "backups", "secrets")
OF_A_WORKER: Final = (".lock", ".bell", ".runs")


def home(target: Target) -> CheckResult:
    try:
        os.lstat(target.home)
    except PermissionError:
        return [_unreachable(target.home)]
    except OSError:
        return f"there is none at {target.home} yet: the first command that writes makes it"
    if not os.path.isdir(target.home):
        message = f"{target.home} is not a directory"
        return [problem("home-unusable", message, "choose another directory with --home or QUEUECTL_HOME")]
    found = os.stat(target.home)
    owner, mode = paths.user_name(found.st_uid), stat.S_IMODE(found.st_mode)
    findings: list[Finding] = []
    if found.st_uid != target.user:
        message = f"{target.home} belongs to {owner}, and you are {paths.user_name(target.user)}"
        hint = f"use it as {owner}; commands and workers of other users reject it unless you add --trust-home"
        findings.append(note("home-of-another", message, hint))
    if not os.access(target.home, os.R_OK | os.W_OK | os.X_OK):
        message = f"{target.home} cannot be read and written: it belongs to {owner}, mode {mode:04o}"
        hint = f"use it as {owner}, or choose another directory with --home or QUEUECTL_HOME"
        findings.append(problem("home-unusable", message, hint))
    return findings or target.home


def _unreachable(home: str) -> Finding:
    """A directory above it may not be entered: name that one."""
    above = os.path.dirname(home)
    while not os.access(above, os.X_OK) and not os.access(os.path.dirname(above), os.X_OK):
        above = os.path.dirname(above)
    found = os.stat(above)
    owner, mode = paths.user_name(found.st_uid), stat.S_IMODE(found.st_mode)
    message = f"{home} cannot be examined: {above} belongs to {owner}, mode {mode:04o}"
    return problem(
        "home-unusable", message, f"use it as {owner}, or choose another directory with --home or QUEUECTL_HOME"
    )


# ── permissions ─────────────────────────────────────────────────────────────────────────────────────────────────────


def permissions(target: Target) -> CheckResult:
    if not os.path.isdir(target.home):
        return "there is nothing to check"
    findings = [*_of_home(target.home)]
    ours = list(_ours(target))
    # Where jobs run as other users, those are shortened, one by one: see policy/accounts.py.
    if open_ones := [path for path, found in ours if found.st_mode & OTHERS and not names_users(path)]:
        message = (
            f"{plural(len(open_ones), 'file')} of ours {_be(open_ones)} open to others: {_short(open_ones, target)}"
        )
        hint = "queuectl doctor --fix, or: chmod go= FILE"
        findings.append(problem("open-to-others", message, hint, lambda: _close(open_ones)))
    owner = os.stat(target.home).st_uid
    if foreign := [path for path, found in ours if found.st_uid != owner]:
        message = (
            f"{plural(len(foreign), 'file')} in the data directory {_be(foreign)} not of {paths.user_name(owner)}, who owns it:"
            f" {_short(foreign, target)}"
        )
        hint = (
            f"give them back: chown {paths.user_name(owner)} FILE; they come from a queuectl that another user has run"
        )
        findings.append(problem("owner-differs", message, hint))
    return findings or "readable only by their owner"


def _of_home(home: str) -> Iterator[Finding]:
    """It may belong to another user or have other uses: reported, never changed."""
    mode = stat.S_IMODE(os.stat(home).st_mode)
    hint = f"chmod 700 {home}; a directory is not changed by --fix: it may be meant for more than this"
    if mode & paths.OTHERS_WRITE:
        yield problem(
            "home-writable", f"{home} can be written by others ({mode:o}): they could replace the database", hint
        )
    elif mode & OTHERS and not names_users(home):
        yield note("home-readable", f"{home} can be entered by others ({mode:o}): they see the names of jobs", hint)


def _ours(target: Target) -> Iterator[tuple[str, os.stat_result]]:
    """What we created, in the data directory and beside the database. Never through a link, which leads to other files."""
    file = target.store_file
    beside = [f"{file}{ending}" for ending in ("", "-wal", "-shm")] if file else []
    paths: Iterable[str] = (*beside, os.path.join(target.home, POINTER))
    for path in paths:
        yield from _seen(path)
    for name in FOLDERS:
        folder = os.path.join(target.home, name)
        for path, found in _seen(folder):
            yield path, found
            if stat.S_ISDIR(found.st_mode):
                with os.scandir(folder) as entries:
                    for entry in islice(entries, MAX_FILES):
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
    return f"closed {plural(len(paths), 'file')} to others"


# ── logs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def logs(target: Target) -> CheckResult:
    folder = paths.logs(target.home)
    if not os.path.isdir(target.home):
        return "there are none yet"
    if not os.path.lexists(folder):
        message = f"{folder} is missing, and with it what jobs have printed"
        hint = "the next job that runs creates it, and so does queuectl doctor --fix"
        return [note("logs-missing", message, hint, lambda: _make_folders(target.home))]
    if not os.path.isdir(folder):
        return [problem("logs-unusable", f"{folder} is not a directory", "move it away")]
    if not os.access(folder, os.W_OK | os.X_OK) or os.statvfs(folder).f_flag & os.ST_RDONLY:
        message = f"{folder} cannot be written: no job can run"
        return [problem("logs-unusable", message, "check its owner, its mode and how it is mounted")]
    return folder


def _make_folders(home: str) -> str:
    paths.make_folders(home)
    return f"made {paths.logs(home)}"


# ── leftovers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def leftovers(target: Target) -> CheckResult:
    """Files of dead workers that the store does not know; for those that it knows, see workers.py."""
    folder = os.path.dirname(paths.lock_file(target.home, ""))
    if not os.path.isdir(folder):
        return "none"
    known = {worker.id for worker in target.opened.workers() if worker.home == target.home}
    found = {
        os.path.splitext(name)[0] for name in os.listdir(folder) if os.path.splitext(name)[1] in OF_A_WORKER
    } - known
    gone = sorted(name for name in found if not is_held(paths.lock_file(target.home, name)))
    if not gone:
        return "none"
    message = f"files of {plural(len(gone), 'worker')} that {'is' if len(gone) == 1 else 'are'} gone: {shortened(gone)}"
    hint = "they do no harm; queuectl doctor --fix removes them"
    return [note("leftovers", message, hint, lambda: _sweep(target.home, gone))]


def _sweep(home: str, names: list[str]) -> str:
    swept = []
    for name in names:
        # Under its lock, so that no worker can start with this name meanwhile. Its runs may continue: the journal is needed to find
        # them, then.
        lock = take_lock(paths.lock_file(home, name))
        if lock is None:
            continue
        if tree.orphans(read_journal(paths.runs_file(home, name)).runs):
            lock.release()
            continue
        for path in (paths.wakeup_file(home, name), paths.runs_file(home, name)):
            if os.path.lexists(path):
                os.unlink(path)
        lock.remove()
        swept.append(name)
    return f"removed the files of {shortened(swept)}" if swept else "removed nothing: runs of these workers continue"


# ── disks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

SCARCE: Final = 1 << 30
TOO_LITTLE: Final = 100 << 20
MOUNTS: Final = "/proc/self/mounts"

# SQLite's write-ahead log needs shared memory and reliable locks, which exist on one machine only.
NETWORK: Final = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.ceph",
        "fuse.curlftpfs", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "glusterfs",
        "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb3", "smbfs",
    }
)  # fmt: skip


def space(target: Target) -> CheckResult:
    free = {place: _free(place) for place in _places(target)}
    if not free:
        return "nothing is there yet"
    findings = [finding for place, (room, files) in free.items() for finding in lacking(place, room, files)]
    return findings or f"{rough(min(room for room, _ in free.values()))} free"


def lacking(place: str, room: int, files: int) -> Iterator[Finding]:
    """What is wrong with this much space in bytes, and this number of files that can still be created."""
    # A command that removes jobs has to write first.
    hint = "remove other files, or logs that are not needed; with some space queuectl prune removes jobs that ended"
    if not files:
        yield problem("disk-full", f"no file more can be made at {place}: it is out of inodes", hint)
    if room < TOO_LITTLE:
        message = f"{rough(room)} left at {place}: jobs cannot be enqueued and recorded without room"
        yield problem("disk-full", message, hint)
    elif room < SCARCE:
        yield note("disk-scarce", f"{rough(room)} left at {place}", hint)


def file_system(target: Target) -> CheckResult:
    places = _places(target)
    if not places:
        return "nothing is there yet"
    if not os.path.exists(MOUNTS):
        return "not known on this system"
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
        mounts = file.read()
    kinds = {place: kind_of(place, mounts) for place in places}
    findings = [unfit(place, kind, target) for place, kind in kinds.items() if kind in NETWORK]
    return findings or ", ".join(dict.fromkeys(kinds.values()))


def unfit(place: str, kind: str, target: Target) -> Finding:
    """A home keeps the locks of its workers, whatever keeps the jobs."""
    message = f"{place} is on a network file system ({kind})"
    if target.store_file is None:
        return note(
            "network-disk", f"{message}, where locks may not hold", "put the data directory on a disk of this host"
        )
    hint = "move it to a disk of this machine, or use PostgreSQL: queuectl copy"
    return problem("network-disk", f"{message}: SQLite loses data there sooner or later", hint)


def kind_of(place: str, mounts: str) -> str:
    """The file system of a place, by a table of mounts: the longest mount point that it is in, the latest of those."""
    best, kind = "", "unknown"
    for line in mounts.splitlines():
        _, point, found, *_ = line.split(" ")
        point = unescape(point)
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, found
    return kind


def _places(target: Target) -> list[str]:
    """The directories that matter and are there, one for each disk."""
    wanted = [target.home, *([os.path.dirname(target.store_file)] if target.store_file else [])]
    return _one_a_disk(os.path.realpath(place) for place in wanted if os.path.isdir(place))


def _one_a_disk(places: Iterable[str]) -> list[str]:
    by_disk: dict[int, str] = {}
    for place in places:
        by_disk.setdefault(os.stat(place).st_dev, place)
    return list(by_disk.values())


def _free(place: str) -> tuple[int, int]:
    found = os.statvfs(place)
    # A file system without a fixed number of files says 0 of 0.
    return found.f_bavail * found.f_frsize, found.f_favail if found.f_files else 1


def rough(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GiB" if size >= SCARCE else f"{size >> 20} MiB"


# ── the database ───────────────────────────────────────────────────────────────────────────────────────────────────

TOLERANCE_MS: Final = 2_000
MAX_PROBLEMS: Final = 10


def store(target: Target) -> CheckResult:
    if (trouble := target.trouble) is not None:
        return [reported(trouble)]
    if target.store is None:
        if target.store_file and (name := live_worker(target.home)):
            return [reported(StoreGone(target.store_file, worker=name))]
        return f"there is none at {target.address} yet: the first job makes it"
    health = target.health
    findings = [
        problem("store-damaged", f"{target.address}: {words}", "stop the workers, keep a copy of it, restore a backup")
        for words in health.problems[:MAX_PROBLEMS]
    ]
    findings += [reported(found) for found in health.hindrances]
    findings += [note(*caution) for caution in health.cautions]
    if target.store_file is not None and (holder := lock_holder(target.store_file)) and holder.is_stopped:
        message = f"{target.address} is locked by process {holder.process.pid} ({holder.program}), which is stopped"
        findings.append(problem("store-locked", message, hint_for(holder)))
    if target.store_file is not None and not os.access(target.store_file, os.W_OK):
        findings.append(reported(StoreReadOnly(target.store_file)))
    return findings or f"sound, {health.engine}, {plural(target.opened.count(), 'job')}, {target.address}"


def schema(target: Target) -> CheckResult:
    health = target.health
    if health.schema == health.known:
        return f"version {health.schema}, the one of this queuectl"
    message = f"the database has schema version {health.schema}, this queuectl knows {health.known}"
    return [problem("schema-version", message, "use one version of queuectl on all machines")]


def clock(target: Target) -> CheckResult:
    return _against_server(target) if target.opened.is_shared else _against_times(target)


def _against_server(target: Target) -> CheckResult:
    skew_ms = target.clock.now_ms() - target.opened.now_ms()
    if abs(skew_ms) <= TOLERANCE_MS:
        return "agrees with the database"
    way = "ahead of" if skew_ms > 0 else "behind"
    message = f"the clock of this machine is {format_duration(abs(skew_ms))} {way} the database's, by which all jobs go"
    return [note("clock-differs", message, "set it by NTP; jobs run on time all the same")]


def _against_times(target: Target) -> CheckResult:
    """A file has no clock, but the times in it cannot be later than now."""
    now_ms = target.clock.now_ms()
    newest = [to_ms(job.updated_at) for job in islice(target.opened.jobs(limit=1), 1)]
    newest += [to_ms(worker.heartbeat_at) for worker in target.opened.workers()]
    ahead_ms = max(newest, default=now_ms) - now_ms
    if ahead_ms <= TOLERANCE_MS:
        return "not behind the database"
    message = f"the database holds times that are {format_duration(ahead_ms)} ahead of the clock: it was set back"
    hint = "set the clock right; until then retries and delayed jobs wait that much longer"
    return [problem("clock-went-back", message, hint)]


# ── text ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _be(found: list[str]) -> str:
    return "is" if len(found) == 1 else "are"


def _short(paths: list[str], target: Target) -> str:
    return shortened([path.removeprefix(target.home + "/") for path in paths])
