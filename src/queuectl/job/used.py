"""What a run has used, in the words of people."""

from __future__ import annotations

from typing import Final, NamedTuple

from queuectl.job.ages import took
from queuectl.job.resources import Usage
from queuectl.job.size import short_size


class Used(NamedTuple):
    """Each empty where nobody knows it; of disks also where nothing was moved."""

    cpu_time: str = ""
    memory: str = ""  # at its peak
    read: str = ""
    written: str = ""
    moved: str = ""  # both in one


UNKNOWN: Final = Used()


def used(usage: Usage | None) -> Used:
    if usage is None:
        return UNKNOWN
    read, written = usage.read_bytes, usage.written_bytes
    cpu_time, memory = took(usage.cpu_ms), short_size(usage.memory_bytes)
    return Used(cpu_time, memory, _moved(read), _moved(written), _moved(read + written))


def used_words(usage: Usage | None) -> str:
    """`cpu time 1.25s, memory 12MiB, read 4.0KiB, written 1.0MiB`; nothing where nobody knows."""
    words = used(usage)
    told = {"cpu time": words.cpu_time, "memory": words.memory, "read": words.read, "written": words.written}
    return ", ".join(f"{name} {text}" for name, text in told.items() if text)


def _moved(size: int) -> str:
    return short_size(size) if size else ""
