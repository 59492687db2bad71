"""`posix_spawn` of the C library, called without Python's lock.

`os.posix_spawn` holds the lock until the new program is loaded, and on a busy machine the new process waits for a core
before that: as long as everything else that a job costs us. Called from here, the rest of the worker runs meanwhile.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

_HELD: Final = ctypes.PyDLL(None)  # too short to let go of the lock for
_FREE: Final = ctypes.CDLL(None)
_TELLING: Final = ctypes.PyDLL(None, use_errno=True)

# Before 2.29 glibc could not be told a working directory.
KNOWS_DIRECTORIES: Final = hasattr(_HELD, "posix_spawn_file_actions_addchdir_np")

# More than any C library needs for its opaque structures.
_ROOM: Final = 512
_SETSIGDEF, _SETSIGMASK, _SETSID = 0x04, 0x08, 0x80
_SIGSET: Final = 128


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


def descriptor_of(number: int) -> int:
    """Becomes readable when this signal, which has to be blocked, is sent to us. Without it Python's own handler would run for
    every one, and interrupt whatever is going on. Raises OSError."""
    room = (1 << (number - 1)).to_bytes(_SIGSET, "little")
    found: int = _HELD.signalfd(-1, room, os.O_CLOEXEC | os.O_NONBLOCK)  # their flags are those of `open`
    if found < 0:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return found


# keyctl(2), which the C library does not offer. Architectures with the generic table of system calls have 219.
_KEYCTL: Final = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}.get(os.uname().machine)
_GET_KEYRING_ID, _JOIN_SESSION_KEYRING = 0, 1
_SESSION_KEYRING: Final = -3
# Not in this kernel; not allowed in this container, for its jobs neither.
_NO_KEYRINGS: Final = frozenset({errno.ENOSYS, errno.EPERM, errno.EACCES})


def new_session_keyring() -> None:
    """Leave the session keyring that we have inherited for a new, empty one. Raises OSError.

    Before the user changes: the keys that a user may have are limited to 200 by default, and root's are not. Where the system offers no
    way, it stays: see `keyring_problem`.
    """
    number = _keyctl(_JOIN_SESSION_KEYRING, 0)
    if number and number not in _NO_KEYRINGS:
        raise OSError(number, os.strerror(number))


def keyring_problem() -> str | None:
    """Why a job cannot be given a session keyring of its own; None: it can, or there are no keyrings here."""
    number = _keyctl(_GET_KEYRING_ID, _SESSION_KEYRING)
    if number in (errno.EPERM, errno.EACCES):
        return f"keyctl: {os.strerror(number)}"
    return f"keyctl is not known on {os.uname().machine}" if _KEYCTL is None else None


def _keyctl(operation: int, argument: int) -> int:
    """The number of the error, 0: none."""
    if _KEYCTL is None:
        return errno.ENOSYS
    words = (ctypes.c_long(word) for word in (_KEYCTL, operation, argument, 0, 0, 0))
    _TELLING.syscall.restype = ctypes.c_long
    return ctypes.get_errno() if _TELLING.syscall(*words) < 0 else 0


def drop_capabilities() -> None:
    """Be one without any, and without any that a program could give back. The kernel does most of it for whoever stops being root,
    unless it was told not to. Raises OSError."""
    header = struct.pack("II", 0x20080522, 0)  # the version of what follows, and whose: ours
    if not hasattr(_TELLING, "capset") or _TELLING.capset(header, bytes(24)):
        number = ctypes.get_errno() or errno.ENOSYS
        raise OSError(number, os.strerror(number))


# `waitid` of the kernel, which tells more than that of the C library: it has a number of its own on each kind of machine.
_WAITID: Final = {"x86_64": 247, "aarch64": 95, "riscv64": 95, "loongarch64": 95, "ppc64le": 272, "s390x": 281}.get(
    os.uname().machine
)
_MOST_LONGS: Final = 18  # in a `struct rusage`
_MILLION: Final = 1_000_000
_BLOCK: Final = 512  # bytes, in which what is read from disks and written to them is counted
_usage = (ctypes.c_long * _MOST_LONGS)()
_ABOUT: Final = ctypes.create_string_buffer(128)  # a `siginfo_t`


def usage_of(pid: int) -> tuple[int, int, int, int, int] | None:
    """What a child that has ended has used, with those that it has waited for, as jobs/resources.py has it, but the times in
    microseconds. The child is not buried. None: the kernel cannot be asked."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    if _WAITID is None or _HELD.syscall(_WAITID, os.P_PID, pid, _ABOUT, options, _usage):
        return None
    seconds, micros, system_seconds, system_micros, kib, *_ = _usage
    user, system = seconds * _MILLION + micros, system_seconds * _MILLION + system_micros
    return user, system, kib * 1024, _usage[11] * _BLOCK, _usage[12] * _BLOCK


