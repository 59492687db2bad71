"""What only Linux has: process start times and environments from /proc, pidfd, mount types, session keyrings.

process/tree.py uses this module, or process/portable.py with the same functions if there is no /proc or `QUEUECTL_PORTABLE` is set.

If no descriptor is left to look with, the OSError is raised: a process that cannot be seen would be taken for dead, and its job would
run a second time.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import select
import signal
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from queuectl.clock import boot_ticks
from queuectl.process.model import TOKEN_VARIABLE, Child, ProcessInfo, raise_if_blind

PROC: Final = "/proc"
_TOKEN: Final = f"{TOKEN_VARIABLE}=".encode()
_MAX_STAT_BYTES: Final = 4096  # about 50 numbers and a name of 16 bytes
# File systems whose server may stop answering: opening a file there can block without end.
_REMOTE_TYPES: Final = frozenset(
    {"9p", "afs", "autofs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3"}
)  # fmt: skip
_MAX_LINKS: Final = 40  # as the kernel follows


def find(pid: int) -> ProcessInfo | None:
    """The process with this PID, None if there is none."""
    # Not open(), whose buffers cost more than reading: this is called for every process on the host.
    try:
        fd = os.open(f"{PROC}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as exc:
        raise_if_blind(exc)
        return None
    try:
        stat = os.read(fd, _MAX_STAT_BYTES)
    except OSError:  # it ended after the open
        return None
    finally:
        os.close(fd)
    # The name, in parentheses, may contain anything, parentheses and spaces included.
    fields = stat[stat.rindex(b")") + 2 :].split()
    state, threads = fields[0].decode(), int(fields[17])
    # With a second thread only the first one has ended: the process still works.
    is_zombie = state in "ZX" and threads < 2
    return ProcessInfo(pid, int(fields[19]), int(fields[2]), int(fields[3]), state, is_zombie, int(fields[1]))


def processes() -> Iterator[ProcessInfo]:
    """Every process that is not a zombie."""
    try:
        names = os.listdir(PROC)
    except OSError as exc:
        raise_if_blind(exc)
        return
    for name in names:
        if name.isdigit() and (found := find(int(name))) and not found.is_zombie:
            yield found


def tokens(pid: int) -> list[str]:
    """The tokens of the runs that this process belongs to by its environment: at most one, unless a job tampers with it."""
    environment = _environ(pid)
    variables = environment.split(b"\0") if _TOKEN in environment else ()
    return [found.removeprefix(_TOKEN).decode("ascii", "replace") for found in variables if found.startswith(_TOKEN)]


def environ(pid: int) -> dict[str, str]:
    """The environment that the process was started with; empty if it has ended or belongs to another user."""
    pairs = (found.decode("utf-8", "surrogateescape").partition("=") for found in _environ(pid).split(b"\0"))
    return {name: value for name, _, value in pairs if name}


def _environ(pid: int) -> bytes:
    try:
        with open(f"{PROC}/{pid}/environ", "rb") as file:
            return file.read()
    except OSError as exc:
        raise_if_blind(exc)
        return b""


def command_line(pid: int) -> str:
    """Its arguments, separated by spaces; empty if there is no such process."""
    try:
        with open(f"{PROC}/{pid}/cmdline", "rb") as file:
            return file.read(_MAX_STAT_BYTES).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def has_open(pid: int, path: str) -> bool:
    """Whether the process has this file open. False if it cannot be examined: it has ended, or belongs to another user."""
    try:
        wanted = os.stat(path)
        with os.scandir(f"{PROC}/{pid}/fd") as descriptors:
            return any(_is_file(descriptor.path, wanted) for descriptor in descriptors)
    except OSError:
        return False


def _is_file(descriptor: str, wanted: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(descriptor), wanted)
    except OSError:  # closed in the meantime
        return False


@functools.cache
def boot_id() -> str:
    """Identifies this boot of this host and this PID namespace: PIDs and start times of another one mean nothing here. Empty if unknown."""
    try:
        with open(f"{PROC}/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()}/{os.stat(f'{PROC}/self/ns/pid').st_ino}"
    except OSError:
        return ""


now_ticks = boot_ticks  # the unit and origin of start times


def start_time(pid: int, *, not_before: int) -> int:
    """The start time of a child that was started after `not_before`, in clock ticks. Reading /proc costs a tenth of a start, so it is
    read only if the clock has ticked since."""
    if boot_ticks() == not_before:
        return not_before
    with contextlib.suppress(OSError):
        if (found := find(pid)) is not None:
            return found.started
    return not_before


# ── signals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def send_signal(number: int, process: ProcessInfo) -> None:
    # The descriptor pins the process: its PID cannot pass to another one between the comparison and the signal.
    try:
        pinned = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        now = find(process.pid)
        if now is not None and now.started == process.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or has become root
                signal.pidfd_send_signal(pinned, number)
    finally:
        os.close(pinned)


def open_pidfd(child: Child) -> int | None:
    """A descriptor that becomes readable when the process ends; None if it has ended. Raises OSError."""
    try:
        pinned = os.pidfd_open(child.pid)
    except ProcessLookupError:
        return None
    try:
        found = find(child.pid)  # while the descriptor keeps the PID from being reused
    except OSError:
        os.close(pinned)
        raise
    if found is not None and found.started == child.started and not found.is_zombie:
        return pinned
    os.close(pinned)
    return None


# ── mounts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Mounts:
    """The mount points whose server may stop answering, read again when the kernel reports a change."""

    def __init__(self) -> None:
        self._remote: dict[str, bool] = {}
        self._has_remote = False
        self._change = select.poll()
        try:
            self._file: int | None = os.open(f"{PROC}/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = None
            return
        self._change.register(self._file, select.POLLPRI)
        self._read()

    def remote_mount(self, paths: Callable[[], Iterable[bytes]]) -> str | None:
        """The first such mount that one of the paths is on. Follows links without ever touching one."""
        if self._file is None:
            return None
        if self._change.poll(0):
            self._read()
        if not self._has_remote:
            return None
        return next((found for path in paths() if (found := self._mount_of(os.fsdecode(path)))), None)

    def _read(self) -> None:
        assert self._file is not None
        os.lseek(self._file, 0, os.SEEK_SET)
        text = b""
        while more := os.read(self._file, 1 << 16):
            text += more
        self._remote = {}
        for line in text.decode("utf-8", "surrogateescape").splitlines():
            before, _, after = line.partition(" - ")
            point, kind = unescape(before.split()[4]), after.split()[0]
            self._remote[point] = kind in _REMOTE_TYPES or kind.startswith("fuse")
        # With a remote root every program is remote, sh included: there is no local way to start.
        self._remote["/"] = False
        self._has_remote = any(self._remote.values())

    def _mount_of(self, path: str) -> str | None:
        left, done, links = path.split("/")[::-1], "/", 0
        while left:
            name = left.pop()
            if name in ("", "."):
                continue
            if name == "..":
                done = os.path.dirname(done)
                continue
            here = os.path.join(done, name)
            if self._remote.get(here, False):
                return here
            try:
                target = os.readlink(here)
            except OSError:  # not a link, or missing
                done = here
                continue
            links += 1
            if links > _MAX_LINKS:
                return None
            left += target.split("/")[::-1]
            done = "/" if target.startswith("/") else done
        return None


_mounts = functools.cache(_Mounts)


def remote_mount(paths: Callable[[], Iterable[bytes]]) -> str | None:
    """The network or FUSE file system that one of these files is on, where opening it may block without end; None if there is none."""
    return _mounts().remote_mount(paths)


def unescape(path: str) -> str:
    """A path of /proc/self/mountinfo."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path


