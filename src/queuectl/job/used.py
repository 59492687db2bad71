"""What a run has used, in the words of people."""

from __future__ import annotations

from typing import Final, NamedTuple

from queuectl.job.ages import took
from queuectl.job.resources import Usage
from queuectl.job.size import short_size


class Used(NamedTuple):
    """Each empty where nobody knows it; `moved` also where that is nothing."""

    cpu_time: str = ""
    memory: str = ""  # at its peak
    moved: str = ""  # from and to disks


UNKNOWN: Final = Used()


def used(usage: Usage | None) -> Used:
    if usage is None:
        return UNKNOWN
    moved = usage.read_bytes + usage.written_bytes
    return Used(took(usage.cpu_ms), short_size(usage.memory_bytes), short_size(moved) if moved else "")
