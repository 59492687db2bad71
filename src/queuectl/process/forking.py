"""Making a process that does to itself what it has to before it becomes the program, in a fork: in Python, and with decisions.

Half a millisecond more than a list of system calls takes (steps.py).
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import signal
from collections.abc import Sequence
from typing import Final

from queuectl.process.between import TRY_NEXT, Between, Step, Stopped, as_nice, clamped
from queuectl.process.libc import Call, drop_capabilities, new_session_keyring

# Of a process's own words about why it could not begin: more than a PATH has places.
LONGEST: Final = 65_536
# Nobody takes so long but who waits for a disk, and to that one it does no harm.
STOPPED_AFTER_MS: Final = 200


def fork(
    call: Call, programs: Sequence[bytes], between: Between, *, cwd: bytes, descriptors: Sequence[int]
) -> tuple[int, Stopped | None]:
    """As `posix_spawn` does it with what `call` says, for the first of these programs that can be run. Returns when that is
    running, or will not be. Raises OSError, if there is no room for another process."""
    told, tell = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
        if not pid:
            _become(call, programs, between, cwd, descriptors, tell)
        os.close(tell)
        tell = -1
        _let_run(pid, told)
        # All of it: nothing else was written, and it is closed by the start of the program.
        said = os.read(told, LONGEST)
    finally:
        os.close(told)
        if tell >= 0:
            os.close(tell)
    if not said:
        return pid, None
    os.waitpid(pid, 0)
    step, *errors = map(int, said.split())
    return 0, Stopped(Step(step), errors)


def _become(
    call: Call, programs: Sequence[bytes], between: Between, cwd: bytes, descriptors: Sequence[int], tell: int
) -> None:
    """Never returns. A process of its own, of one thread: nobody else sees what it does to itself."""
    step, errors = Step.BEGINNING, [errno.EINVAL]
    try:
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        step = Step.GROUP
        if between.group is not None:
            _join(between.group)
        step = Step.NICE
        if between.nice is not None:
            with contextlib.suppress(PermissionError):  # less than we are, and we may not: then as it is
                os.setpriority(os.PRIO_PROCESS, 0, as_nice(between.nice))
        limits = clamped(between.limits)
        step = Step.USER
        if between.umask is not None:
            os.umask(between.umask)
        if between.user is not None:
            user, main = between.user
            if user:
                new_session_keyring()
            os.setgroups(between.groups)
            os.setresgid(main, main, main)
            # Its rights from here on. As long as its real user is ours, others of that user cannot send it signals.
            os.setresuid(-1, user, -1)
        step = Step.DIRECTORY
        _enter(cwd, between.inside)
        step = Step.LIMITS
        # Those that we have set or ignore ourselves: the rest are as a new program finds them anyway.
        for one in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(one) not in (signal.SIG_DFL, None):
                signal.signal(one, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for kind, values in limits:
            resource.setrlimit(kind, values)
        step = Step.USER
        if between.user is not None:
            user, _ = between.user
            os.setresuid(user, user, user)
            if user:
                drop_capabilities()
        step, errors = Step.PROGRAM, []
        for program in programs:
            errors.append(call.become(program))
            if errors[-1] not in TRY_NEXT:
                break
    except OSError as exc:
        errors = [exc.errno or errno.EINVAL]
    except MemoryError:
        errors = [errno.ENOMEM]
    finally:
        # Whatever happened: here ends the one that has not become the program.
        os.write(tell, b" ".join(b"%d" % number for number in (step, *errors)))
        os._exit(127)


def _enter(cwd: bytes, inside: tuple[int, int] | None) -> None:
    os.chdir(cwd)
    if inside is not None:
        found = os.stat(".")
        if (found.st_dev, found.st_ino) != inside:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def _let_run(pid: int, told: int) -> None:
    """Until it has something to say, or has become the program. For a moment before that it belongs to its user, whose other
    processes may stop it: we would wait for it, and all other jobs for us."""
    look = select.poll()
    look.register(told, select.POLLIN)
    while not look.poll(STOPPED_AFTER_MS):
        with contextlib.suppress(OSError):
            pinned = os.pidfd_open(pid)
            try:
                signal.pidfd_send_signal(pinned, signal.SIGCONT)
            finally:
                os.close(pinned)


def _join(group: int) -> None:
    fd = os.open("cgroup.procs", os.O_WRONLY | os.O_CLOEXEC, dir_fd=group)
    os.write(fd, b"0")
    os.close(fd)