class Words:
    """Words for a program. Those that many programs get are put together once."""

    __slots__ = ("_array", "_raw", "words")

    def __init__(self, words: Sequence[bytes]) -> None:
        self.words = words
        self._array = (ctypes.c_char_p * len(words))(*words)
        self._raw = bytes(self._array)

    def and_these(self, more: Sequence[bytes]) -> ctypes.Array[ctypes.c_char_p]:
        """As the C library wants them; valid as long as we are."""
        count = len(self.words)
        kind = ctypes.c_char_p * (count + len(more) + 1)
        array = kind.from_buffer_copy(self._raw + bytes(ctypes.sizeof(kind) - len(self._raw)))
        for number, word in enumerate(more, count):
            array[number] = word
        return array


class _Actions:
    """What a new process does before it becomes the program."""

    __slots__ = ("room",)

    def __init__(self, descriptors: tuple[int, ...], cwd: bytes | None) -> None:
        self.room = ctypes.create_string_buffer(_ROOM)
        _HELD.posix_spawn_file_actions_init(self.room)
        for number, descriptor in enumerate(descriptors):
            _HELD.posix_spawn_file_actions_adddup2(self.room, descriptor, number)
        if cwd is not None:
            _HELD.posix_spawn_file_actions_addchdir_np(self.room, cwd)

    # Bound here: the last ones go when the module is already being taken down.
    def __del__(self, destroy: Callable[[object], object] = _HELD.posix_spawn_file_actions_destroy) -> None:
        destroy(self.room)


# Descriptors are numbers that come again and again, and most jobs of a queue run in the same place.
_actions = lru_cache(maxsize=64)(_Actions)
_NO_WORDS: Final = Words(())


class Call:
    """All that one call needs, put together beforehand."""

    __slots__ = ("_actions", "_argv", "_base", "_env", "_pid", "is_cut")

    def __init__(
        self,
        argv: Sequence[bytes],
        base: Words,
        env: Sequence[bytes],
        *,
        cwd: bytes | None,
        descriptors: tuple[int, ...],
    ) -> None:
        """The environment is `base` and `env`. The new process has these descriptors as 0, 1, 2 …, and runs in `cwd`,
        which only works if KNOWS_DIRECTORIES.
        """
        # The C library takes a null byte for the end of a word: what came after it would be missing.
        self.is_cut = b"\0" in b"".join((*argv, *base.words, *env, cwd or b""))
        self._pid = ctypes.c_int()
        self._argv = _NO_WORDS.and_these(argv)
        self._base = base
        self._env = base.and_these(env)
        self._actions = _actions(descriptors, cwd)

    def make(self, program: bytes) -> int:
        """Make the process, without Python's lock. Returns 0, or the number of the error."""
        if self.is_cut:
            return errno.EINVAL
        error: int = _FREE.posix_spawn(
            ctypes.byref(self._pid), program, self._actions.room, _ATTRIBUTES, self._argv, self._env
        )
        return error

    def become(self, program: bytes) -> int:
        """In a process of its own: be this program from now on. Returns the number of the error."""
        if self.is_cut:
            return errno.EINVAL
        _TELLING.execve(program, self._argv, self._env)
        return ctypes.get_errno()

    @property
    def pid(self) -> int:
        return self._pid.value

    @property
    def argv_at(self) -> int:
        """Where the words lie, as long as we are."""
        return ctypes.addressof(self._argv)

    @property
    def env_at(self) -> int:
        return ctypes.addressof(self._env)
