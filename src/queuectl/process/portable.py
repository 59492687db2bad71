"""The functions of process/linux.py for systems without /proc, with psutil.

Slower, and without pidfd: between the comparison of a start time and the signal, a PID could in theory pass to another process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator

import psutil

from queuectl.clock import wall_ticks
from queuectl.process.model import TOKEN_VARIABLE, Child, ProcessInfo, raise_if_blind

_STATES = {psutil.STATUS_STOPPED: "T", psutil.STATUS_TRACING_STOP: "t", psutil.STATUS_ZOMBIE: "Z"}


def find(pid: int) -> ProcessInfo | None:
    """The process with this PID, None if there is none."""
    try:
        process = psutil.Process(pid)
        status, started, parent = process.status(), _ticks(process), process.ppid()
    except psutil.Error:
        return None
    is_zombie = status in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
    try:
        group, session = os.getpgid(pid), os.getsid(pid)
    except OSError:  # it has ended, or the system does not tell
        group = session = 0
    return ProcessInfo(pid, started, group, session, _STATES.get(status, "S"), is_zombie, parent)


def processes() -> Iterator[ProcessInfo]:
    """Every process that is not a zombie."""
    for pid in psutil.pids():
        if (found := find(pid)) is not None and not found.is_zombie:
            yield found


def tokens(pid: int) -> list[str]:
    """The tokens of the runs that this process belongs to by its environment."""
    return [value for name, value in environ(pid).items() if name == TOKEN_VARIABLE]


def environ(pid: int) -> dict[str, str]:
    """The environment that the process was started with; empty if it has ended or belongs to another user."""
    try:
        return dict(psutil.Process(pid).environ())
    except psutil.Error:
        return {}
    except OSError as exc:
        raise_if_blind(exc)
        return {}


def command_line(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return ""


def has_open(pid: int, path: str) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return any(os.path.samefile(opened.path, path) for opened in psutil.Process(pid).open_files())
    return False


def boot_id() -> str:
    return ""


now_ticks = wall_ticks  # the unit and origin of start times


def start_time(pid: int, *, not_before: int) -> int:
    found = find(pid)
    return not_before if found is None else found.started


def send_signal(number: int, process: ProcessInfo) -> None:
    now = find(process.pid)
    if now is not None and now.started == process.started:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended, or has become root
            os.kill(process.pid, number)


def open_pidfd(child: Child) -> None:  # noqa: ARG001 - callers poll instead
    return None


def remote_mount(paths: Callable[[], Iterable[bytes]]) -> str | None:  # noqa: ARG001 - mounts cannot be listed without touching them
    return None


def _ticks(process: psutil.Process) -> int:
    """In whole seconds: psutil derives the time from that of the boot, which it rounds."""
    return round(float(process.create_time())) * os.sysconf("SC_CLK_TCK")
