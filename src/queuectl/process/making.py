"""Making one process: the first of some programs that can be run."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from typing import NamedTuple

from queuectl.clock import boot_ticks
from queuectl.process.between import TRY_NEXT, Between, Step, fork
from queuectl.process.libc import KNOWS_DIRECTORIES, Call, Words
from queuectl.process.nicely import nicely
from queuectl.process.table import started


class Made(NamedTuple):
    """Errors: one for each program that was tried in vain, and for each that was not tried after it. `step`: what could not be
    done, if that was not to begin the program."""

    pid: int
    started: int
    errors: list[int]
    step: int = int(Step.PROGRAM)


class Unmade(NamedTuple):
    """Something that it needs cannot be had."""

    programs: Sequence[bytes]
    error: int

    def run(self) -> Made:
        return Made(0, 0, [self.error] * len(self.programs))


class Making:
    """All that can be done before is done before: what is done between two starts is done with cold caches."""

    __slots__ = ("_between", "_call", "_cwd", "_descriptors", "_enter", "_programs")

    def __init__(
        self,
        programs: Sequence[bytes],
        argv: Sequence[bytes],
        base: Words,
        env: Sequence[bytes],
        *,
        cwd: bytes,
        descriptors: tuple[int, ...],
        knows_directories: bool = KNOWS_DIRECTORIES,
        between: Between | None = None,
    ) -> None:
        self._between = between
        self._cwd = cwd
        self._descriptors = descriptors
        self._enter = None if knows_directories else cwd
        inside = cwd if knows_directories else None
        self._programs = programs
        self._call = Call(argv, base, env, cwd=inside, descriptors=descriptors)

    def run(self) -> Made:
        if self._between is not None:
            return self._run_with(self._between)
        return self._spawn()

    def _run_with(self, between: Between) -> Made:
        if between.nice is not None and between.is_nice_only:
            with contextlib.suppress(RuntimeError):  # no room for another thread
                return nicely(between.nice, self._spawn)
        return self._fork(between)

    def _spawn(self) -> Made:
        if self._enter is not None:  # the C library cannot be told: we go there ourselves
            try:
                os.chdir(self._enter)
            except (OSError, ValueError) as exc:
                return Made(0, 0, [getattr(exc, "errno", errno.EINVAL)] * len(self._programs))
        errors: list[int] = []
        for program in self._programs:
            before = boot_ticks()
            error = self._call.make(program)
            if not error:
                pid, after = self._call.pid, boot_ticks()
                # Looked up only if the clock ticked meanwhile: a look into /proc costs a tenth of a start.
                return Made(pid, before if before == after else started(pid) or 0, [])
            errors.append(error)
            if error not in TRY_NEXT:
                errors += [error] * (len(self._programs) - len(errors))
                break
        return Made(0, 0, errors)

    def _fork(self, between: Between) -> Made:
        before, count = boot_ticks(), len(self._programs)
        try:
            pid, stopped = fork(self._call, self._programs, between, cwd=self._cwd, descriptors=self._descriptors)
        except OSError as exc:
            return Made(0, 0, [exc.errno or errno.EAGAIN] * count)
        if stopped is not None:
            step, errors = stopped
            return Made(0, 0, errors + errors[-1:] * (count - len(errors)), int(step))
        return Made(pid, before if before == boot_ticks() else started(pid) or 0, [])


def enter(cwd: bytes, inside: tuple[int, int]) -> int:
    """The directory itself, and not what may stand under its name a moment later. Raises OSError."""
    place = os.open(cwd, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    found = os.fstat(place)
    if (found.st_dev, found.st_ino) != inside:
        os.close(place)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
    return place
