"""What a worker has running, in a file of its own, so that whoever finds the worker dead can find its processes.

Two records of fixed length for each run, used again once its end is in the store: which process was made, by the keeper, and
whether it is being ended, by the worker; before them one of who the keeper is, behind them one of what the worker has claimed
and not begun. Not in the store, and not synced: it is written at every start of a process and only has to outlive the worker,
not the machine. After a reboot the numbers in it are those of other processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import islice
from typing import Final, NamedTuple

from queuectl.jobs.outcome import Exited, Signalled
from queuectl.jobs.resources import NO_REPORT, ResourceReport, Usage
from queuectl.process.table import boot

RECORD: Final = 224
BEHIND: Final = (
    4096  # records: of twice as many slots as a worker can have, since it may adopt. What is not used is a hole
)
# Where the tokens stand of what was not begun, and how much room they have: the last of those records.
UNBEGUN_AT: Final = BEHIND - 8
UNBEGUN_ROOM: Final = 8 * RECORD
MOST_UNBEGUN: Final = 48
LOST: Final = "lost"  # why a run is being ended that somebody has taken, or is about to take, from its worker
_NONE: Final = "-"


class Identity(NamedTuple):
    """A process, whatever has become of its number since."""

    pid: int
    started: int
    boot: str = ""  # and of whatever machine; empty: of this one, as far as anybody knows


class Finish(NamedTuple):
    """How a process ended, and when, in clock ticks since boot. `log_to`: where its output ends in its log, if the line that
    says so stands there already."""

    how: Exited | Signalled
    at: int
    log_to: int | None = None
    spent: ResourceReport = NO_REPORT


class Footprint(NamedTuple):
    """A process that was made for a run, and where its output begins in the log.

    `finish`: as the keeper wrote it, after the end of its worker only. `kept`: the name of the ledger in which that will
    stand, for a run that was adopted; None: in this one.
    """

    pid: int
    started: int
    log_from: int
    finish: Finish | None = None
    kept: str | None = None


class EndBegun(NamedTuple):
    """Somebody was about to end a run, and since when, in clock ticks since boot: how its process ended may be our doing."""

    why: str
    at: int


class Records(NamedTuple):
    keeper: Identity | None
    runs: dict[str, Footprint]  # by token
    endings: dict[str, list[EndBegun]]  # by token: who comes later does not take back what was begun before
    unbegun: frozenset[str] = frozenset()  # tokens of what was claimed, and never ordered
    closing: frozenset[str] = frozenset()  # tokens of runs whose log somebody else was about to close


class Ledger:
    """To write in. The first process of a worker makes it, its keeper joins."""

    def __init__(self, path: str, *, join: bool = False) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (0 if join else os.O_CREAT | os.O_TRUNC)
        self._fd = os.open(path, flags, 0o600)

    def sign(self, keeper: Identity) -> None:
        self._write(0, f"keeper {keeper.pid} {keeper.started} {keeper.boot or _NONE}")

    def write(self, place: int, token: str, footprint: Footprint) -> None:
        pid, started, log_from, finish, kept = footprint
        words = (token, pid, started, log_from, _shown(finish), kept or _NONE)
        self._write(2 * place + 1, " ".join(map(str, words)))

    def note_end(self, place: int, token: str, begun: EndBegun) -> None:
        self._write(2 * place + 2, _end_begun(token, begun))

    def added_ends(self) -> set[str]:
        """The tokens of runs that somebody else has begun to end, or whose log it closes, see `add_end` and `add_closing`. Asked for
        every run that ends: it costs one call to the kernel, as long as there are none."""
        more = os.fstat(self._fd).st_size - BEHIND * RECORD
        lines = os.pread(self._fd, more, BEHIND * RECORD).split(b"\n") if more > 0 else []
        return {
            line.split()[1].decode("ascii", "replace") for line in lines if line.startswith((b"ending ", b"closing "))
        }

    def note_unbegun(self, tokens: Iterable[str]) -> None:
        # As many as have room: of the others it is not known, and they count as begun.
        self._write(UNBEGUN_AT, " ".join(("unbegun", *islice(tokens, MOST_UNBEGUN))), room=UNBEGUN_ROOM)

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, place: int, record: str, *, room: int = RECORD) -> None:
        os.pwrite(self._fd, _padded(record, room), place * RECORD)


def add_end(path: str, tokens: Iterable[str], begun: EndBegun, *, create: bool) -> None:
    """As `Ledger.note_end`, by somebody else, who does not know the slots: behind all of them, of which a keeper may still write some."""
    _append(path, [_end_begun(token, begun) for token in tokens], create=create)


def add_closing(path: str, tokens: Iterable[str]) -> None:
    """By whoever is about to say in the logs of these runs that they are lost, before that is written in the store."""
    _append(path, [f"closing {token}" for token in tokens], create=False)


def _append(path: str, records: Iterable[str], *, create: bool) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o600)
    try:
        place = max(os.fstat(fd).st_size, BEHIND * RECORD)
        os.pwrite(fd, b"".join(map(_padded, records)), place)
    finally:
        os.close(fd)


def read_ledger(path: str) -> Records:
    """What the ledger says. Records of runs that are over are still there: ask by token only.

    Of one that was written before the machine was started anew only that is left which is not about processes.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return Records(None, {}, {})
    try:
        lines = os.pread(fd, os.fstat(fd).st_size, 0).split(b"\n")
    finally:
        os.close(fd)
    keeper, runs, unbegun, closing = None, {}, frozenset[str](), set[str]()
    endings: dict[str, list[EndBegun]] = {}
    for line in lines:
        # Slots that were never used are holes; a record that was cut by the end of its writer has too few words.
        match line.strip(b"\0 ").decode("ascii", "replace").split():
            case ["keeper", pid, started, *where]:  # of an earlier version: without
                keeper = Identity(int(pid), int(started), where[0] if where and where[0] != _NONE else "")
            case ["unbegun", *tokens]:
                unbegun = frozenset(tokens)
            case ["closing", token]:
                closing.add(token)
            case ["ending", token, why, at]:
                endings.setdefault(token, []).append(EndBegun(why, int(at)))
            case [token, pid, started, log_from, finish, kept]:
                kept_by = None if kept == _NONE else kept
                runs[token] = Footprint(int(pid), int(started), int(log_from), _read(finish), kept_by)
            case _:
                pass
    if keeper is not None and keeper.boot not in ("", boot()):
        return Records(None, {token: Footprint(0, 0, found.log_from) for token, found in runs.items()}, {})
    # The note of what has not begun may be an old one: a full disk keeps the next from being written.
    return Records(keeper, runs, endings, unbegun - runs.keys(), frozenset(closing))


