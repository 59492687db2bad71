"""Making one process: the first of some programs that can be run."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import NamedTuple

from queuectl.clock import boot_ticks
from queuectl.process.between import TRY_NEXT, Between, Step
from queuectl.process.forking import fork
from queuectl.process.libc import KNOWS_DIRECTORIES, Call, Words
from queuectl.process.machine import NotHere
from queuectl.process.steps import make
from queuectl.process.table import started


class Made(NamedTuple):
    """Errors: one for each program that was tried in vain, and for each that was not tried after it. `step`: what could not be
    done, if that was not to begin the program."""

    pid: int
    started: int
    errors: list[int]
    step: int = int(Step.PROGRAM)
    is_grouped: bool = False  # it is in the control group that was meant for it


class Unmade(NamedTuple):
    """Something that it needs cannot be had."""

    programs: Sequence[bytes]
    error: int

    def run(self) -> Made:
        return Made(0, 0, [self.error] * len(self.programs))


class Making:
    """All that can be done before is done before: what is done between two starts is done with cold caches."""

    __slots__ = ("_between", "_call", "_cwd", "_descriptors", "_enter", "_grouped", "_programs")

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
        grouped: Between | None = None,
    ) -> None:
        """`between`: what it does to itself before it is the program. `grouped`: the same in a control group, which is tried first."""
        self._between = between
        self._grouped = grouped
        self._cwd = cwd
        self._descriptors = descriptors
        self._enter = None if knows_directories else cwd
        inside = cwd if knows_directories else None
        self._programs = programs
        self._call = Call(argv, base, env, cwd=inside, descriptors=descriptors)

    def run(self) -> Made:
        if self._grouped is not None:
            # A fork only for the group is too dear. And somebody may have removed that: then it does without.
            made = self._run_with(self._grouped, may_fork=self._between is not None)
            if made.step != Step.GROUP:
                return made._replace(is_grouped=not made.errors)
        return self._spawn() if self._between is None else self._run_with(self._between)

    def _run_with(self, between: Between, *, may_fork: bool = True) -> Made:
        before, tried = boot_ticks(), list[int]()
        for program in self._programs:
            try:
                pid, stopped = make(self._call, program, between, cwd=self._cwd, descriptors=self._descriptors)
            except NotHere:
                return self._fork(between) if may_fork else self._unmade([errno.ENOSYS], Step.GROUP)
            if stopped is None:
                return Made(pid, before if before == boot_ticks() else started(pid) or 0, [])
            step, (error,) = stopped
            tried.append(error)
            if step is not Step.PROGRAM or error not in TRY_NEXT:
                return self._unmade(tried, step)
        return self._unmade(tried, Step.PROGRAM)

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
                break
        return self._unmade(errors, Step.PROGRAM)

    def _fork(self, between: Between) -> Made:
        before = boot_ticks()
        try:
            pid, stopped = fork(self._call, self._programs, between, cwd=self._cwd, descriptors=self._descriptors)
        except OSError as exc:
            return self._unmade([exc.errno or errno.EAGAIN], Step.PROGRAM)
        if stopped is not None:
            return self._unmade(stopped.errors, stopped.step)
        return Made(pid, before if before == boot_ticks() else started(pid) or 0, [])

    def _unmade(self, errors: list[int], step: Step) -> Made:
        return Made(0, 0, [*errors, *errors[-1:] * (len(self._programs) - len(errors))], int(step))


def enter(cwd: bytes, inside: tuple[int, int]) -> int:
    """The directory itself, and not what may stand under its name a moment later. Raises OSError."""
    place = os.open(cwd, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    found = os.fstat(place)
    if (found.st_dev, found.st_ino) != inside:
        os.close(place)
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
    return place
