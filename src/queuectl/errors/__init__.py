"""Every error that queuectl raises on purpose.

    QueuectlError
    ├── UsageError             the input is invalid                               exit 2
    │   ├── InvalidInput       a value of the wrong type, range or form
    │   ├── InvalidJson        text that is not JSON, with the position
    │   ├── InvalidLine        one line of a batch, with its number
    │   ├── InvalidItem        one element of a JSON array, with its number
    │   ├── InvalidRow         one row of a table of another tool, with its number
    │   ├── UnknownName        a field, key or state that does not exist
    │   ├── StoreUnsupported   an address of another kind of database
    │   └── NeedsConfirmation  a destructive command without --yes
    ├── NotFound               the object does not exist                          exit 1
    │   └── JobNotFound  WorkerNotFound  BatchNotFound  ScheduleNotFound  ParentNotFound  StoreNotFound  SecretNotFound
    ├── Conflict               rejected because of the current state              exit 1
    │   ├── AmbiguousId  DuplicateId  WrongState  KeyTaken
    │   ├── StaleEdit          the job changed after it was shown
    │   ├── KeyReused          another request had the same idempotency key
    │   ├── BatchComplete  BatchDiffers  ParentEnded  ScheduleExists  NotMovable
    │   ├── WorkerNameTaken  WorkersAlive
    │   ├── FileExists  StoreNotEmpty  SameStore  JobsRunning  JobDiffers  RuleDiffers
    │   └── Refusals           several IDs, some of which were refused
    ├── Unavailable            the database, the data directory or the host fails exit 1
    │   ├── HomeUnusable  NotTrusted  FileUnreadable  FileUnwritable  OutputFailed  UnknownLayout
    │   ├── StoreBusy  StoreFull  StoreReadOnly  StoreFailed
    │   ├── StoreDamaged  StoreForeign  StoreTooNew  StoreGone  CopyDiffers
    │   ├── StoreUnreachable  StoreRefused  DriverMissing  ExtraMissing  CannotListen
    │   ├── SqliteTooOld  SystemUnsupported  SystemRefused  TooManySlots  ZonesMissing
    │   ├── CallRefused  CallUnanswered   of a webhook
    │   ├── ServiceManagerMissing  ServiceFailed
    │   ├── PolicyUnusable     not trusted, or missing
    │   ├── SecretUnusable     readable by others, or without a value
    │   ├── SupervisorGone         the supervisor of a worker ended
    │   └── WorkerFailed       a detached worker did not start
    └── WaitTimeout            a wait timed out (also a TimeoutError)             exit 124

An error is built from facts and has a `code` (a stable slug for programs), a message (one line) and a `hint` (one line, what to do).
The branch of the tree determines the exit code and the HTTP status; this package knows neither.

The branches and the errors of most commands are defined here; the others are loaded on first use, since `enqueue` needs few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from queuectl.errors.jobs import *  # noqa: F403 # for type checkers; at run time __getattr__ finds them
    from queuectl.errors.store import *  # noqa: F403


class QueuectlError(Exception):
    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str = "queuectl --help shows what is possible") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


# ── invalid input ───────────────────────────────────────────────────────────────────────────────────────────────────


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
        shown = name if len(name) <= 200 else f"{name[:199]}…"  # may be a whole file
        super().__init__(f"unknown {what} {shown!r}", hint=hint)
        self.name = name


class NeedsConfirmation(UsageError):
    code = "needs-confirmation"


# ── not found ──────────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── conflicts ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Conflict(QueuectlError):
    code = "conflict"


class AmbiguousId(Conflict):
    code = "ambiguous-id"

    def __init__(self, ref: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{ref!r} is ambiguous", hint=f"one of: {', '.join(candidates)}")
        self.ref = ref
        self.candidates = tuple(candidates)


class DuplicateId(Conflict):
    code = "duplicate-id"

    def __init__(self, job_id: str, *, where: str | None = None, twice: bool = False) -> None:
        """`where`: the location in a batch, "line 2"; `twice`: two jobs of the batch have the ID."""
        problem = f"the id {job_id!r} is twice in this batch" if twice else f"there is a job {job_id!r} already"
        look = f"choose another id, or look at it: queuectl show {job_id}"
        super().__init__(
            problem if where is None else f"{where}: {problem}",
            hint="give each job an id of its own, or omit it" if twice else look,
        )
        self.job_id = job_id


class WrongState(Conflict):
    code = "wrong-state"

    def __init__(self, job_id: str, state: str, *, verb: str, hint: str, where: str = "") -> None:
        """`verb`: the refused action; `where`: a suffix of the message ("from the DLQ")."""
        super().__init__(f"job {job_id!r} is {state}: cannot {verb} it{where and ' ' + where}", hint=hint)
        self.job_id = job_id
        self.state = state


class KeyTaken(Conflict):
    """Another job has the unique key. `place`: the index of the new job in its batch."""

    code = "key-taken"

    def __init__(self, key: str, holder: str, state: str, *, hint: str, where: str = "", place: int = 0) -> None:
        problem = f"the key {key!r} is taken by the job {holder!r}, which is {state}"
        super().__init__(f"{where}: {problem}" if where else problem, hint=hint)
        self.key, self.holder, self.state, self.place = key, holder, state, place


class WorkerNameTaken(Conflict):
    code = "worker-name-taken"

    def __init__(self, name: str) -> None:
        super().__init__(f"a worker named {name!r} is running", hint="choose another --name, or stop that one first")


class WorkersAlive(Conflict):
    code = "workers-alive"

    def __init__(self, verb: str, names: Sequence[str], *, hint: str = "queuectl worker stop") -> None:
        super().__init__(f"cannot {verb} while workers run: {', '.join(names)}", hint=hint)


class Refusals(Conflict):
    """Some IDs of a command were refused; the action was applied to the others."""

    code = "refused"

    def __init__(self, refused: Sequence[tuple[str, QueuectlError]]) -> None:
        first = "; ".join(error.message for _, error in refused[:5])
        super().__init__(f"{len(refused)} refused: {first}", hint="the action was applied to the others")
        self.refused = tuple(refused)


# ── unavailable ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Unavailable(QueuectlError):
    code = "unavailable"


# ── timeouts ───────────────────────────────────────────────────────────────────────────────────────────────────────


class WaitTimeout(QueuectlError, TimeoutError):
    code = "wait-timeout"

    def __init__(self, waiting: Sequence[str], seconds: float) -> None:
        named = ", ".join(waiting[:5]) + (f" and {len(waiting) - 5:,} more" if len(waiting) > 5 else "")
        super().__init__(
            f"still not ended after {seconds:g} s: {named}", hint="the jobs are still running; run wait again"
        )
        self.waiting = tuple(waiting)


# ── loaded on first use ─────────────────────────────────────────────────────────────────────────────────────────────

_LAZY_MODULES: Final = ("store", "jobs")


def __getattr__(name: str) -> object:
    from importlib import import_module

    for module in _LAZY_MODULES if not name.startswith("_") else ():
        if found := vars(import_module(f"queuectl.errors.{module}")).get(name):
            globals()[name] = found  # so that this function is called once for each name
            return found
    raise AttributeError(f"module 'queuectl.errors' has no attribute {name!r}")
