"""The disks below the home and the store: is there room, and are they fit for it?"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from queuectl.maintenance.doctor.finding import Finding, Patient, Seen, note, problem

SCARCE: Final = 1 << 30
TOO_LITTLE: Final = 100 << 20
MOUNTS: Final = "/proc/self/mounts"

# SQLite's write-ahead log needs memory that all who use it share, and locks that hold: nobody beyond the machine gives them.
NETWORK: Final = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fuse.ceph",
        "fuse.curlftpfs", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "glusterfs",
        "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "orangefs", "smb3", "smbfs",
    }
)  # fmt: skip


def space(patient: Patient) -> Seen:
    free = {place: _free(place) for place in _places(patient)}
    if not free:
        return Seen("nothing is there yet")
    findings = [finding for place, (room, files) in free.items() for finding in lacking(place, room, files)]
    return Seen(f"{rough(min(room for room, _ in free.values()))} free", findings)


def lacking(place: str, room: int, files: int) -> Iterator[Finding]:
    """What is wrong with so many bytes, and so many files that can still be made."""
    # A command that removes jobs has to write first.
    hint = "remove other files, or logs that nobody needs; with some room queuectl prune removes jobs that ended"
    if not files:
        yield problem("disk-full", f"no file more can be made at {place}: it is out of inodes", hint)
    if room < TOO_LITTLE:
        message = f"{rough(room)} left at {place}: jobs cannot be enqueued and recorded without room"
        yield problem("disk-full", message, hint)
    elif room < SCARCE:
        yield note("disk-scarce", f"{rough(room)} left at {place}", hint)


def file_system(patient: Patient) -> Seen:
    places = _places(patient)
    if not places:
        return Seen("nothing is there yet")
    with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
        mounts = file.read()
    kinds = {place: kind_of(place, mounts) for place in places}
    findings = [unfit(place, kind, patient) for place, kind in kinds.items() if kind in NETWORK]
    return Seen(", ".join(dict.fromkeys(kinds.values())), findings)


def unfit(place: str, kind: str, patient: Patient) -> Finding:
    """A home keeps the locks of its workers, whatever keeps the jobs."""
    message = f"{place} is on a network file system ({kind})"
    if patient.store_file is None:
        return note("network-disk", f"{message}, where locks may not hold", "have the home on a disk of this machine")
    hint = "move it to a disk of this machine, or use PostgreSQL: queuectl copy"
    return problem("network-disk", f"{message}: SQLite loses data there sooner or later", hint)


def kind_of(place: str, mounts: str) -> str:
    """The file system of a place, by a table of mounts: the longest mount point that it is in, the latest of those."""
    best, kind = "", "unknown"
    for line in mounts.splitlines():
        _, point, found, *_ = line.split(" ")
        # Spaces, tabs, newlines and backslashes in it are written as \040 and the like.
        point = (
            point.encode("utf-8", "surrogateescape")
            .decode("unicode_escape")
            .encode("latin-1")
            .decode("utf-8", "replace")
        )
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, found
    return kind


def _places(patient: Patient) -> list[str]:
    """The directories that matter and are there, one for each disk."""
    wanted = [patient.home, *([os.path.dirname(patient.store_file)] if patient.store_file else [])]
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
