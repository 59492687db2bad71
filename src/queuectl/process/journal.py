"""The journal of a worker: which processes it runs, for the worker or command that finds it dead.

A text file of records with a fixed length. The supervisor writes the first process of each run before and after it starts it, and how it
ended; the worker writes which runs it terminates. Another worker that takes runs over appends behind all of them. Not in the database and not
synced: it only has to outlive the worker, not the host.

Nothing starts without its record: a claim that is not in here was not started.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, NamedTuple

from queuectl.jobs.outcome import Exited, Signalled
from queuectl.jobs.resources import NO_REPORT, ResourceReport, Usage
from queuectl.process.model import Identity
from queuectl.process.system import system

RECORD_BYTES: Final = 384
APPENDED_FROM: Final = 4096  # records: twice as many as slots, since a worker may adopt. Unused ones are holes
LOST: Final = "lost"  # the reason why a run is terminated that was taken from its worker
_NONE: Final = "-"


class Exit(NamedTuple):
    """How and when a process ended, in clock ticks. `log_from` and `log_to`: its output in the log, None if it has printed nothing or the
    END marker could not be written. `reason`: why it was terminated; None: it ended by itself."""

    how: Exited | Signalled
    at: int
    log_from: int | None = None
    log_to: int | None = None
    report: ResourceReport = NO_REPORT
    reason: str | None = None


class Record(NamedTuple):
    """The first process of a run. `pid` is 0 while it is being started. `journal`: the file name of the journal that its supervisor
    writes, for an adopted run; None: this one."""

    pid: int
    started: int
    log_from: int | None = None
    exit: Exit | None = None
    journal: str | None = None

    @property
    def is_starting(self) -> bool:
        return not self.pid


class Termination(NamedTuple):
    """Why a run is being terminated, and since when, in clock ticks: its exit may be our doing."""

    reason: str
    at: int


class Entries(NamedTuple):
    """What a journal says, by token."""

    supervisor: Identity | None = None
    runs: dict[str, Record] = {}  # noqa: RUF012 - never changed
    terminations: dict[str, list[Termination]] = {}  # noqa: RUF012 - the first reason counts
    closed: frozenset[str] = frozenset()  # another process writes the END marker of these

    def may_have_begun(self, token: str) -> bool:
        """Whether a run may have been started. Without the signature of its supervisor, the journal may be missing, or of an earlier boot."""
        return self.supervisor is None or token in self.runs


class Journal:
    """For writing. The worker creates it, its supervisor opens it as well. Everything raises OSError."""

    def __init__(self, path: str, *, create: bool = True) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT | os.O_TRUNC if create else 0)
        self._fd = os.open(path, flags, 0o600)

    def sign(self, supervisor: Identity) -> None:
        self._write(0, f"supervisor {supervisor.pid} {supervisor.started} {supervisor.boot or _NONE}")

    def write(self, place: int, token: str, record: Record) -> None:
        pid, started, log_from, ended, journal = record
        text = f"{token} {pid} {started} {_number(log_from)} {_format_exit(ended)} {journal or _NONE}"
        self._write(2 * place + 1, text)

    def clear(self, place: int) -> None:
        """The run was not started."""
        self._write(2 * place + 1, "")

    def write_termination(self, place: int, token: str, termination: Termination) -> None:
        self._write(2 * place + 2, _format_termination(token, termination))

    def begun(self) -> set[str]:
        """The tokens of the runs that a supervisor has started, or was about to start."""
        return set(_parse(os.pread(self._fd, os.fstat(self._fd).st_size, 0).split(b"\n")).runs)

    def appended(self) -> tuple[dict[str, str], set[str]]:
        """What other processes have appended: by token, why they terminate runs, and the runs whose END marker they write. Read at every
        exit: it costs one system call as long as there is nothing."""
        size = os.fstat(self._fd).st_size - APPENDED_FROM * RECORD_BYTES
        if size <= 0:
            return {}, set()
        entries = _parse(os.pread(self._fd, size, APPENDED_FROM * RECORD_BYTES).split(b"\n"))
        return {token: all_[0].reason for token, all_ in entries.terminations.items()}, set(entries.closed)

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, place: int, record: str) -> None:
        os.pwrite(self._fd, _padded(record), place * RECORD_BYTES)


def append_terminations(path: str, tokens: Iterable[str], termination: Termination, *, create: bool) -> None:
    """Like `Journal.write_termination`, by another worker, which does not know the places."""
    _append(path, [_format_termination(token, termination) for token in tokens], create=create)


def append_closed(path: str, tokens: Iterable[str]) -> None:
    """Tell the supervisor, which may be frozen, that we write the END markers of these runs."""
    _append(path, [f"closed {token}" for token in tokens], create=False)


def _append(path: str, records: Iterable[str], *, create: bool) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0), 0o600)
    try:
        place = max(os.fstat(fd).st_size, APPENDED_FROM * RECORD_BYTES)
        os.pwrite(fd, b"".join(map(_padded, records)), place)
    finally:
        os.close(fd)


def read_journal(path: str) -> Entries:
    """Records of recorded runs are still there: look up by token only.

    If it was written before the last boot, only what is not about processes is returned.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return Entries()
    try:
        lines = os.pread(fd, os.fstat(fd).st_size, 0).split(b"\n")
    finally:
        os.close(fd)
    entries = _parse(lines)
    if entries.supervisor is not None and entries.supervisor.boot not in ("", system.boot_id()):
        return Entries(runs={token: Record(0, 0, found.log_from) for token, found in entries.runs.items()})
    return entries


