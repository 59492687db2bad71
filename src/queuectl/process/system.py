"""Chooses how processes are inspected: process/linux.py where there is /proc, else process/portable.py.

`QUEUECTL_PORTABLE=1` uses nothing that only Linux has, as our evidence for other systems.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from queuectl.process.model import Child, ProcessInfo

PORTABLE_VARIABLE: Final = "QUEUECTL_PORTABLE"
IS_PORTABLE: Final = bool(os.environ.get(PORTABLE_VARIABLE)) or not os.path.isdir("/proc/self/fd")  # noqa: TID251 - chosen once, when loaded


class System(Protocol):
    def find(self, pid: int) -> ProcessInfo | None: ...
    def processes(self) -> Iterator[ProcessInfo]: ...
    def tokens(self, pid: int) -> list[str]: ...
    def environ(self, pid: int) -> dict[str, str]: ...
    def command_line(self, pid: int) -> str: ...
    def has_open(self, pid: int, path: str) -> bool: ...
    def boot_id(self) -> str: ...
    def now_ticks(self) -> int: ...
    def start_time(self, pid: int, *, not_before: int) -> int: ...
    def send_signal(self, number: int, process: ProcessInfo) -> None: ...
    def open_pidfd(self, child: Child) -> int | None: ...
    def remote_mount(self, paths: Callable[[], Iterable[bytes]]) -> str | None: ...


def _choose() -> System:
    if IS_PORTABLE:
        from queuectl.process import portable

        return portable
    from queuectl.process import linux

    return linux


system: System = _choose()