# ── other users ─────────────────────────────────────────────────────────────────────────────────────────────────────

# keyctl(2) and capset(2), which Python does not offer, by architecture.
_KEYCTL: Final = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
_CAPSET: Final = {"x86_64": 126, "aarch64": 91, "riscv64": 91, "ppc64le": 184, "s390x": 185}
_GET_KEYRING_ID, _JOIN_SESSION_KEYRING, _SESSION_KEYRING = 0, 1, -3
# Not in this kernel, or not allowed in this container.
_NO_KEYRINGS: Final = frozenset({errno.ENOSYS, errno.EPERM, errno.EACCES})
_CAPABILITIES_VERSION: Final = 0x20080522


def new_session_keyring() -> None:
    """Replace the inherited session keyring by an empty one. Raises OSError.

    Call it before the user changes: a user may have 200 keys by default, root is not limited. Where the system offers no way, the
    keyring stays: see `keyring_problem`.
    """
    number = _system_call(_KEYCTL, _JOIN_SESSION_KEYRING, 0)
    if number and number not in _NO_KEYRINGS:
        raise OSError(number, os.strerror(number))


def keyring_problem() -> str | None:
    """Why a job cannot be given its own session keyring; None: it can, or this system has no keyrings."""
    machine = os.uname().machine
    if machine not in _KEYCTL:
        return f"keyctl is not known on {machine}"
    number = _system_call(_KEYCTL, _GET_KEYRING_ID, _SESSION_KEYRING)
    return f"keyctl: {os.strerror(number)}" if number in (errno.EPERM, errno.EACCES) else None


def drop_capabilities() -> None:
    """Drop all capabilities, the inheritable ones included, which the kernel keeps when root becomes another user. Raises OSError."""
    header = struct.pack("II", _CAPABILITIES_VERSION, 0)
    if number := _system_call(_CAPSET, header, bytes(24)):
        raise OSError(number, os.strerror(number))


def _system_call(numbers: dict[str, int], *arguments: int | bytes) -> int:
    """The errno of the call, 0 if it succeeded."""
    number = numbers.get(os.uname().machine)
    if number is None:
        return errno.ENOSYS
    import ctypes  # here, since only jobs of other users need it

    libc = ctypes.CDLL(None, use_errno=True)
    values = [ctypes.c_long(word) if isinstance(word, int) else ctypes.c_char_p(word) for word in (number, *arguments)]
    return ctypes.get_errno() if libc.syscall(*values) < 0 else 0
