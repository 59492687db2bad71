"""Every error that queuectl raises on purpose.

    QueuectlError
    ├── UsageError             the words could never be right                     exit 2
    │   ├── InvalidInput       a value of a wrong type, range or form
    │   ├── InvalidJson        text that is not JSON, with the position
    │   ├── InvalidLine        one line of a batch, with its number
    │   ├── InvalidItem        one element of a JSON array, with its number
    │   ├── UnknownName        a field, key or state that does not exist
    │   └── NeedsConfirmation  a destructive command without --yes
    ├── NotFound               well said, but there is no such thing              exit 1
    │   ├── JobNotFound
    │   └── WorkerNotFound
    ├── Conflict               well said, but refused as things are               exit 1
    │   ├── AmbiguousId
    │   ├── DuplicateId
    │   ├── WrongState
    │   ├──         somebody was faster
    │   ├── WorkerNameTaken
    │   ├── WorkersAlive
    │   └── Refusals           several ids, some of them impossible
    ├── Unavailable            the store or the home cannot serve now             exit 1
    │   ├── HomeUnusable  FileUnreadable  OutputFailed
    │   ├── StoreBusy  StoreFull  StoreReadOnly  StoreFailed
    │   ├── StoreDamaged  StoreForeign  StoreTooNew  StoreGone
    │   ├── StoreUnreachable  StoreRefused  DriverMissing
    │   ├── SqliteTooOld  SystemUnsupported  StoreUnsupported  SystemRefused
    │   └── WorkerFailed       a detached worker that did not come up
    └── WaitTimeout            waited too long (also a TimeoutError)              exit 124

An error is built from facts and carries three things for whoever shows it: `code`, a stable slug for programs; the
message, one line of what; and `hint`, one line of what to do. The kind of an error (the branch of the tree) is all that
a surface needs to choose an exit status or an HTTP status: this module knows neither.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import ClassVar, Final


class QueuectlError(Exception):
    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "queuectl --help shows what is possible") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


# ── the words could never be right ──────────────────────────────────────────────────────────────────────────────────


class UsageError(QueuectlError):
    code = "usage"


class InvalidInput(UsageError):
    """A value of a wrong type, range or form; `subject` names the field, option or key it was given for."""

    code = "invalid-input"

    def __init__(self, subject: str, problem: str, *, hint: str) -> None:
        super().__init__(f"{subject}: {problem}", hint=hint)
        self.subject = subject
        self.problem = problem


class InvalidJson(UsageError):
    code = "invalid-json"


class InvalidLine(UsageError):
    """One line of a batch is wrong, so none of the batch was written."""

    code = "invalid-line"

    def __init__(self, number: int, cause: QueuectlError) -> None:
        super().__init__(f"line {number}: {cause.message}", hint=cause.hint)
        self.number = number
        self.cause = cause


class InvalidItem(UsageError):
    """One element of a JSON array is wrong, so none of the array was written."""

    code = "invalid-item"

    def __init__(self, number: int, cause: QueuectlError) -> None:
        super().__init__(f"item {number}: {cause.message}", hint=cause.hint)
        self.number = number
        self.cause = cause


class UnknownName(UsageError):
    """`what` is the class of thing ("field", "key", "state"), `nearest` the closest name that exists."""

    code = "unknown-name"

    def __init__(self, what: str, name: str, *, nearest: str | None, known: Sequence[str]) -> None:
        hint = f"did you mean {nearest!r}?" if nearest else f"known: {', '.join(known)}"
        super().__init__(f"unknown {what} {name!r}", hint=hint)
        self.name = name


class NeedsConfirmation(UsageError):
    code = "needs-confirmation"


# ── well said, but there is no such thing ───────────────────────────────────────────────────────────────────────────


class NotFound(QueuectlError):
    code = "not-found"


class JobNotFound(NotFound):
    code = "job-not-found"

    def __init__(self, ref: str) -> None:
        super().__init__(f"no job {ref!r}", hint="queuectl list shows the jobs there are")
        self.ref = ref


class WorkerNotFound(NotFound):
    code = "worker-not-found"

    def __init__(self, ref: str) -> None:
        super().__init__(f"no worker {ref!r}", hint="queuectl worker list shows the workers there are")
        self.ref = ref


# ── well said, but refused as things are ────────────────────────────────────────────────────────────────────────────


class Conflict(QueuectlError):
    code = "conflict"


class AmbiguousId(Conflict):
    code = "ambiguous-id"

    def __init__(self, ref: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{ref!r} is the beginning of several ids", hint=f"one of: {', '.join(candidates)}")
        self.ref = ref
        self.candidates = tuple(candidates)


class DuplicateId(Conflict):
    code = "duplicate-id"

    def __init__(self, job_id: str, *, where: str | None = None, twice: bool = False) -> None:
        """`where` in a batch it was found, "line 2"; `twice`: in the batch itself, whatever the store holds."""
        problem = f"the id {job_id!r} is twice in this batch" if twice else f"there is a job {job_id!r} already"
        look = f"choose another id, or look at it: queuectl show {job_id}"
        super().__init__(
            problem if where is None else f"{where}: {problem}",
            hint="give each job an id of its own, or leave it away" if twice else look,
        )
        self.job_id = job_id


class WrongState(Conflict):
    code = "wrong-state"

    def __init__(self, job_id: str, state: str, *, verb: str, hint: str, where: str = "") -> None:
        """`verb` is what cannot be done to it, `where` ("from the DLQ") comes behind."""
        super().__init__(f"job {job_id!r} is {state}: cannot {verb} it{where and ' ' + where}", hint=hint)
        self.job_id = job_id
        self.state = state


class WorkerNameTaken(Conflict):
    code = "worker-name-taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"a worker named {name!r} is running", hint="choose another --name, or stop that one first")


class WorkersAlive(Conflict):
    code = "workers-alive"

    def __init__(self, verb: str, names: Sequence[str], *, hint: str = "queuectl worker stop") -> None:
        super().__init__(f"cannot {verb} while workers run: {', '.join(names)}", hint=hint)


class Refusals(Conflict):
    """Several ids of one command, some of them impossible: what could be done was done."""

    code = "refused"

    def __init__(self, refused: Sequence[tuple[str, QueuectlError]]) -> None:
        first = "; ".join(error.message for _, error in refused[:5])
        super().__init__(f"{len(refused)} refused: {first}", hint="what could be done was done")
        self.refused = tuple(refused)


# ── the store or the home cannot serve now ──────────────────────────────────────────────────────────────────────────


class Unavailable(QueuectlError):
    code = "unavailable"


class HomeUnusable(Unavailable):
    code = "home-unusable"

    def __init__(self, path: str, problem: str, *, hint: str = "choose another with --home or QUEUECTL_HOME") -> None:
        super().__init__(f"cannot use {path} as the home: {problem}", hint=hint)


class FileUnreadable(Unavailable):
    code = "file-unreadable"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"cannot read {path}: {problem}", hint="check the name, or give - for stdin")


class OutputFailed(Unavailable):
    code = "output-failed"

    def __init__(self, problem: str, *, done: str | None = None) -> None:
        """`done`: what has happened all the same, and the output would have told."""
        told = f"; {done}" if done else ""
        super().__init__(f"cannot write the output: {problem}{told}", hint="check where it goes; what was done is done")
        self.problem = problem


class StoreBusy(Unavailable):
    code = "store-locked"

    def __init__(self, path: str, waited: float, *, hint: str = "find who holds it (fuser, lsof) or try again") -> None:
        super().__init__(f"the store {path} is locked by another program (waited {waited:.0f} s)", hint=hint)


class StoreFull(Unavailable):
    code = "store-full"

    def __init__(self, path: str) -> None:
        super().__init__(f"no space left for the store {path}", hint="free some disk space; nothing was changed")


class StoreReadOnly(Unavailable):
    code = "store-read-only"

    def __init__(self, path: str, *, hint: str = "check who owns it and how it is mounted") -> None:
        super().__init__(f"the store {path} cannot be written", hint=hint)


class StoreFailed(Unavailable):
    """The database refused for a reason that no other class names; the driver's words are kept."""

    code = "store-failed"

    def __init__(self, path: str, problem: str, *, hint: str = "check the disk, then try again") -> None:
        super().__init__(f"the store {path} failed: {problem}", hint=hint)


