"""The processes of a run: find everything that belongs to it, and signal it without ever reaching another process.

A process belongs to a run by the session or group of its first process, by the token in its environment, or by its control group.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from queuectl.process import cgroups
from queuectl.process.model import Identity, ProcessInfo
from queuectl.process.system import system

SUPERVISOR_PROGRAM: Final = "run_supervisor.py"


class HasIdentity(Protocol):
    @property
    def pid(self) -> int: ...
    @property
    def started(self) -> int: ...


def find(pid: int) -> ProcessInfo | None:
    """The process with this PID, None if there is none. Raises OSError if no process can be examined."""
    return system.find(pid)


def is_alive(pid: int) -> bool:
    """Whether a process with this PID exists that is not a zombie."""
    found = system.find(pid)
    return found is not None and not found.is_zombie


def is_running(process: HasIdentity) -> bool:
    """Whether this very process is alive: its PID may belong to another one by now."""
    found = system.find(process.pid)
    return found is not None and found.started == process.started and not found.is_zombie


def started(pid: int) -> int | None:
    """Its start time; None if there is no such process, or it cannot be examined."""
    try:
        found = system.find(pid)
    except OSError:
        return None
    return None if found is None else found.started


def identity_of(pid: int) -> Identity:
    return Identity(pid, started(pid) or 0, system.boot_id())


def members(runs: Mapping[str, HasIdentity | None]) -> dict[str, list[ProcessInfo]]:
    """By token, the living processes of these runs.

    The token in the environment proves that a process belongs to a run. Without it, the group and session of the first process do, as long
    as that is the process that was recorded, zombie or not: after it is reaped the number may belong to another one.

    One pass over the process table for all of them: a worker may terminate a thousand runs at once.
    """
    leaders = _living_leaders(runs)
    tokens = {pid: token for token, pid in leaders.items()}
    found: dict[str, list[ProcessInfo]] = {token: [] for token in runs}
    for process in system.processes():
        its = {tokens.get(process.session), tokens.get(process.group), *system.tokens(process.pid)}
        for token in found.keys() & its:
            found[token].append(process)
    for token, some in found.items():
        leader = [leaders[token]] if token in leaders else []
        some.extend(_in_same_cgroup(leader, some))
    return found


def supervisor_processes(journal: str, *, since: int) -> list[ProcessInfo]:
    """The supervisors that write this journal, and their children, also of a dead one, that have not become their programs yet: those do not
    carry a token, and still have the command line of their parent. `since`: when the supervisor was started. An older one belongs to an
    earlier worker of the same name."""
    return [
        process
        for process in system.processes()
        if process.started >= since and is_supervisor(system.command_line(process.pid), journal)
    ]


def is_supervisor(command_line: str, journal: str) -> bool:
    return SUPERVISOR_PROGRAM in command_line and command_line.endswith(f" {journal}")


def orphans(runs: Mapping[str, HasIdentity | None]) -> list[ProcessInfo]:
    """The living processes of all these runs."""
    return [process for some in members(runs).values() for process in some]


def kill_groups(runs: Mapping[str, HasIdentity | None]) -> None:
    """SIGKILL to the whole process groups of first processes that still exist, in one step each: a process that forks faster than the
    process table can be read cannot escape it."""
    for pid in _living_leaders(runs).values():
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all have ended, or have become root
            os.killpg(pid, signal.SIGKILL)
        cgroups.kill_group_of(pid)


def send(number: int, to: Iterable[ProcessInfo]) -> None:
    for process in to:
        system.send_signal(number, process)


def _in_same_cgroup(leaders: Iterable[int], known: Sequence[ProcessInfo]) -> list[ProcessInfo]:
    """The other processes in their control groups: they belong to the run, whatever their session and environment are."""
    groups = {cgroups.group_of(pid) for pid in (*leaders, *(process.pid for process in known))} - {None}
    pids = {pid for group in groups if group is not None for pid in cgroups.members(group)}
    others = map(system.find, pids - {process.pid for process in known})
    return [other for other in others if other is not None and not other.is_zombie]


def _living_leaders(runs: Mapping[str, HasIdentity | None]) -> dict[str, int]:
    """By token, the first processes that still are those that were recorded, zombies included."""
    return {
        token: run.pid
        for token, run in runs.items()
        if run and run.pid and (leader := system.find(run.pid)) and leader.started == run.started
    }
