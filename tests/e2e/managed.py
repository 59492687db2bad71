"""A real systemd of our own: the manager of a user, in namespaces of its own, so that it sees and touches nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.program import COMMAND, environment
from tests.wait import wait_until

MANAGER = "/lib/systemd/systemd"
# As the first of its kind: /run is empty but for what says that systemd has started this system.
INSIDE = """
set -e
echo $$ > "$1/outer"
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user/0
chmod 700 /run/user/0
"$2" --user --log-target=console --unit=basic.target &  # not as process 1, or it would be the system's
wait
"""


def groups() -> Path | None:
    """Return the directory in which this user can create cgroups (version 2), if any."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/mounts").read_text().splitlines():
            _, place, kind, options, *_ = line.split()
            if kind == "cgroup2" and "rw" in options.split(",") and os.access(place, os.W_OK):
                return Path(place)
    return None


def why_not() -> str | None:
    """What keeps us from having one here; None: nothing does."""
    if not os.access(MANAGER, os.X_OK) or not shutil.which("systemctl"):
        return "systemd is not installed"
    if os.geteuid() != 0 or groups() is None:
        return "namespaces and cgroups of its own need root"
    words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--cgroup"]
    script = "mount --make-rprivate / && mount -t tmpfs tmpfs /run"
    if subprocess.run([*words, "sh", "-c", script], capture_output=True).returncode:
        return "namespaces cannot be made here"
    return None


class Managed:
    """Words are said inside of its namespaces, as a user of that machine would."""

    def __init__(self, directory: Path, inner: int) -> None:
        self.home = directory / "a home of 100%"
        self.directory = directory
        self._inner = inner

    def run(self, *words: str | Path, check: int | None = 0) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", f"--target={self._inner}", "--mount", "--pid", "--cgroup", *map(str, words)]
        env = environment(self.home, self.variables)
        done = subprocess.run(inside, capture_output=True, text=True, env=env, timeout=60, stdin=subprocess.DEVNULL)
        assert check is None or done.returncode == check, f"{words} exited {done.returncode}: {done}"
        return done

    def queuectl(self, *words: str | Path, check: int | None = 0) -> subprocess.CompletedProcess[str]:
        return self.run(*COMMAND, *words, check=check)

    def json(self, *words: str | Path) -> Any:
        return json.loads(self.queuectl(*words, "--json").stdout)

    def systemctl(self, *words: str, check: int | None = 0) -> str:
        return self.run("systemctl", "--user", *words, check=check).stdout.strip()

    @property
    def main(self) -> int:
        """The process that the manager holds for the worker, by its number inside; 0 if there is none."""
        return int(self.systemctl("show", "--property=MainPID", "--value", "queuectl.service"))

    @property
    def variables(self) -> dict[str, str | None]:
        return {
            "HOME": str(self.directory),
            "XDG_RUNTIME_DIR": "/run/user/0",
            "XDG_CONFIG_HOME": None,
            "DBUS_SESSION_BUS_ADDRESS": None,
            "NOTIFY_SOCKET": None,
        }


@contextmanager
def managed(directory: Path) -> Iterator[Managed]:
    place = groups()
    assert place is not None
    group = place / f"queuectl-test-{os.getpid()}"
    group.mkdir()
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--cgroup"]
    first = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
    inside = ["sh", "-c", INSIDE, "inside", str(directory), MANAGER]
    scene = Managed(directory, 0)
    with (directory / "systemd.log").open("wb") as log:
        outer = subprocess.Popen(
            ["sh", "-c", first, str(group), *words, *inside],
            env=environment(scene.home, scene.variables),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        inner = int(wait_until(lambda: children.read_text().split(), what="the namespaces")[0])
        scene = Managed(directory, inner)
        wait_until((directory / "outer").exists, what="the namespaces to be made")
        wait_until(
            lambda: scene.systemctl("is-system-running", check=None) == "running",
            what=f"systemd: {(directory / 'systemd.log').read_text('utf-8', 'replace')}",
        )
        yield scene
    finally:
        outer.send_signal(signal.SIGKILL)  # and all that is in its namespace with it
        outer.wait()
        with contextlib.suppress(AssertionError):
            wait_until(lambda: _removed(group), what="the cgroups to be empty")


def _removed(group: Path) -> bool:
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return not group.exists()
