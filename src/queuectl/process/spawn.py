"""Making processes for jobs, and knowing what becomes of them, through a keeper."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from queuectl import errors
from queuectl.jobs.outcome import Exited, Signalled
from queuectl.jobs.resources import ResourceReport, Usage
from queuectl.process import ending
from queuectl.process.between import Step
from queuectl.process.ledger import Footprint
from queuectl.process.libc import Words
from queuectl.process.orders import BASE, BURY, LEAVE, LIMIT, MAKE, STAYS, CannotLog
from queuectl.process.protocol import Begun, CannotSpawn, Order
from queuectl.process.raising import Raised, raise_keeper
from queuectl.process.table import Entry
from queuectl.process.watch import Child, Untold, Watch
from queuectl.process.why import places, why
from queuectl.process.wire import HungUp, Wire

LOOK_EVERY: Final = 0.02


class _End(NamedTuple):
    how: Exited | Signalled
    lasted: float
    log_to: int | None
    spent: ResourceReport


class SystemProcesses:
    """Through a keeper, which is their parent: see keeper.py. Those that were adopted have another one: see watch.py."""

    def __init__(self, left: Iterable[int] = (), *, raised: Raised | None = None) -> None:
        """`left`: keepers that this process has made before it began anew, and that nobody else will bury. `raised`: one that
        waits to be ours."""
        self._left = set(left)
        self._raised = raised
        self._wire: Wire | None = None
        self._keeper = 0
        self._base: Words | None = None  # as the keeper knows it
        self._orders: deque[Order] = deque()  # and not told yet what became of them
        self._begun: list[Begun] = []
        self._ended: dict[int, _End] = {}
        self._unseen: set[int] = set()  # whose end came in while we waited for something else
        self._to_bury: list[int] = []
        self._children = 0
        self._log_limit = 0
        self._watch = Watch()
        self._is_init = os.getpid() == 1
        # Of children that somebody else has made in this process: buries who has ended, and says who is left.
        self.bury_others: Callable[[], Collection[int]] = tuple

    def open(self, ledger: str, *, lock: int, environment: Mapping[str, str]) -> None:
        self._keeper, self._wire = self._raised or raise_keeper(ledger, environment)
        try:
            self._wire.hand_over(lock)
        except HungUp as exc:
            raise errors.SupervisorGone from exc
        self._watch.add(self._wire.fileno())

    def close(self) -> None:
        if self._wire is not None:
            # With nothing to look after it goes at once, and leaves nothing behind.
            if self._children or self._stays():
                self._left.add(self._keeper)
            else:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(self._keeper, 0)
            self._wire.close()
            self._wire = None
        self._watch.close()

    @property
    def left(self) -> Collection[int]:
        """Keepers of ours that go on, after `close` also the last one."""
        return self._left

    def fileno(self) -> int:
        return self._watch.fileno()

    def look_again(self) -> float | None:
        return 0.0 if self._unseen else LOOK_EVERY if self._watch.is_restless else None

    def limit_logs(self, limit: int) -> None:
        if limit != self._log_limit:
            self._log_limit = limit
            self._send(LIMIT, limit)

    def begin(self, orders: Sequence[Order]) -> None:
        rows = []
        for order in orders:
            shared = order.base is self._base or self._share(order.base)
            base = None if shared else list(order.base.words)
            argv, env, cwd, log = list(order.argv), list(order.env), order.cwd.encode(), os.fsencode(order.log)
            of_log = (log, order.head, order.is_first, order.ends_log)
            between = None if order.between is None else tuple(order.between)
            made_of = (order.inside, between, [tuple(mask) for mask in order.masks], *of_log)
            rows.append((list(places(order)), argv, base, env, cwd, *made_of, order.place, order.token))
        self._orders += orders
        self._send(MAKE, rows)

    def begun(self, *, wait: bool = False) -> Sequence[Begun]:
        while (wait and self._orders) or (self._wire is not None and self._wire.has_news):
            self._receive()
        found, self._begun = self._begun, []
        return found

    def peek(self, child: Child) -> Exited | Signalled | Untold | None:
        if child in self._watch:
            return self._watch.peek(child)
        self._unseen.discard(child.pid)
        end = self._ended.get(child.pid)
        return None if end is None else end.how

    def reap(self, child: Child) -> None:
        if child in self._watch:
            self._watch.forget(child)
        elif self._ended.pop(child.pid, None) is not None:
            self._children -= 1
            # Told with the next orders, or when there is nothing else to do: nothing waits for it.
            self._to_bury.append(child.pid)

    def rest(self) -> None:
        if self._to_bury:
            self._send(BURY, None)

    def adopt(self, child: Child, token: str, ledger: str) -> float:
        return self._watch.adopt(child, token, ledger)

    def lasted(self, child: Child) -> float | None:
        return self._watch.lasted(child) if child in self._watch else self._ended[child.pid].lasted

    def log_to(self, child: Child) -> int | None:
        return self._watch.log_to(child) if child in self._watch else self._ended[child.pid].log_to

    def spent(self, child: Child) -> ResourceReport:
        return self._watch.spent(child) if child in self._watch else self._ended[child.pid].spent

    def leave_ends(self, children: Collection[Child]) -> None:
        if ours := [child.pid for child in children if child not in self._watch]:
            self._send(LEAVE, ours)

    def families(self, runs: Mapping[str, Child]) -> dict[str, list[Entry]]:
        kept = {token: child.pid for token, child in runs.items() if child not in self._watch}
        adopted = {token: Footprint(*child, 0) for token, child in runs.items() if child in self._watch}
        found = ending.families(kept) if kept else {}
        for token, footprint in adopted.items():
            found[token] = ending.orphans({token: footprint})
        return found

    def send(self, number: int, to: Sequence[Entry]) -> None:
        ending.send(number, to)

    def kill_group(self, child: Child) -> None:
        if child in self._watch:
            ending.kill_groups({"": Footprint(*child, 0)})
        else:
            # Nobody is left, or only who has become root.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            ending.kill_control_group(child.pid)

    def reap_strays(self) -> None:
        theirs = self.bury_others()
        for pid in [*self._left]:
            try:
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            except ChildProcessError:  # it was none of ours
                pass
            self._left.discard(pid)
        while self._is_init:
            try:
                status = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if status is None or status.si_pid == self._keeper or status.si_pid in theirs:
                return
            os.waitpid(status.si_pid, 0)

    # ── the keeper ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _share(self, base: Words) -> bool:
        """The first environment that we see is that of most jobs."""
        if self._base is None:
            self._base = base
            self._send(BASE, list(base.words))
        return base is self._base

    def _stays(self) -> bool:
        """Whether the keeper goes on when we have hung up: somebody whom a job has left running may print."""
        assert self._wire is not None
        self._wire.hang_up()
        try:
            while STAYS not in self._wire.receive():
                pass
        except HungUp:
            return False
        return True

    def _send(self, order: int, what: object) -> None:
        assert self._wire is not None
        buried, self._to_bury = self._to_bury, []
        try:
            self._wire.send((order, what, buried))
        except HungUp as exc:
            raise errors.SupervisorGone from exc

    def _receive(self) -> None:
        assert self._wire is not None
        try:
            messages = self._wire.receive()
        except HungUp as exc:
            raise errors.SupervisorGone from exc
        for made, ended in messages:
            for pid, its_start, failures, step, at, log_from, log_error in made:
                order = self._orders.popleft()
                if log_error:
                    self._begun.append(Begun(CannotLog(OSError(log_error, os.strerror(log_error))), at, log_from))
                    continue
                child = CannotSpawn(why(order, failures, Step(step))) if failures else Child(pid, its_start)
                self._children += not failures
                self._begun.append(Begun(child, at, log_from))
            for pid, code, number, lasted, log_to, usage, out_of_memory in ended:
                how = Exited(code) if number is None else Signalled(number)
                spent = ResourceReport(None if usage is None else Usage(*usage), out_of_memory)
                self._ended[pid] = _End(how, lasted, log_to, spent)
                self._unseen.add(pid)


def forbid_inheritance() -> None:
    """Keep from our children whatever descriptors we were started with, but 0, 1 and 2."""
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        fd = int(name)
        if fd > 2:
            try:
                flags = fcntl.fcntl(fd, fcntl.F_GETFD)
                fcntl.fcntl(fd, fcntl.F_SETFD, flags | fcntl.FD_CLOEXEC)
            except OSError as exc:
                if exc.errno != errno.EBADF:  # the descriptor of the listing itself is closed by now
                    raise
