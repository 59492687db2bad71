"""What a worker has running, in a file of its own, so that whoever finds the worker dead can find its processes.

One record of fixed length a slot, overwritten in place. Not in the store, and not synced: it is written at every start of
a process and only has to outlive the worker, not the machine.
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

RECORD: Final = 96


class Footprint(NamedTuple):
    """A process that was made for a run, and where its output begins in the log."""

    pid: int
    started: int
    log_from: int


class Ledger:
    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)

    def write(self, slot: int, token: str, footprint: Footprint) -> None:
        record = f"{token} {footprint.pid} {footprint.started} {footprint.log_from}"
        os.pwrite(self._fd, record.ljust(RECORD - 1).encode() + b"\n", slot * RECORD)

    def close(self) -> None:
        os.close(self._fd)


def read_ledger(path: str) -> dict[str, Footprint]:
    """What the ledger says, by token. Records of runs that are over are still there: ask by token only."""
    try:
        with open(path, "rb") as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return {}
    found = {}
    for line in lines:
        # Slots that were never used are holes; a record that was cut by the end of its writer has too few words.
        words = line.strip(b"\0 ").split()
        if len(words) == 4:
            found[words[0].decode()] = Footprint(int(words[1]), int(words[2]), int(words[3]))
    return found
