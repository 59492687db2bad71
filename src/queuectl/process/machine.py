"""Having a new process make some system calls before it becomes the program, at the price of `posix_spawn`.

Until it is the program such a process shares our memory, while we stand still (`vfork`): a third of what a fork costs. Python cannot
run in it, for whatever it did to the interpreter, we would find done. So it runs a few instructions of its own, which go through a
list in memory. What stands beside each of them is what it says: a test has it assembled. See docs/adr/0039.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import mmap
import os
import signal
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

# Called with the first two arguments of `clone` or `clone3`, the list, and the number of that call. Returns in us with its result; the
# new process goes on with the list. An entry of that: the number of a call, six arguments, and how many bytes to go on if it fails, in which case
# the error takes the place of the number. Nothing needs a stack, so the new process can have ours.
_CODE: Final = {
    "x86_64": (
        "4889c8"  # mov rax, rcx
        "4989d0"  # mov r8, rdx
        "0f05"  # syscall
        "4885c0"  # test rax, rax
        "7534"  # jnz parent
        "4c89c3"  # mov rbx, r8
        "488b03"  # step: mov rax, [rbx]
        "488b7b08"  # mov rdi, [rbx + 8]
        "488b7310"  # mov rsi, [rbx + 16]
        "488b5318"  # mov rdx, [rbx + 24]
        "4c8b5320"  # mov r10, [rbx + 32]
        "4c8b4328"  # mov r8, [rbx + 40]
        "4c8b4b30"  # mov r9, [rbx + 48]
        "0f05"  # syscall
        "4885c0"  # test rax, rax
        "7806"  # js failed
        "4883c340"  # add rbx, 64
        "ebd8"  # jmp step
        "488903"  # failed: mov [rbx], rax
        "48035b38"  # add rbx, [rbx + 56]
        "ebcf"  # jmp step
        "c3"  # parent: ret
    ),
    "aarch64": (
        "e80303aa"  # mov x8, x3
        "e90302aa"  # mov x9, x2
        "010000d4"  # svc #0
        "a00100b5"  # cbnz x0, parent
        "280140f9"  # step: ldr x8, [x9]
        "208540a9"  # ldp x0, x1, [x9, #8]
        "228d41a9"  # ldp x2, x3, [x9, #24]
        "249542a9"  # ldp x4, x5, [x9, #40]
        "010000d4"  # svc #0
        "6000f8b7"  # tbnz x0, #63, failed
        "29010191"  # add x9, x9, #64
        "f9ffff17"  # b step
        "200100f9"  # failed: str x0, [x9]
        "2a1d40f9"  # ldr x10, [x9, #56]
        "29010a8b"  # add x9, x9, x10
        "f5ffff17"  # b step
        "c0035fd6"  # parent: ret
    ),
}


class Numbers(NamedTuple):
    """Of the system calls, on one kind of machine."""

    clone: int
    clone3: int
    setsid: int
    dup3: int
    umask: int
    setpriority: int
    chdir: int
    sigaction: int
    sigprocmask: int
    prlimit: int
    execve: int
    exit: int


_NUMBERS: Final = {
    "x86_64": Numbers(56, 435, 112, 292, 95, 141, 80, 13, 14, 302, 59, 231),
    "aarch64": Numbers(220, 435, 157, 24, 166, 140, 49, 134, 135, 261, 221, 94),
}

_ENTRY: Final = struct.Struct("=8q")
_ARGUMENTS: Final = 6
_WORD: Final = struct.Struct("=q")
_VM, _VFORK, _INTO_CGROUP = 0x100, 0x4000, 0x2_0000_0000
_CLONE_ARGS: Final = struct.Struct("=11Q")
_SIGSET: Final = 128
_ALL: Final = b"\xff" * _SIGSET
_FAILED: Final = 127
# It is not to be had here: no such call, or whoever guards us is against it.
_NOT_HERE: Final = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL})


class Entry(NamedTuple):
    """A system call. Arguments that are bytes are put into memory, and the call gets their address; those that are None differ from
    process to process. `is_vital`: if it fails, nothing after it is done."""

    number: int
    arguments: Sequence[int | bytes | None]
    is_vital: bool = True


class Script:
    """A list, laid out once for many processes. The last of it has to be to become the program."""

    __slots__ = ("_holes", "_room", "entries", "text")

    def __init__(self, known: Numbers, entries: Sequence[Entry]) -> None:
        self.entries = (*entries, Entry(known.exit, (_FAILED,)))
        self._room: list[ctypes.Array[ctypes.c_char]] = []  # what it points to, as long as we are
        self._holes: list[int] = []
        packed = bytearray()
        for place, (number, arguments, is_vital) in enumerate(self.entries):
            words = [0] * _ARGUMENTS
            for which, word in enumerate(arguments):
                if word is None:
                    self._holes.append(len(packed) + _WORD.size * (which + 1))
                else:
                    words[which] = self._address(word) if isinstance(word, bytes) else word
            onward = _ENTRY.size * (len(self.entries) - 1 - place if is_vital else 1)
            packed += _ENTRY.pack(number, *words, onward)
        self.text = bytes(packed)

    def _address(self, word: bytes) -> int:
        self._room.append(ctypes.create_string_buffer(word))
        return ctypes.addressof(self._room[-1])

    def filled(self, words: Sequence[int]) -> ctypes.Array[ctypes.c_char]:
        """For one process, which will write into it."""
        room = ctypes.create_string_buffer(self.text, len(self.text))
        for hole, word in zip(self._holes, words, strict=True):
            _WORD.pack_into(room, hole, word)
        return room


class NotHere(Exception):
    """This machine, or whoever guards us, does not let us."""


class Failed(Exception):
    """The new process ended before it was the program. `at`: the place in the list of what it could not do; None: it was not made."""

    def __init__(self, at: int | None, number: int) -> None:
        super().__init__(os.strerror(number))
        self.at = at
        self.errno = number


@functools.cache
def numbers() -> Numbers | None:
    """None: on this kind of machine nobody has tried."""
    return _NUMBERS.get(os.uname().machine)


class Machine:
    """Raises NotHere if it cannot be had."""

    def __init__(self, known: Numbers) -> None:
        libc = ctypes.CDLL(None)
        self._mask = ctypes.PyDLL(None).pthread_sigmask
        self._numbers = known
        code = bytes.fromhex(_CODE[os.uname().machine])
        self._memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._memory.write(code)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        # Never both at a time: what can be executed cannot be written any more.
        if libc.mprotect(ctypes.c_void_p(at), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC):
            raise NotHere
        # Python's lock is let go of: the rest of us goes on.
        kind = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_long)
        self._go = kind(at)

    def make(self, script: Script, words: Sequence[int] = (), *, group: int | None = None) -> int:
        """A new process that does all of it, with these words where it has none, in this control group if there is one. Returns
        its number. Raises Failed or NotHere."""
        room = script.filled(words)
        before = room.raw
        if group is None:
            call, first, second = self._numbers.clone, _VM | _VFORK | signal.SIGCHLD, 0
        else:
            args = _CLONE_ARGS.pack(_VM | _VFORK | _INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, *[0] * 5, group)
            call, first, second = self._numbers.clone3, address(args), _CLONE_ARGS.size
        # A handler of ours would work in memory that is ours as well. The list sets both right before the program begins.
        old = ctypes.create_string_buffer(_SIGSET)
        self._mask(signal.SIG_SETMASK, _ALL, old)
        try:
            pid: int = self._go(first, second, ctypes.addressof(room), call)
        finally:
            self._mask(signal.SIG_SETMASK, old, None)
        if pid < 0:
            raise NotHere if -pid in _NOT_HERE else Failed(None, -pid)
        if room.raw != before:
            for at, entry in enumerate(script.entries):
                found, *_ = _ENTRY.unpack_from(room, at * _ENTRY.size)
                if found < 0 and entry.is_vital:
                    os.waitpid(pid, 0)
                    raise Failed(at, -found)
        return pid


def address(word: bytes) -> int:
    """Where these bytes lie, as long as they do."""
    return ctypes.cast(ctypes.c_char_p(word), ctypes.c_void_p).value or 0