def _parse(lines: Iterable[bytes]) -> Entries:
    supervisor = None
    runs: dict[str, Record] = {}
    terminations: dict[str, list[Termination]] = {}
    closed: set[str] = set()
    for line in lines:
        # Unused records are holes.
        match line.strip(b"\0 ").decode("ascii", "replace").split():
            case ["supervisor", pid, started, boot]:
                supervisor = Identity(int(pid), int(started), "" if boot == _NONE else boot)
            case ["closed", token]:
                closed.add(token)
            case ["terminating", token, reason, at]:
                terminations.setdefault(token, []).append(Termination(reason, int(at)))
            case [token, pid, started, log_from, ended, journal]:
                place = _parse_number(log_from)
                kept = None if journal == _NONE else journal
                runs[token] = Record(int(pid), int(started), place, _parse_exit(ended), kept)
            case _:
                pass
    return Entries(supervisor, runs, terminations, frozenset(closed))


def _padded(record: str) -> bytes:
    return record.ljust(RECORD_BYTES - 1).encode() + b"\n"


def _format_termination(token: str, termination: Termination) -> str:
    return f"terminating {token} {termination.reason} {termination.at}"


def _format_exit(ended: Exit | None) -> str:
    if ended is None:
        return _NONE
    kind = "exit" if isinstance(ended.how, Exited) else "signal"
    usage = "" if ended.report.usage is None else ",".join(map(str, ended.report.usage.known))
    report = f"{int(ended.report.out_of_memory)},{usage}"
    places = f"{_number(ended.log_from)}:{_number(ended.log_to)}"
    return f"{kind}:{ended.how[0]}:{ended.at}:{places}:{report}:{ended.reason or _NONE}"


def _parse_exit(word: str) -> Exit | None:
    match word.split(":"):
        case [("exit" | "signal") as kind, code, at, log_from, log_to, report, reason]:
            how = Exited(int(code)) if kind == "exit" else Signalled(int(code))
            why = None if reason == _NONE else reason
            return Exit(how, int(at), _parse_number(log_from), _parse_number(log_to), _parse_report(report), why)
        case _:
            return None


def _parse_report(text: str) -> ResourceReport:
    out_of_memory, *numbers = text.split(",")
    usage = Usage(*map(int, numbers)) if len(numbers) >= len(Usage._fields) - 1 else None
    return ResourceReport(usage, out_of_memory == "1")


def _number(value: int | None) -> str:
    return _NONE if value is None else str(value)


def _parse_number(word: str) -> int | None:
    return None if word == _NONE else int(word)
