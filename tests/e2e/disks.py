"""Disks that are too small, and that may only be read. For them one has to be root, and to be allowed to mount."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import require


class SmallDisk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self) -> None:
        with self._filler.open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue

    def make_room(self) -> None:
        self._filler.unlink()


def mounted(path: Path, size: str) -> Iterator[SmallDisk]:
    path.mkdir(parents=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "test", path], capture_output=True)
    require("a small tmpfs", done.returncode == 0, done.stderr.decode())
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Whatever is opened there from now on may only be read, as on a disk that was mounted so after an error. Who has a file
    open already still writes it: a mode would not keep root from anything."""
    done = subprocess.run(["mount", "--bind", path, path], capture_output=True)
    require("bind mounts", done.returncode == 0, done.stderr.decode())
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)
        yield
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)
