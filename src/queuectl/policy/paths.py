"""Resolve paths step by step, and detect where another user could redirect them."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final, NamedTuple

MAX_SYMLINKS: Final = 40  # as in the kernel
MAX_INTERPRETERS: Final = 5  # as in the kernel: an interpreter may be a script itself
MAX_SHEBANG_BYTES: Final = 256
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class ResolvedPath(NamedTuple):
    """`real`: the file itself. `names`: every name of it along the symbolic links, directories resolved, the requested name first and
    `real` last. `weak`: the first path that users other than root and `user` could replace; None if there is none."""

    real: str
    names: tuple[str, ...]
    weak: str | None


def resolve_path(path: str, *, user: int) -> ResolvedPath:
    """Follow an absolute path as the kernel does. Raises OSError if it does not exist."""
    trusted = (0, user)
    here, weak, links = "/", _weak_directory("/", trusted), 0
    left = [part for part in reversed(path.split("/")) if part and part != "."]
    names: list[str] = []
    while left:
        part = left.pop()
        if part == "..":
            here = os.path.dirname(here)
            continue
        step = os.path.join(here, part)
        found = os.lstat(step)
        # In a sticky directory like /tmp every user may create files, but only the owner can replace one.
        if weak is None and os.lstat(here).st_mode & OTHERS_WRITE and found.st_uid not in trusted:
            weak = step
        if not left:
            names.append(step)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > MAX_SYMLINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(step)
            here = "/" if target.startswith("/") else here
            left += [part for part in reversed(target.split("/")) if part and part != "."]
            continue
        if left and not stat.S_ISDIR(found.st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        here = step
        weak = weak or _weak_directory(step, trusted)
    if path.endswith(("/", "/.")) and not os.path.isdir(here):
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return ResolvedPath(here, (*names, here) if not names or names[-1] != here else tuple(names), weak)


class UntrustedFile(Exception):
    """Other users could change the file, or it is no regular file of a reasonable size."""

    def __init__(self, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint


def read_trusted_file(path: str, *, user: int, max_bytes: int) -> tuple[bytes, os.stat_result]:
    """Read a file that only root and `user` can change. Raises UntrustedFile or OSError."""
    found = resolve_path(path, user=user)
    if found.weak is not None:
        raise UntrustedFile(f"{found.weak} can be changed by others", f"chown and chmod go-w {found.weak}")
    # Only root and `user` can have replaced the file since the check.
    fd = os.open(found.real, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):  # an empty pipe would be an empty policy, which allows everything
            raise UntrustedFile("it is not a file", "replace it with a regular file")
        text = file.read(max_bytes + 1)
    if len(text) > max_bytes:
        raise UntrustedFile(f"it is larger than {max_bytes >> 10} KiB", "shorten it")
    return text, status


def find_weak_interpreter(path: str, *, user: int) -> str | None:
    """Return the path by which other users could replace the interpreter of a script; None if there is none, or no script.

    Raises OSError if the interpreter does not exist.
    """
    for _ in range(MAX_INTERPRETERS):
        interpreter = _interpreter(path)
        if interpreter is None:
            return None
        way = resolve_path(interpreter, user=user)
        if way.weak is not None:
            return way.weak
        path = way.real
    return None


def _interpreter(path: str) -> str | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # opening a pipe must not block
    except PermissionError:  # executable but unreadable: no script, since its interpreter could not read it
        return None
    try:
        line = os.read(fd, MAX_SHEBANG_BYTES).partition(b"\n")[0] if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
    parts = line[2:].split(maxsplit=1)
    return os.fsdecode(parts[0]) if line.startswith(b"#!") and parts and parts[0].startswith(b"/") else None


def _weak_directory(path: str, trusted: tuple[int, int]) -> str | None:
    found = os.lstat(path)
    if found.st_uid not in trusted:
        return path
    is_shared = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    return path if found.st_mode & OTHERS_WRITE and not is_shared else None


def real_directory(path: str) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError):  # missing, or not a valid path
        return None


def is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
