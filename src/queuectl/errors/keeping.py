"""About files and whole stores: export, import, copy, backup; and about secrets of a host."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.errors import Conflict, NotFound, QueuectlError, Unavailable, UsageError


class FileExists(Conflict):
    code = "file-exists"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is a file {path} already", hint="name a new one: nothing is ever written over")


class FileUnwritable(Unavailable):
    code = "file-unwritable"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"cannot write {path}: {problem}", hint="check the directory, who may write there, and the disk"
        )


class StoreUnsupported(UsageError):
    """An address with the scheme of another kind of database."""

    code = "store-unsupported"

    def __init__(self, scheme: str) -> None:
        super().__init__(f"unsupported database {scheme}://", hint="use a path, sqlite:///PATH or postgresql://…")


class StoreNotFound(NotFound):
    code = "store-not-found"

    def __init__(self, address: str, *, hint: str = "check the address of --from; a store is never made there") -> None:
        super().__init__(f"there is no store at {address}", hint=hint)


class StoreNotEmpty(Conflict):
    code = "store-not-empty"

    def __init__(self, address: str) -> None:
        super().__init__(
            f"the store {address} has jobs, settings or history already",
            hint="name a new file, or a database without a store: two stores are never mixed",
        )


class SameStore(Conflict):
    code = "same-store"

    def __init__(self, address: str) -> None:
        super().__init__(f"--from and --to are the same store: {address}", hint="name another store for --to")


class JobsRunning(Conflict):
    code = "jobs-running"

    def __init__(self, address: str, jobs: int) -> None:
        super().__init__(
            f"{jobs:,} {'job runs' if jobs == 1 else 'jobs run'} in the store {address}",
            hint="let them end, or add --force: in the copy they wait again, and nothing is charged",
        )


class CopyDiffers(Unavailable):
    code = "copy-differs"

    def __init__(self, counts: Sequence[tuple[str, int, int]]) -> None:
        told = ", ".join(f"{what} {source:,} and {target:,}" for what, source, target in counts)
        super().__init__(f"the copy differs from its source: {told}", hint="nothing was copied; please report it")


class JobDiffers(Conflict):
    code = "job-differs"

    def __init__(self, job_id: str, field: str, *, where: str) -> None:
        super().__init__(
            f"{where}: there is another job {job_id!r} already: its {field} differs",
            hint=f"nothing was imported; look at it: queuectl show {job_id}",
        )


class RuleDiffers(Conflict):
    code = "rule-differs"

    def __init__(self, kind: str, name: str, field: str) -> None:
        look = (
            "queuectl queue list"
            if kind == "queue"
            else f"queuectl {'cron' if kind == 'schedule' else kind} show {name}"
        )
        super().__init__(
            f"there is another {kind} {name!r} already: its {field} differs",
            hint=f"nothing was imported; look at it: {look}",
        )


class InvalidRow(UsageError):
    """One row of a table of another tool is wrong, so nothing was imported."""

    code = "invalid-row"

    def __init__(self, number: int, cause: QueuectlError) -> None:
        super().__init__(f"row {number}: {cause.message}", hint=cause.hint)


class UnknownLayout(Unavailable):
    """A file that is whole, and that nobody here can read."""

    code = "unknown-layout"

    def __init__(
        self, path: str, problem: str, *, hint: str = "import reads what export wrote; see its --help"
    ) -> None:
        super().__init__(f"cannot import {path}: {problem}", hint=hint)


class SecretNotFound(NotFound):
    code = "secret-not-found"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is no secret {name!r} on this host",
            hint=f"queuectl secret set {name} there, as the user of its workers; queuectl secret list shows those there are",
        )


class SecretUnusable(Unavailable):
    """`name` is how the host knows it. Never holds any of what it is."""

    code = "secret-unusable"

    def __init__(self, name: str, problem: str, *, hint: str) -> None:
        super().__init__(f"the secret {name!r} cannot be used: {problem}", hint=hint)


class NotTrusted(Unavailable):
    """Another user owns the data directory or the database, or can write to it: they could have planted jobs in it."""

    code = "not-trusted"

    def __init__(self, path: str, problem: str, *, hint: str) -> None:
        super().__init__(f"{path} is not safe to use: {problem}", hint=f"{hint}, or trust it with --trust-home")
        self.path = path
