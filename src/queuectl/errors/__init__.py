"""Every error that queuectl raises on purpose.

    QueuectlError
    ├── UsageError    the input is invalid                                exit 2
    ├── NotFound      the object does not exist                           exit 1
    ├── Conflict      rejected because of the current state               exit 1
    ├── Unavailable   the database, the data directory or the host fails  exit 1
    └── WaitTimeout   a wait timed out (also a TimeoutError)              exit 124

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
    """`template` and `default_hint` are format strings for the facts, in the order in which they are given."""

    code: ClassVar[str] = "error"
    template: ClassVar[str] = "{}"
    default_hint: ClassVar[str] = "see queuectl --help"

    def __init__(self, *facts: object, hint: str | None = None) -> None:
        self.message = self.template.format(*facts)
        self.hint = self.default_hint.format(*facts) if hint is None else hint
        super().__init__(self.message)


# ── invalid input ───────────────────────────────────────────────────────────────────────────────────────────────────


class UsageError(QueuectlError):
    code = "usage"


class InvalidInput(UsageError):
    """A value of a wrong type, range or form; `subject` names the field, option or key it was given for."""

    code = "invalid-input"
    template = "{}: {}"

    def __init__(self, subject: str, problem: str, *, hint: str) -> None:
        super().__init__(subject, problem, hint=hint)
        self.subject = subject
        self.problem = problem


class InvalidJson(UsageError):
    code = "invalid-json"


class _InvalidPart(UsageError):
    """One part of a batch is wrong, so none of the batch was written."""

    def __init__(self, number: int, cause: QueuectlError) -> None:
        super().__init__(number, cause.message, hint=cause.hint)
        self.number = number
        self.cause = cause


class InvalidLine(_InvalidPart):
    code = "invalid-line"
    template = "line {}: {}"


class InvalidItem(_InvalidPart):
    """An element of a JSON array."""

    code = "invalid-item"
    template = "item {}: {}"


class InvalidRow(_InvalidPart):
    """A row of a table of another tool."""

    code = "invalid-row"
    template = "row {}: {}"


class UnknownName(UsageError):
    """`what` is the class of thing ("field", "key", "state"). The hint is the most similar name."""

    code = "unknown-name"
    template = "unknown {} {!r}"

    def __init__(self, what: str, name: str, *, nearest: str | None, known: Sequence[str]) -> None:
        hint = f"did you mean {nearest!r}?" if nearest else f"known: {', '.join(known)}"
        shown = name if len(name) <= 200 else f"{name[:199]}…"  # may be a whole file
        super().__init__(what, shown, hint=hint)
        self.name = name


class NeedsConfirmation(UsageError):
    code = "needs-confirmation"


# ── not found ──────────────────────────────────────────────────────────────────────────────────────────────────────


class NotFound(QueuectlError):
    code = "not-found"


class JobNotFound(NotFound):
    code = "job-not-found"
    template = "no job {!r}"
    default_hint = "see all jobs: queuectl list"


class WorkerNotFound(NotFound):
    code = "worker-not-found"
    template = "no worker {!r}"
    default_hint = "see all workers: queuectl worker list"


# ── conflicts ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Conflict(QueuectlError):
    code = "conflict"


class AmbiguousId(Conflict):
    code = "ambiguous-id"
    template = "{!r} is ambiguous"

    def __init__(self, ref: str, candidates: Sequence[str]) -> None:
        super().__init__(ref, hint=f"one of: {', '.join(candidates)}")
        self.candidates = tuple(candidates)


class DuplicateId(Conflict):
    code = "duplicate-id"

    def __init__(self, job_id: str, *, where: str | None = None, twice: bool = False) -> None:
        """`where`: the location in a batch, "line 2"; `twice`: two jobs of the batch have the ID."""
        problem = f"the id {job_id!r} is twice in this batch" if twice else f"there is a job {job_id!r} already"
        hint = f"choose another id, or see: queuectl show {job_id}"
        super().__init__(
            problem if where is None else f"{where}: {problem}",
            hint="give each job an id of its own, or omit it" if twice else hint,
        )
        self.job_id = job_id


class WrongState(Conflict):
    code = "wrong-state"
    template = "job {!r} is {}: cannot {} it{}"

    def __init__(self, job_id: str, state: str, *, verb: str, hint: str, where: str = "") -> None:
        """`verb`: the refused action; `where`: a suffix of the message ("from the DLQ")."""
        super().__init__(job_id, state, verb, where and " " + where, hint=hint)
        self.job_id = job_id
        self.state = state


class KeyTaken(Conflict):
    """Another job has the unique key. `place`: the index of the new job in its batch."""

    code = "key-taken"
    template = "{}the key {!r} is taken by the job {!r}, which is {}"

    def __init__(self, key: str, holder: str, state: str, *, hint: str, where: str = "", place: int = 0) -> None:
        super().__init__(where and f"{where}: ", key, holder, state, hint=hint)
        self.key, self.holder, self.state, self.place = key, holder, state, place


class WorkerNameTaken(Conflict):
    code = "worker-name-taken"
    template = "a worker named {!r} is running"
    default_hint = "choose another --name, or stop that one first"


class WorkersAlive(Conflict):
    code = "workers-alive"
    template = "cannot {} while workers run: {}"
    default_hint = "queuectl worker stop"

    def __init__(self, verb: str, names: Sequence[str], *, hint: str | None = None) -> None:
        super().__init__(verb, ", ".join(names), hint=hint)


class Refusals(Conflict):
    """Some IDs of a command were refused; the action was applied to the others."""

    code = "refused"
    template = "{} refused: {}"
    default_hint = "the action was applied to the others"

    def __init__(self, refused: Sequence[tuple[str, QueuectlError]]) -> None:
        super().__init__(len(refused), "; ".join(error.message for _, error in refused[:5]))
        self.refused = tuple(refused)


# ── unavailable ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Unavailable(QueuectlError):
    code = "unavailable"


# ── timeouts ───────────────────────────────────────────────────────────────────────────────────────────────────────


class WaitTimeout(QueuectlError, TimeoutError):
    code = "wait-timeout"
    template = "still not ended after {:g} s: {}"
    default_hint = "the jobs are still running; run wait again"

    def __init__(self, waiting: Sequence[str], seconds: float) -> None:
        more = f" and {len(waiting) - 5:,} more" if len(waiting) > 5 else ""
        super().__init__(seconds, ", ".join(waiting[:5]) + more)
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
