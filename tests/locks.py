"""Processes that hold the write lock of a SQLite database, as the kernel shows it; read without the code under test."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

from tests.e2e.processes import process
from tests.wait import wait_until

# In the -shm file: https://sqlite.org/walformat.html. A process that recovers the log has both, and is in no transaction yet.
WRITE_LOCK, RECOVERY_LOCK = 120, 122


def holds_write_lock(pid: int, database: Path) -> bool:
    with contextlib.suppress(
        FileNotFoundError
    ):  # it has not opened the file yet, has just closed something, or has exited
        inode = os.stat(f"{database}-shm").st_ino
        return any(_is_write_lock(line.split(), inode) for line in _locks(pid))
    return False


def _locks(pid: int) -> list[str]:
    texts = [file.read_text("ascii") for file in Path(f"/proc/{pid}/fdinfo").iterdir()]
    return [line for text in texts for line in text.splitlines() if line.startswith("lock:")]


def _is_write_lock(words: list[str], inode: int) -> bool:
    is_exclusive = words[2] == "POSIX" and words[4] == "WRITE" and words[6].endswith(f":{inode}")
    return is_exclusive and words[8] != "EOF" and int(words[7]) <= WRITE_LOCK <= int(words[8]) < RECOVERY_LOCK


def stop_in_transaction(pid: int, database: Path, *, make_busy: Callable[[], object] = lambda: None) -> None:
    """Stop the process at a moment when it holds the write lock."""

    def is_stopped_there() -> bool:
        make_busy()
        for _ in range(2000):
            if holds_write_lock(pid, database):
                os.kill(pid, signal.SIGSTOP)
                wait_until(lambda: (found := process(pid)) and found.state == "T", every=0.001, what="it to stop")
                if holds_write_lock(pid, database):
                    return True
                os.kill(pid, signal.SIGCONT)
        return False

    wait_until(is_stopped_there, timeout=60, what="the process to be stopped inside a transaction")