class StoreDamaged(Unavailable):
    code = "store-damaged"

    def __init__(self, path: str, problem: str, *, hint: str = "keep the file as it is, restore a backup") -> None:
        super().__init__(f"the store {path} is damaged: {problem}", hint=hint)


class StoreForeign(Unavailable):
    code = "store-foreign"

    def __init__(self, path: str) -> None:
        hint = "choose another place with --home or --db; if it was one, restore a backup"
        super().__init__(f"{path} is not a queuectl store", hint=hint)


class StoreTooNew(Unavailable):
    code = "store-too-new"

    def __init__(self, path: str, found: int, known: int) -> None:
        message = f"the store {path} has schema version {found}, this queuectl knows up to {known}"
        super().__init__(message, hint="upgrade queuectl; nothing was changed")


class StoreGone(Unavailable):
    code = "store-gone"

    def __init__(self, path: str, *, worker: str | None = None) -> None:
        under = f" while worker {worker} serves it" if worker else ""
        super().__init__(
            f"the store {path} was removed or replaced{under}",
            hint="put it back; an empty one is never made in its place",
        )


class StoreUnreachable(Unavailable):
    """A server that does not answer, or has stopped to. `path` is the address without its password.

    `in_doubt`: something was to be written, and whether it was is not known.
    """

    code = "store-unreachable"

    def __init__(
        self, path: str, problem: str, *, hint: str = "is PostgreSQL running there? try again", in_doubt: bool = False
    ) -> None:
        super().__init__(f"cannot reach the store {path}: {problem}", hint=hint)
        self.path = path
        self.problem = problem
        self.in_doubt = in_doubt


