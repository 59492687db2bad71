"""`posix_spawn` of the C library, called without Python's lock.

`os.posix_spawn` holds the lock until the new program is loaded, and on a busy machine the new process waits for a core
before that: as long as everything else that a job costs us. Called from here, the rest of the worker runs meanwhile.
"""

from __future__ import annotations

import ctypes
import errno
from collections.abc import Sequence
from typing import Final

_HELD: Final = ctypes.PyDLL(None)  # too short to let go of the lock for
_FREE: Final = ctypes.CDLL(None)

# Before 2.29 glibc could not be told a working directory.
KNOWS_DIRECTORIES: Final = hasattr(_HELD, "posix_spawn_file_actions_addchdir_np")

# More than any C library needs for its opaque structures.
_ROOM: Final = 512
_SETSIGDEF, _SETSIGMASK, _SETSID = 0x04, 0x08, 0x80
_SIGSET: Final = 128

_Words = ctypes.Array[ctypes.c_char_p]


def _attributes() -> ctypes.Array[ctypes.c_char]:
    """A session of its own, no signal blocked, each at its default."""
    room = ctypes.create_string_buffer(_ROOM)
    _HELD.posix_spawnattr_init(room)
    _HELD.posix_spawnattr_setflags(room, ctypes.c_short(_SETSID | _SETSIGDEF | _SETSIGMASK))
    _HELD.posix_spawnattr_setsigmask(room, ctypes.create_string_buffer(_SIGSET))
    # Every bit, and not what sigfillset says: that leaves out 32 and 33, which the child would then find ignored.
    _HELD.posix_spawnattr_setsigdefault(room, ctypes.create_string_buffer(b"\xff" * _SIGSET, _SIGSET))
    return room


_ATTRIBUTES: Final = _attributes()


class Call:
    """All that one call needs, put together beforehand; `close` it afterwards."""

    __slots__ = ("_actions", "_argv", "_env", "_is_cut", "_pid")

    def __init__(
        self, argv: Sequence[bytes], env: Sequence[bytes], *, cwd: bytes | None, descriptors: Sequence[int]
    ) -> None:
        """The new process has these descriptors as 0, 1, 2 …, and `cwd`, which only works if KNOWS_DIRECTORIES."""
        # The C library takes a null byte for the end of a word: what came after it would be missing.
        self._is_cut = b"\0" in b"".join((*argv, *env, cwd or b""))
        self._pid = ctypes.c_int()
        self._argv = _words(argv)
        self._env = _words(env)
        self._actions = ctypes.create_string_buffer(_ROOM)
        _HELD.posix_spawn_file_actions_init(self._actions)
        for number, descriptor in enumerate(descriptors):
            _HELD.posix_spawn_file_actions_adddup2(self._actions, descriptor, number)
        if cwd is not None:
            _HELD.posix_spawn_file_actions_addchdir_np(self._actions, cwd)

    def make(self, program: bytes) -> int:
        """Make the process, without Python's lock. Returns 0, or the number of the error."""
        if self._is_cut:
            return errno.EINVAL
        error: int = _FREE.posix_spawn(
            ctypes.byref(self._pid), program, self._actions, _ATTRIBUTES, self._argv, self._env
        )
        return error

    @property
    def pid(self) -> int:
        return self._pid.value

    def close(self) -> None:
        _HELD.posix_spawn_file_actions_destroy(self._actions)


def _words(words: Sequence[bytes]) -> _Words:
    return (ctypes.c_char_p * (len(words) + 1))(*words)
