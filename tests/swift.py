"""A directory in memory, if there is one, because the tests make tens of thousands of commits."""

from __future__ import annotations

import os
import tempfile
from typing import Final

ENOUGH: Final = 1 << 30  # containers often have only a few megabytes


def _has_room(place: str) -> bool:
    try:
        found = os.statvfs(place)
    except OSError:
        return False
    return os.access(place, os.W_OK) and found.f_bavail * found.f_frsize >= ENOUGH


SWIFT: Final = "/dev/shm" if _has_room("/dev/shm") else None


def swift_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="queuectl-", dir=SWIFT)
