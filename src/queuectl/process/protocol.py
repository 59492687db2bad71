"""What the worker's loop asks of the operating system about processes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from queuectl.jobs.outcome import Exited, Signalled
from queuectl.jobs.resources import ResourceReport
from queuectl.process.between import Between
from queuectl.process.libc import Words
from queuectl.process.orders import CannotLog
from queuectl.process.table import Entry
from queuectl.process.watch import Child, Untold


class Order(NamedTuple):
    """A process that we want: `base` and `env` are its environment, as NAME=value; all it prints goes to the end of `log`,
    behind the line `head`."""

    argv: Sequence[bytes]
    cwd: str
    base: Words
    env: Sequence[bytes]
    log: str
    head: bytes
    is_first: bool  # what is in that log is of another job: away with it
    ends_log: bool  # if it ends by itself, its log says so when we hear of it; else that is ours to write
    place: int  # in the ledger, as what follows
    token: str
    program: bytes | None = None  # the file to run, whatever argv says; None: looked for by what that says
    masks: Sequence[tuple[str, bytes]] = ()  # secrets, by name, that are taken out of what it prints
    inside: tuple[int, int] | None = None  # device and inode of the directory that `cwd` has to lead to; None: any
    between: Between | None = None  # what it does to itself before it is the program; None: nothing, which is quicker


class CannotSpawn(Exception):
    """The process could not be made; the message says why, in words for the job's owner."""


class Begun(NamedTuple):
    """What became of an order, and when, by the monotonic clock; and where its output begins in its log."""

    child: Child | CannotSpawn | CannotLog
    at: float
    log_from: int


class Processes(Protocol):
    """Everything that the worker's loop asks of the operating system about processes. The simulator has its own."""

    def open(self, ledger: str, *, lock: int, environment: Mapping[str, str]) -> None:
        """Be ready to make some. What is made is written into the ledger; the lock stays taken as long as anything may still
        be made, whatever becomes of us."""
        ...

    def close(self) -> None:
        """Whatever runs goes on, and its end is written into the ledger."""
        ...

    def limit_logs(self, limit: int) -> None:
        """No log may take more than this many bytes, from now on. Of those that were adopted others see to it."""
        ...

    def begin(self, orders: Sequence[Order]) -> None:
        """Start programs, in this order, and do not wait for it; `begun` says what became of them."""
        ...

    def begun(self, *, wait: bool = False) -> Sequence[Begun]:
        """What became of the orders since, in their order; with `wait`, of all there are."""
        ...

    def fileno(self) -> int:
        """Becomes readable when something has begun or ended."""
        ...

    def look_again(self) -> float | None:
        """In how many seconds there is something to see of which `fileno` tells nothing; None: nothing known."""
        ...

    def peek(self, child: Child) -> Exited | Signalled | Untold | None:
        """How the child ended, None if it runs. Its pid stays its own until `reap`, unless it was adopted."""
        ...

    def reap(self, child: Child) -> None: ...

    def rest(self) -> None:
        """There is nothing to do for a while."""
        ...

    def adopt(self, child: Child, token: str, ledger: str) -> float:
        """Look after a child of a keeper whose worker is gone, who writes its end into that ledger. Returns how many
        seconds ago it began, also if it has ended since."""
        ...

    def lasted(self, child: Child) -> float | None:
        """How many seconds a child ran that has ended; None: nobody knows better than we."""
        ...

    def log_to(self, child: Child) -> int | None:
        """Where the output of a child that has ended by itself ends in its log; None: the line that says how is ours to write."""
        ...

    def spent(self, child: Child) -> ResourceReport:
        """What a child that has ended has used."""
        ...

    def leave_ends(self, children: Collection[Child]) -> None:
        """They are about to be ended: what their logs say about that is ours to write."""
        ...

    def families(self, runs: Mapping[str, Child]) -> dict[str, list[Entry]]:
        """By token, the living processes of the runs that these unreaped children lead."""
        ...

    def send(self, number: int, to: Sequence[Entry]) -> None: ...

    def kill_group(self, child: Child) -> None:
        """KILL to the whole group of an unreaped child, in one step: who forks faster than we look cannot escape it."""
        ...

    def reap_strays(self) -> None:
        """Bury the children of others that were left to us: as pid 1 nobody else will, nor what we left before we began anew."""
        ...
