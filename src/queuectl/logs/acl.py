"""Access control lists: which users may read our files besides us, where a worker that is root runs jobs as other users.

Another owner could write to the log, whose header and markers we rely on, and a group may have other members. See docs/internals/adr/0038.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterable
from typing import Final

READ, ENTER = 4, 1
_NAME: Final = "system.posix_acl_access"
# As the kernel stores them: a version, then kind, rights and ID of each entry.
_VERSION: Final = struct.pack("<I", 2)
_ENTRY: Final = struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _MASK, _OTHERS = 0x01, 0x02, 0x04, 0x10, 0x20
_UNNAMED: Final = 0xFFFFFFFF
_NO_LISTS: Final = frozenset({errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})
# Of a file that has a list, these bits of its mode are the mask of the named entries.
SHARED: Final = stat.S_IRWXG

_List = dict[tuple[int, int], int]  # rights by kind and ID


def grant_only(file: int | str, users: Iterable[int], rights: int) -> None:
    """Give these users access, and no other one but the owner. Raises OSError."""
    owner = os.stat(file).st_mode >> 6 & 7
    named: _List = {(_USER, user): rights for user in users if user}  # root needs no entry
    _write(file, {(_OWNER, _UNNAMED): owner, **named, (_GROUP, _UNNAMED): 0, (_OTHERS, _UNNAMED): 0}, mask=rights)


def grant(file: int | str, users: Iterable[int], rights: int) -> None:
    """Give these users access besides those who have it already. Raises OSError."""
    mode = os.stat(file).st_mode
    found = _read(file) or _of_mode(mode)
    mask = mode >> 3 & 7  # also of named users: a later chmod takes rights from them
    lacking = [user for user in users if user and rights & ~(found.get((_USER, user), 0) & mask)]
    if lacking and rights & ~mode:  # otherwise all users have it
        wanted = {(_USER, user): found.get((_USER, user), 0) | rights for user in lacking}
        _write(file, {**found, **wanted}, mask=rights)


def copy(old: int, new: int) -> None:
    """Give those who have access to one file access to another one. Raises OSError."""
    if os.fstat(old).st_mode & SHARED and (found := _read(old)) is not None:
        _write(new, found, mask=READ)


def names_users(path: str) -> bool:
    """Whether all who have access besides the owner are named users."""
    found = _read(path)
    return found is not None and not found[_GROUP, _UNNAMED] and not found[_OTHERS, _UNNAMED]


def _read(file: int | str) -> _List | None:
    """None if it has no list."""
    try:
        data = os.getxattr(file, _NAME)
    except OSError:
        return None
    return {(kind, number): rights for kind, rights, number in _ENTRY.iter_unpack(data[len(_VERSION) :])}


def _of_mode(mode: int) -> _List:
    return {(_OWNER, _UNNAMED): mode >> 6 & 7, (_GROUP, _UNNAMED): mode >> 3 & 7, (_OTHERS, _UNNAMED): mode & 7}


def _write(file: int | str, entries: _List, *, mask: int) -> None:
    for (kind, _), rights in entries.items():
        mask |= rights if kind in (_USER, _GROUP) else 0
    rows = sorted({**entries, (_MASK, _UNNAMED): mask}.items())
    try:
        os.setxattr(
            file, _NAME, _VERSION + b"".join(_ENTRY.pack(kind, rights, number) for (kind, number), rights in rows)
        )
    except OSError as exc:
        if exc.errno in _NO_LISTS:
            raise OSError(errno.ENOTSUP, "the file system has no access control lists") from exc
        raise
