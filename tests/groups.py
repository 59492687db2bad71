"""Control groups as a test sees them: read independently of the code under test."""

from __future__ import annotations

import os
from pathlib import Path

from queuectl.process.cgroups import CONTROLLERS, directory_of
from tests.needs import require

# It leaves its session, its environment and its parents behind: nothing shows any more where it comes from.
ESCAPE = "setsid -f env -i sh -c"


def require_groups() -> Path:
    """Where they are to be seen."""
    place = directory_of()
    require("control groups", place and os.access(place, os.W_OK), "cgroup v2 has to be there, and ours to write in")
    assert place is not None
    return Path(place)


def has_controllers() -> bool:
    """Whether the kernel limits in groups of ours what it can limit in groups."""
    place = directory_of()
    if place is None or not os.access(place, os.W_OK):
        return False
    return set(CONTROLLERS).issubset((Path(place) / "cgroup.subtree_control").read_text().split())


def groups_of(supervisor: int) -> list[Path]:
    """Those that this supervisor has made, and that are still there."""
    place = require_groups()
    # os.walk() passes over groups that other supervisors remove meanwhile.
    names = [Path(folder, name) for folder, names, _ in os.walk(place) for name in names]
    return [path for path in names if path.match("queuectl-run-*") and path.name.split("-")[3] == str(supervisor)]


def pids(group: Path) -> list[int]:
    return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]


def group_of(pid: int) -> str:
    (line,) = [line for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines() if line.startswith("0::")]
    return os.path.basename(line.removeprefix("0::"))
