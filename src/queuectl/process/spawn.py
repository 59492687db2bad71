"""Start one process: with `subprocess`, or in a fork for another user.

Popen does not return before the new program is loaded. So a working directory or program on a file system that may stop answering is opened
by a local `sh`, which Popen has started by then: only that job waits. Limits are set by the same `sh`. See
docs/internals/adr/0043-start-jobs-with-subprocess.md.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import shlex
import shutil
import signal
import stat
import subprocess  # noqa: TID251 - starts the jobs
import sys
from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple, NoReturn

from queuectl.process.system import system

SHELL: Final = b"/bin/sh"
MAX_NICE: Final = 19
MAX_SHOWN_CHARACTERS: Final = 200
_MAX_REPORT_BYTES: Final = 64
# Only a child blocked on disk I/O, or stopped by another process of its user, takes this long to become its program.
_STOPPED_AFTER_MS: Final = 200
_MAX_CONTINUES: Final = 25
_TRY_NEXT: Final = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EACCES}
)  # a directory of PATH may lack what the next one has
_NO_RESOURCES: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
# Of the limits of a job (jobs/resources.py): the option of `ulimit`, its unit in bytes, and the kernel's number.
_LIMITS: Final = {  # the last one last: `sh` itself needs memory to set the others
    "cpu_time": ("t", 1, resource.RLIMIT_CPU),
    "open_files": ("n", 1, resource.RLIMIT_NOFILE),
    "processes": ("u", 1, resource.RLIMIT_NPROC),
    "file_size": ("f", 512, resource.RLIMIT_FSIZE),
    "memory": ("v", 1024, resource.RLIMIT_AS),
}
_MAX_ARGUMENT_BYTES: Final = 1 << 17  # of the kernel, for one argument with its NUL
# Python ignores these itself, and restores them in each program that it starts.
_IGNORED_BY_PYTHON: Final = frozenset({signal.SIGPIPE, signal.SIGXFSZ})


class ChildSetup(NamedTuple):
    """How a process differs from the one that starts it.

    `limits`: by name, see jobs/resources.py; those above our own limits become ours. `nice`: added to ours. `user`: UID and GID.
    `inside`: device and inode that the working directory must have.
    """

    limits: Mapping[str, int] = MappingProxyType({})
    nice: int | None = None
    user: tuple[int, int] | None = None
    groups: tuple[int, ...] = ()
    umask: int | None = None
    inside: tuple[int, int] | None = None


NO_SETUP: Final = ChildSetup()


class Command(NamedTuple):
    """What to start. `environment` None: that of this process. `program`: the file to execute, whatever argv[0] is; None: argv[0], looked up
    on the PATH of `environment`. `shell`: the command line, if argv is `sh -c` with it: limits are then set by that shell."""

    argv: Sequence[bytes]
    environment: Mapping[bytes, bytes] | None
    cwd: bytes
    program: bytes | None = None
    shell: bytes | None = None
    setup: ChildSetup = NO_SETUP


class CannotSpawn(Exception):
    """The process could not be started. The message says why, for the owner of the job."""


class StartWithdrawn(CannotSpawn):
    """It was not started, because the worker did not want it any more."""


class StartUnrecorded(CannotSpawn):
    """It was not started, because the journal cannot be written: after a crash, it would count as not started."""


class StartExpired(CannotSpawn):
    """It was not started, since its claim may belong to another worker by now."""


def with_limits(setup: ChildSetup, limits: Mapping[str, int] | None) -> ChildSetup:
    if not limits:
        return setup
    rest = {name: limits[name] for name in _LIMITS if name in limits}
    return setup._replace(limits=rest, nice=limits.get("nice"))


def spawn(command: Command, *, stdin: int, stdout: int, stderr: int) -> int:
    """Start a process in a new session, with default signal dispositions and no other descriptors. Returns its PID; the caller reaps it.

    Raises CannotSpawn.
    """
    if b"\0" in b"".join((*command.argv, command.program or b"")):
        raise CannotSpawn(f"{_shown(command.argv[0])}: embedded null byte")
    if b"\0" in command.cwd:
        raise CannotSpawn(f"the working directory {_shown(command.cwd)} cannot be entered: embedded null byte")
    is_remote = system.remote_mount(lambda: [command.cwd, *_candidates(command)]) is not None
    # Only a new process itself can check a remote directory: a process that opens it may wait without end.
    if command.setup.user is not None or (is_remote and command.setup.inside is not None):
        return _fork(command, (stdin, stdout, stderr), is_remote=is_remote)
    try:
        return _popen(command, stdin=stdin, stdout=stdout, stderr=stderr, is_remote=is_remote)
    except (OSError, ValueError, subprocess.SubprocessError) as exc:
        raise CannotSpawn(_reason(command, exc)) from exc


def _popen(command: Command, *, stdin: int, stdout: int, stderr: int, is_remote: bool) -> int:
    setup, argv, program, cwd = command.setup, list(command.argv), command.program, command.cwd
    if (prelude := _prelude(command, is_remote=is_remote)) is not None:
        nice = _nice_words(setup)
        shell = b"" if command.shell is None or is_remote or nice else prelude + command.shell
        if 0 < len(shell) < _MAX_ARGUMENT_BYTES:
            argv = [*argv[:-1], shell]
        else:
            if not is_remote:
                _check_program(command)
            if program is not None:  # `exec -a` is not in every shell: argv[0] becomes the path of the program
                argv[0] = program
            argv, program = [SHELL, b"-c", prelude + b'exec "$@"', b"sh", *nice, *argv], SHELL
        if is_remote:
            cwd = b"/"
    entered = None
    try:
        if setup.inside is not None:
            # The directory itself, and not what may have its name a moment later. This process has no other thread.
            entered = _open_directory(cwd, setup.inside)
            os.fchdir(entered)
        process = subprocess.Popen(  # noqa: S603 - the command of a job
            argv,
            executable=program,
            env=command.environment,
            cwd=None if entered is not None else cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            umask=-1 if setup.umask is None else setup.umask,
        )
    finally:
        if entered is not None:
            os.chdir("/")
            os.close(entered)
    process.returncode = 0  # the caller waits for it: Popen must not
    return process.pid


def _nice_words(setup: ChildSetup) -> list[bytes]:
    """The program that sets the nice value, with its options; none if we may not set it: then it stays."""
    if setup.nice is None or (setup.nice < 0 and os.geteuid() != 0):
        return []
    program = shutil.which("nice", path=os.defpath)
    return [] if program is None else [os.fsencode(program), b"-n", b"%d" % setup.nice]


def _prelude(command: Command, *, is_remote: bool) -> bytes | None:
    """Shell commands to run before the program; None if there are none."""
    setup, parts = command.setup, list[str]()
    if not (setup.limits or is_remote or setup.nice is not None):
        return None
    for name, limits in _clamped(setup.limits):
        option, unit, _ = _LIMITS[name]
        soft, hard = (max(1, limit // unit) for limit in limits)
        if name == "processes":  # `-u` in bash, ksh and zsh, `-p` in dash and ash
            parts.append(f"ulimit -u {soft} 2>/dev/null || ulimit -p {soft}")
        elif hard == soft:
            parts.append(f"ulimit -{option} {soft}")
        else:
            parts += [f"ulimit -S -{option} {soft}", f"ulimit -H -{option} {hard}"]
    if is_remote:
        parts.append(f"cd -- {shlex.quote(os.fsdecode(command.cwd))}")
    if not parts:
        return b"" if _nice_words(setup) else None
    return os.fsencode("".join(f"{part} || exit 126; " for part in parts))


def _clamped(limits: Mapping[str, int]) -> list[tuple[str, tuple[int, int]]]:
    """Soft and hard limits, at most our own."""
    found: list[tuple[str, tuple[int, int]]] = []
    if not limits:
        return found
    for name, (_, _, kind) in _LIMITS.items():
        if name in limits:
            _, ours = resource.getrlimit(kind)
            # SIGXCPU at the soft limit of the CPU time tells what happened; SIGKILL at the hard one does not.
            most = limits[name], limits[name] + (name == "cpu_time")
            soft, hard = (value if ours == resource.RLIM_INFINITY else min(value, ours) for value in most)
            found.append((name, (soft, hard)))
    return found


def _environment(command: Command) -> Mapping[bytes, bytes]:
    return os.environb if command.environment is None else command.environment


def _candidates(command: Command) -> list[bytes]:
    """Where the program may be, in the order in which it is looked for."""
    program = command.program or command.argv[0]
    if b"/" in program:
        return [os.path.join(command.cwd, program)]
    path = _environment(command).get(b"PATH", os.fsencode(os.defpath))
    return [os.path.join(command.cwd, folder, program) for folder in path.split(b":")]


def _check_program(command: Command) -> None:
    """Raise the OSError with which a shell could not start the program: as its exit code it would look like a failure of the program."""
    found = errno.ENOENT
    for path in _candidates(command):
        try:
            mode = os.stat(os.path.join(command.cwd, path)).st_mode
        except OSError as exc:
            if exc.errno not in (errno.ENOENT, errno.ENOTDIR):
                found = exc.errno or errno.EINVAL
            continue
        if stat.S_ISREG(mode) and os.access(path, os.X_OK):
            return
        found = errno.EACCES
    raise OSError(found, os.strerror(found))


def _open_directory(path: bytes, inside: tuple[int, int]) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if not _is_inside(os.fstat(fd), inside):
        os.close(fd)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
    return fd


def _is_inside(found: os.stat_result, inside: tuple[int, int]) -> bool:
    return (found.st_dev, found.st_ino) == inside


# ── why it could not be started ─────────────────────────────────────────────────────────────────────────────────────


def _reason(command: Command, exc: Exception) -> str:
    name = _shown(command.argv[0])
    error = getattr(exc, "errno", None)
    words = (getattr(exc, "strerror", None) or str(exc)).lower()
    if error == errno.ESTALE:
        return f"the working directory {_shown(command.cwd)} was replaced while it was checked"
    if getattr(exc, "filename", None) == command.cwd and not _can_enter(command):
        return f"the working directory {_shown(command.cwd)} cannot be entered: {words}"
    match error:
        case errno.ENOENT | errno.ENOTDIR:
            for path in _candidates(command):
                if os.path.exists(path):  # so it was not the program that is missing
                    return f"{_shown(path)}: its interpreter is missing (see its first line)"
            return f"no such program: {name}"
        case errno.EACCES:
            return f"not executable: {name}"
        case errno.E2BIG:
            return "the command and its environment are too long for this system"
        case _ if error in _NO_RESOURCES:
            return f"the system has no room for another process: {words}"
        case _:
            return f"{name}: {words}"


def _can_enter(command: Command) -> bool:
    """Whether it was not the working directory but a program with the same path. Of another user we know which it was."""
    return command.setup.user is None and os.path.exists(os.path.join(command.cwd, b"."))


def _shown(path: bytes) -> str:
    """On one line, and not too long for an error message."""
    text = path.decode("utf-8", "replace")
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:MAX_SHOWN_CHARACTERS])
    return line if len(text) <= MAX_SHOWN_CHARACTERS else line + "…"


# ── as another user ─────────────────────────────────────────────────────────────────────────────────────────────────


class _Step(IntEnum):
    """Where the setup of a child failed."""

    SETUP = 0
    USER = 1
    DIRECTORY = 2
    LIMITS = 3
    PROGRAM = 4


_FAILED: Final = {
    _Step.SETUP: "its session or nice value cannot be set",
    _Step.USER: "its user cannot be set",
    _Step.LIMITS: "its limits cannot be set",
}


def _fork(command: Command, descriptors: tuple[int, int, int], *, is_remote: bool) -> int:
    """Start a process that gives up our rights before it becomes the program. Popen cannot: the working directory has to be entered with
    the rights of the user, capabilities and the session keyring have to be dropped."""
    report, reported = os.pipe()
    try:
        try:
            pid = os.fork()
        except OSError as exc:
            raise CannotSpawn(_reason(command, exc)) from exc
        if not pid:
            _become(command, descriptors, reported)
        os.close(reported)
        reported = -1
        if not _wait_for_exec(pid, report, is_remote=is_remote):
            return pid
        answer = os.read(report, _MAX_REPORT_BYTES)
    finally:
        os.close(report)
        if reported >= 0:
            os.close(reported)
    if not answer:
        return pid
    os.waitpid(pid, 0)
    step, error = map(int, answer.split())
    if step in _FAILED:
        raise CannotSpawn(f"{_FAILED[_Step(step)]}: {os.strerror(error).lower()}")
    cause = OSError(error, os.strerror(error), command.cwd if step == _Step.DIRECTORY else None)
    raise CannotSpawn(_reason(command, cause))


def _wait_for_exec(pid: int, report: int, *, is_remote: bool) -> bool:
    """Wait until the child has become its program or reports why not. False if that takes long: then it counts as started.

    For a moment before the exec it belongs to its user, whose other processes may stop it: it is continued.
    """
    watch = select.poll()
    watch.register(report, select.POLLIN)
    for _ in range(1 if is_remote else _MAX_CONTINUES):
        if watch.poll(_STOPPED_AFTER_MS):
            return True
        with contextlib.suppress(ProcessLookupError):  # our child: its PID is not reused before we reap it
            os.kill(pid, signal.SIGCONT)
    return False


def _become(command: Command, descriptors: tuple[int, int, int], report: int) -> NoReturn:
    """In the child: become the program, or report why not."""
    step, error = _Step.SETUP, errno.EINVAL
    setup = command.setup
    try:
        os.setsid()
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        if setup.nice is not None:
            with contextlib.suppress(PermissionError):  # a lower value than ours: then it stays
                nice = os.getpriority(os.PRIO_PROCESS, 0) + setup.nice
                os.setpriority(os.PRIO_PROCESS, 0, max(-MAX_NICE - 1, min(MAX_NICE, nice)))
        if setup.umask is not None:
            os.umask(setup.umask)
        limits = _clamped(setup.limits)
        step = _Step.USER
        if setup.user is not None:
            _take_rights(setup.user, setup.groups)
        step = _Step.DIRECTORY
        os.chdir(command.cwd)
        if setup.inside is not None and not _is_inside(os.stat("."), setup.inside):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        step = _Step.LIMITS
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if signal.getsignal(number) not in (signal.SIG_DFL, None):
                signal.signal(number, signal.SIG_DFL)
        for name, values in limits:
            resource.setrlimit(_LIMITS[name][2], values)
        step = _Step.USER
        if setup.user is not None:
            _become_user(setup.user[0])
        step = _Step.PROGRAM
        error = _exec(command)
    except OSError as exc:
        error = exc.errno or errno.EINVAL
    except MemoryError:
        error = errno.ENOMEM
    finally:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        with contextlib.suppress(OSError):  # the supervisor has stopped waiting
            os.write(report, b"%d %d" % (step, error))
        os._exit(127)


def _take_rights(user: tuple[int, int], groups: tuple[int, ...]) -> None:
    """Have the rights of the user. While the real user is ours, other processes of that user cannot signal us."""
    uid, gid = user
    if uid and sys.platform == "linux":
        from queuectl.process import linux

        linux.new_session_keyring()
    os.setgroups(groups)
    os.setregid(gid, gid)
    os.seteuid(uid)


def _become_user(uid: int) -> None:
    os.setreuid(uid, uid)
    if uid and sys.platform == "linux":
        from queuectl.process import linux

        linux.drop_capabilities()


def _exec(command: Command) -> int:
    """Returns the errno of the most telling failure."""
    found = errno.ENOENT
    program = command.program or command.argv[0]
    for path in [program] if b"/" in program else _candidates(command):
        try:
            os.execve(path, list(command.argv), dict(_environment(command)))  # noqa: S606 - the command of a job
        except OSError as exc:
            if exc.errno not in (errno.ENOENT, errno.ENOTDIR):
                found = exc.errno or errno.EINVAL
            if exc.errno not in _TRY_NEXT:
                break
    return found


# ── signals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def ignored_from_start() -> Sequence[int]:
    """The signals that our parent made us ignore, as nohup, cron and a shell with `trap ''` or `&` do."""
    numbers = signal.valid_signals() - _IGNORED_BY_PYTHON
    return [number for number in numbers if signal.getsignal(number) is signal.SIG_IGN]


def start_programs_with_default_signals() -> None:
    """Give programs that this process starts default dispositions and an empty mask. Call it in the main thread.

    A handler becomes the default in a new program, an ignored signal stays ignored. So a handler that does nothing replaces
    the latter: this process still ignores the signal.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in ignored_from_start():
        signal.signal(number, lambda *_: None)
