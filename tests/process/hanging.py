"""A file system in user space that can be made to hang."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.needs import require
from tests.wait import wait_until


class Mount:
    def __init__(self, path: Path, server: subprocess.Popen[bytes]) -> None:
        self.path = path
        self._server = server

    def hang(self) -> None:
        """From now on every access blocks."""
        self._server.send_signal(signal.SIGSTOP)

    def answer(self) -> None:
        self._server.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[Mount]:
    """A mirror of `folder/source` at `folder/mount`."""
    programs = [shutil.which(name) for name in ("bindfs", "fusermount3")]
    require("bindfs and fuse3", all(programs), "a file system whose server can be stopped")
    require("FUSE", os.access("/dev/fuse", os.R_OK | os.W_OK), "/dev/fuse cannot be used here")
    source, target = folder / "source", folder / "mount"
    source.mkdir()
    target.mkdir()
    # Without caches: every access asks the server.
    options = "attr_timeout=0,entry_timeout=0,negative_timeout=0,direct_io"
    server = subprocess.Popen(["bindfs", "-f", "-o", options, str(source), str(target)], stderr=subprocess.PIPE)
    try:
        wait_until(lambda: os.path.ismount(target) or server.poll() is not None, what="the mount")
        require("FUSE mounts", server.poll() is None, "bindfs cannot mount here")
        yield Mount(target, server)
    finally:
        server.send_signal(signal.SIGCONT)
        subprocess.run(["fusermount3", "-u", "-z", str(target)], capture_output=True, check=False)
        server.kill()
        server.communicate()