class StoreRefused(Unavailable):
    """The server answers, and does not let us in or do what is needed."""

    code = "store-refused"

    def __init__(
        self, path: str, problem: str, *, hint: str = "check user, password and database of the address"
    ) -> None:
        super().__init__(f"the store {path} refuses: {problem}", hint=hint)


class DriverMissing(Unavailable):
    code = "driver-missing"

    def __init__(self, store: str, extra: str) -> None:
        command = f"pip install 'queuectl[{extra}]'"
        super().__init__(f"the driver for {store} is not installed", hint=f"install it: {command}")


class StoreUnsupported(Unavailable):
    code = "store-unsupported"

    def __init__(self, scheme: str) -> None:
        super().__init__(
            f"this queuectl cannot use a {scheme} store", hint="give a path, sqlite:///path or postgresql://…"
        )


class SqliteTooOld(Unavailable):
    code = "sqlite-too-old"

    def __init__(self, found: str, needed: str) -> None:
        super().__init__(
            f"SQLite {found} found, {needed} or newer needed", hint="use a Python that comes with a newer SQLite"
        )


class SystemUnsupported(Unavailable):
    code = "system-unsupported"

    def __init__(self, problem: str) -> None:
        super().__init__(f"workers cannot run on this system: {problem}", hint="run them on Linux")


class SystemRefused(Unavailable):
    code = "system-refused"

    def __init__(self, exc: OSError) -> None:
        words = f"{exc.filename or 'the system refuses'}: {exc.strerror or exc}"
        super().__init__(words, hint=WANTS.get(exc.errno or 0, "put that right, then try again"))


# What a machine may run out of, without any mistake of ours, and what helps.
WANTS: Final = {
    errno.EMFILE: "let it have more files open: ulimit -n 1024",
    errno.ENFILE: "end what has so many files open on this machine",
    errno.ENOSPC: "free some disk space",
    errno.EROFS: "check how it is mounted",
}


class KeeperGone(Unavailable):
    code = "keeper-gone"

    def __init__(self, problem: str = "it is gone") -> None:
        hint = "start the worker again, it sees to its jobs; for want of memory or processes, with fewer slots"
        super().__init__(f"the process that keeps jobs for this worker: {problem}", hint=hint)


class WorkerFailed(Unavailable):
    """A detached worker did not come up; code and message are what it said itself."""

    code = "worker-failed"

    def __init__(self, message: str, *, hint: str, code: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code or self.code  # type: ignore[misc] # of the class, but here it is another's


# ── waited too long ─────────────────────────────────────────────────────────────────────────────────────────────────


class WaitTimeout(QueuectlError, TimeoutError):
    code = "wait-timeout"

    def __init__(self, waiting: Sequence[str], seconds: float) -> None:
        named = ", ".join(waiting[:5]) + (f" and {len(waiting) - 5:,} more" if len(waiting) > 5 else "")
        super().__init__(f"still not ended after {seconds:g} s: {named}", hint="the jobs go on; wait again to go on")
        self.waiting = tuple(waiting)
