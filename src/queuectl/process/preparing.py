"""What a keeper does before it makes processes: logs, directories, control groups."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Sequence
from typing import Any, NamedTuple

from queuectl.process.between import Between
from queuectl.process.libc import Words
from queuectl.process.making import Making, Unmade, enter
from queuectl.process.orders import CannotLog
from queuectl.process.pipe import Pipe
from queuectl.process.pool import Group, Opened, Pool
from queuectl.process.pump import Pump
from queuectl.process.steps import machine

Rows = Sequence[tuple[Any, ...]]  # orders, as they come over the wire


class Ordered(NamedTuple):
    making: Making | Unmade
    pipe: Pipe | None = None  # None: it will not be made
    out: int = -1  # its other end
    log_error: int = 0
    inside: int = -1  # the directory that it is to run in, if it may be no other
    group: Group | None = None
    group_at: int = -1

    def close(self) -> None:
        """What is needed until it is made."""
        for descriptor in (self.inside, self.group_at):
            if descriptor >= 0:
                os.close(descriptor)


class Preparing:
    def __init__(self, pump: Pump, pool: Pool) -> None:
        self.base = Words([])  # the environment that most jobs share
        self._pump = pump
        self._pool = pool
        self._null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)

    def all_of(self, rows: Rows) -> list[Ordered]:
        """As many of them as there are descriptors for, and at least one."""
        orders: list[Ordered] = []
        for row in rows:
            try:
                orders.append(self._order(*row))
            except (CannotLog, OSError) as exc:
                error = exc.errno or errno.EMFILE
                if orders and error in (errno.EMFILE, errno.ENFILE):
                    return orders
                is_log = isinstance(exc, CannotLog)
                orders.append(Ordered(Unmade(row[0], error), log_error=error if is_log else 0))
        return orders

    def _order(
        self,
        programs: Sequence[bytes],
        argv: Sequence[bytes],
        base: Sequence[bytes] | None,
        env: Sequence[bytes],
        cwd: bytes,
        inside: tuple[int, int] | None,
        between: tuple[Any, ...] | None,
        masks: Sequence[tuple[str, bytes]],
        log: bytes,
        head: bytes,
        is_first: bool,
        *_: Any,
    ) -> Ordered:
        words = self.base if base is None else Words(base)
        todo = None if between is None else Between(*between)
        user = None if todo is None or todo.user is None else todo.user[0]
        place, group = -1, self._group(todo)
        try:
            if inside is not None and todo is not None and user is not None:
                todo = todo._replace(inside=inside)  # by its own rights, and not by ours
            elif inside is not None:
                place = enter(cwd, inside)
                cwd = b"/proc/self/fd/%d" % place
            pipe, out = self._pump.open(os.fsdecode(log), head, masks, is_first=is_first, reader=user)
        except BaseException:
            Ordered(Unmade(programs, 0), inside=place, group_at=-1 if group is None else group.at).close()
            if group is not None:
                self._pool.give_back(group.group)
            raise
        grouped = None if group is None else _grouped(todo or Between(), group)
        descriptors = (self._null, out, out)
        making = Making(programs, argv, words, env, cwd=cwd, descriptors=descriptors, between=todo, grouped=grouped)
        if group is None:
            return Ordered(making, pipe, out, inside=place)
        return Ordered(making, pipe, out, inside=place, group=group.group, group_at=group.at)

    def _group(self, todo: Between | None) -> Opened | None:
        """None: there is none to be had, or only by a fork that nothing else calls for. Raises OSError for want of descriptors."""
        if todo is None and machine() is None:
            return None
        group = self._pool.take(self._pool.bounds(todo or Between()))
        return None if group is None else self._pool.open(group)


def _grouped(todo: Between, group: Opened) -> Between:
    """What the group sees to need not be seen to twice."""
    bounds = group.group.bounds
    seen_to = {resource.RLIMIT_AS: bounds.memory is not None, resource.RLIMIT_NPROC: bounds.processes is not None}
    limits = tuple(limit for limit in todo.limits if not seen_to.get(limit[0]))
    return todo._replace(limits=limits, group=group.at)
