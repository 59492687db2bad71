"""What a path really leads to, and who could make it lead elsewhere."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final, NamedTuple

MOST_LINKS: Final = 40  # as the kernel has it
MOST_INTERPRETERS: Final = 5  # the same: an interpreter may be a script itself
LONGEST_LINE: Final = 256
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


class Way(NamedTuple):
    """`real` is the file itself. `names` are all it has on this way, the directories in them resolved: that which was asked for
    first, `real` last. `weak` is the first place where somebody but root and the user could put something else, None if
    there is none."""

    real: str
    names: tuple[str, ...]
    weak: str | None


def walk(path: str, *, user: int) -> Way:
    """Follow an absolute path, step by step, as the kernel does. Raises OSError where that leads nowhere."""
    trusted = (0, user)
    here, weak, links = "/", _weak_place("/", trusted), 0
    left = [part for part in reversed(path.split("/")) if part and part != "."]
    names: list[str] = []
    while left:
        part = left.pop()
        if part == "..":
            here = os.path.dirname(here)
            continue
        step = os.path.join(here, part)
        found = os.lstat(step)
        # In a directory like /tmp everybody may make names, but nobody takes away those of others.
        if weak is None and os.lstat(here).st_mode & OTHERS_WRITE and found.st_uid not in trusted:
            weak = step
        if not left:
            names.append(step)
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            target = os.readlink(step)
            here = "/" if target.startswith("/") else here
            left += [part for part in reversed(target.split("/")) if part and part != "."]
            continue
        if left and not stat.S_ISDIR(found.st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        here = step
        weak = weak or _weak_place(step, trusted)
    if path.endswith(("/", "/.")) and not os.path.isdir(here):
        raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return Way(here, (*names, here) if not names or names[-1] != here else tuple(names), weak)


def weak_interpreter(path: str, *, user: int) -> str | None:
    """Of a script: where others could put another interpreter, which would run in its place. None for other programs. Raises
    OSError if the kernel would not find one either."""
    for _ in range(MOST_INTERPRETERS):
        interpreter = _interpreter(path)
        if interpreter is None:
            return None
        way = walk(interpreter, user=user)
        if way.weak is not None:
            return way.weak
        path = way.real
    return None


def _interpreter(path: str) -> str | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # what is no file must not keep us waiting
    except PermissionError:  # to be run and not to be read: no script, which its interpreter has to read
        return None
    try:
        line = os.read(fd, LONGEST_LINE).partition(b"\n")[0] if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    finally:
        os.close(fd)
    words = line[2:].split(maxsplit=1)
    return os.fsdecode(words[0]) if line.startswith(b"#!") and words and words[0].startswith(b"/") else None


def _weak_place(path: str, trusted: tuple[int, int]) -> str | None:
    found = os.lstat(path)
    if found.st_uid not in trusted:
        return path
    is_shared = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    return path if found.st_mode & OTHERS_WRITE and not is_shared else None


def real_directory(path: str) -> str | None:
    try:
        return os.path.realpath(path, strict=True)
    except (OSError, ValueError):  # not there, or not a name that this system can have
        return None


def is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
