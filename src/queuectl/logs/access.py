"""Who may read what is ours besides us: named users, one by one, where a worker that is root runs jobs as others.

By an access control list, as the journal of systemd does it. Giving the file away would let whoever runs the job write into it, and
what we read there of our own we rely on; a group may have members whom nobody has thought of. See docs/adr/0038.
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
# As the kernel keeps them: a version, then kind, rights and number of each who has some.
_VERSION: Final = struct.pack("<I", 2)
_ENTRY: Final = struct.Struct("<HHI")
_OWNER, _USER, _GROUP, _MOST, _OTHERS = 0x01, 0x02, 0x04, 0x10, 0x20
_NOBODY: Final = 0xFFFFFFFF
_NO_LISTS: Final = frozenset({errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})
# Of a file that has a list, these bits of its mode say the most that anybody named there has.
SHARED: Final = stat.S_IRWXG

_List = dict[tuple[int, int], int]  # by kind and number, the rights


def let(file: int | str, users: Iterable[int], rights: int) -> None:
    """These users, and none but these and the owner. Raises OSError."""
    owner = os.stat(file).st_mode >> 6 & 7
    named: _List = {(_USER, user): rights for user in users if user}  # root needs no leave
    _write(file, {(_OWNER, _NOBODY): owner, **named, (_GROUP, _NOBODY): 0, (_OTHERS, _NOBODY): 0}, most=rights)


def let_too(file: int | str, users: Iterable[int], rights: int) -> None:
    """These users besides those who may already. Raises OSError."""
    mode = os.stat(file).st_mode
    found = _read(file) or _of_mode(mode)
    most = mode >> 3 & 7  # also of those who are named: a mode that was set since takes from them
    lacking = [user for user in users if user and rights & ~(found.get((_USER, user), 0) & most)]
    if lacking and rights & ~mode:  # else everybody may
        wanted = {(_USER, user): found.get((_USER, user), 0) | rights for user in lacking}
        _write(file, {**found, **wanted}, most=rights)


def copy(old: int, new: int) -> None:
    """The same for another file, which takes the place of this one. Raises OSError."""
    if os.fstat(old).st_mode & SHARED and (found := _read(old)) is not None:
        _write(new, found, most=READ)


def is_for_named(path: str) -> bool:
    """Whether those who have rights besides the owner are named, one by one."""
    found = _read(path)
    return found is not None and not found[_GROUP, _NOBODY] and not found[_OTHERS, _NOBODY]


def _read(file: int | str) -> _List | None:
    """None: it has no list."""
    try:
        data = os.getxattr(file, _NAME)
    except OSError:
        return None
    return {(kind, number): rights for kind, rights, number in _ENTRY.iter_unpack(data[len(_VERSION) :])}


def _of_mode(mode: int) -> _List:
    return {(_OWNER, _NOBODY): mode >> 6 & 7, (_GROUP, _NOBODY): mode >> 3 & 7, (_OTHERS, _NOBODY): mode & 7}


def _write(file: int | str, entries: _List, *, most: int) -> None:
    for (kind, _), rights in entries.items():
        most |= rights if kind in (_USER, _GROUP) else 0
    rows = sorted({**entries, (_MOST, _NOBODY): most}.items())
    try:
        os.setxattr(
            file, _NAME, _VERSION + b"".join(_ENTRY.pack(kind, rights, number) for (kind, number), rights in rows)
        )
    except OSError as exc:
        if exc.errno in _NO_LISTS:
            raise OSError(errno.ENOTSUP, "the file system has no access control lists") from exc
        raise