def _padded(record: str, room: int = RECORD) -> bytes:
    return record.ljust(room - 1).encode() + b"\n"


def _end_begun(token: str, begun: EndBegun) -> str:
    return f"ending {token} {begun.why} {begun.at}"


def _shown(finish: Finish | None) -> str:
    if finish is None:
        return _NONE
    kind = "exit" if isinstance(finish.how, Exited) else "signal"
    log_to = _NONE if finish.log_to is None else finish.log_to
    return f"{kind}:{finish.how[0]}:{finish.at}:{log_to}:{_spent(finish.spent)}"


def _spent(spent: ResourceReport) -> str:
    numbers = "" if spent.usage is None else ",".join(map(str, spent.usage.known))
    return f"{int(spent.out_of_memory)},{numbers}"


def _read(word: str) -> Finish | None:
    match word.split(":"):  # keepers of earlier versions wrote three words, or four
        case ["exit", code, at, *rest]:
            return Finish(Exited(int(code)), int(at), _read_place(rest), _read_spent(rest))
        case ["signal", number, at, *rest]:
            return Finish(Signalled(int(number)), int(at), _read_place(rest), _read_spent(rest))
        case _:
            return None


def _read_spent(words: list[str]) -> ResourceReport:
    if len(words) < 2:
        return NO_REPORT
    out_of_memory, *numbers = words[1].split(",")
    usage = Usage(*map(int, numbers)) if len(numbers) >= len(Usage._fields) - 1 else None
    return ResourceReport(usage, out_of_memory == "1")


def _read_place(words: list[str]) -> int | None:
    return int(words[0]) if words and words[0] != _NONE else None
