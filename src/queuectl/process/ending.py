"""Ending processes: finding everything that belongs to a run, and signalling it without ever hitting a stranger."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Mapping, Sequence

from queuectl.process.cgroups import group_of, kill, members
from queuectl.process.ledger import Footprint
from queuectl.process.table import Entry, entries, entry, marks


def families(leaders: Mapping[str, int]) -> dict[str, list[Entry]]:
    """By token, the living processes of runs whose leaders are children of ours that we have not reaped: dead or alive,
    a leader keeps its pid from being given out again, so its group and its session are certainly the run's.

    One look at the table for all of them: a worker may have a thousand runs to end.
    """
    tokens = {pid: token for token, pid in leaders.items()}
    found: dict[str, list[Entry]] = {token: [] for token in leaders}
    for process in entries():
        its = {tokens.get(process.session), tokens.get(process.group), *marks(process.pid)}
        for token in found.keys() & its:
            found[token].append(process)
    return {token: [*some, *_companions([leaders[token]], some)] for token, some in found.items()}


def orphans(runs: Mapping[str, Footprint | None]) -> list[Entry]:
    """The living processes of runs whose worker is gone, by token.

    The mark in the environment proves it. Without the mark, the group and session of the leader do, as long as the
    leader itself still is the process that was recorded: after its end the number may belong to somebody else.
    """
    leaders = _leaders(runs)
    found = [
        p for p in entries() if p.session in leaders or p.group in leaders or not runs.keys().isdisjoint(marks(p.pid))
    ]
    return [*found, *_companions(leaders, found)]


def kill_groups(runs: Mapping[str, Footprint | None]) -> None:
    """KILL to the whole groups of those leaders that are still there, in one step each: who forks faster than we look
    cannot escape it."""
    for pid in _leaders(runs):
        with contextlib.suppress(ProcessLookupError, PermissionError):  # as below
            os.killpg(pid, signal.SIGKILL)
        kill_control_group(pid)


def kill_control_group(leader: int) -> None:
    """The same for its control group, if it has one, in which everything is that comes from it."""
    if (group := group_of(leader)) is not None:
        kill(group)


def _companions(leaders: Iterable[int], known: Sequence[Entry]) -> list[Entry]:
    """Who else lives in their control groups: whatever it has made of its session and its environment, it is of the same run."""
    groups = {group_of(pid) for pid in (*leaders, *(process.pid for process in known))} - {None}
    pids = {pid for group in groups if group is not None for pid in members(group)}
    others = map(entry, pids - {process.pid for process in known})
    return [other for other in others if other is not None and not other.is_over]


def _leaders(runs: Mapping[str, Footprint | None]) -> set[int]:
    """The leaders that still are the processes that were recorded."""
    return {
        footprint.pid
        for footprint in runs.values()
        if footprint and (leader := entry(footprint.pid)) and leader.started == footprint.started
    }


def send(number: int, to: Iterable[Entry]) -> None:
    for process in to:
        _send(number, process)


def _send(number: int, process: Entry) -> None:
    # The descriptor pins the process, so that it cannot be another one between the look and the signal.
    try:
        pinned = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        now = entry(process.pid)
        if now is not None and now.started == process.started:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # ended meanwhile, or has become root
                signal.pidfd_send_signal(pinned, number)
    finally:
        os.close(pinned)
