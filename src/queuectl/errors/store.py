"""Errors of the database, the data directory, the host and its services."""

from __future__ import annotations

import errno
from typing import Final

from queuectl.errors import Unavailable

# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class HomeUnusable(Unavailable):
    code = "home-unusable"
    template = "cannot use {} as the data directory: {}"
    default_hint = "choose another directory with --home or QUEUECTL_HOME"


class NotTrusted(Unavailable):
    """Another user owns the data directory or the database, or can write to it: they could have planted jobs in it."""

    code = "not-trusted"
    template = "{} is not safe to use: {}"

    def __init__(self, path: str, problem: str, *, hint: str) -> None:
        super().__init__(path, problem, hint=f"{hint}, or trust it with --trust-home")


class FileUnreadable(Unavailable):
    code = "file-unreadable"
    template = "cannot read {}: {}"
    default_hint = "check its name and permissions"

    def __init__(self, path: str, problem: str, *, or_stdin: bool = False) -> None:
        """`or_stdin`: whether - is accepted for stdin."""
        super().__init__(path, problem, hint="check the name, or give - for stdin" if or_stdin else None)


class OutputFailed(Unavailable):
    code = "output-failed"
    template = "cannot write the output: {}{}"
    default_hint = "check where it goes; completed changes are kept"

    def __init__(self, problem: str, *, done: str | None = None) -> None:
        """`done`: the result that the output would have shown."""
        super().__init__(problem, f"; {done}" if done else "")
        self.problem = problem


# ── the database ────────────────────────────────────────────────────────────────────────────────────────────────────


class StoreBusy(Unavailable):
    code = "store-locked"
    template = "the database {} is locked by another program{}"
    default_hint = "find the process that uses it (fuser, lsof), or try again"

    def __init__(self, path: str, waited: float, *, hint: str | None = None) -> None:
        super().__init__(path, f" (waited {waited:.0f} s)" if waited >= 1 else "", hint=hint)  # unknown for a server


class StoreFull(Unavailable):
    code = "store-full"
    template = "no space left for the database {}"
    default_hint = "free some disk space; nothing was changed"


class StoreReadOnly(Unavailable):
    code = "store-read-only"
    template = "the database {} cannot be written"
    default_hint = "check who owns it and how it is mounted"


class StoreFailed(Unavailable):
    """An error of the database without a class of its own, with the message of the driver."""

    code = "store-failed"
    template = "the database {} failed: {}"
    default_hint = "check the disk, then try again"


class StoreDamaged(Unavailable):
    code = "store-damaged"
    template = "the database {} is damaged: {}"
    default_hint = "keep the file unchanged, and restore a backup"
    # An empty file may never have been a database.
    IF_EMPTY: Final = "restore a backup; if it never was a queuectl database, remove it"


class StoreForeign(Unavailable):
    code = "store-foreign"
    template = "{} is not a queuectl database"
    default_hint = "choose another database with --home or --db; if it was one of queuectl, restore a backup"


class StoreTooNew(Unavailable):
    code = "store-too-new"
    template = "the database {} has schema version {}, this queuectl knows up to {}"
    default_hint = "upgrade queuectl; nothing was changed"


class StoreGone(Unavailable):
    code = "store-gone"
    template = "the database {} was removed or replaced{}"
    default_hint = "restore it; queuectl never creates a new one in its place"

    def __init__(self, path: str, *, worker: str | None = None) -> None:
        super().__init__(path, f" while worker {worker} serves it" if worker else "")


class StoreUnreachable(Unavailable):
    """The server does not respond, or no longer does. `path` is the address without its password.

    `in_doubt`: a write was in progress, and it is unknown whether it was committed.
    """

    code = "store-unreachable"
    template = "cannot reach the database {}: {}"
    default_hint = "is PostgreSQL running there? try again"

    def __init__(self, path: str, problem: str, *, hint: str | None = None, in_doubt: bool = False) -> None:
        super().__init__(path, problem, hint=hint)
        self.path, self.problem, self.in_doubt = path, problem, in_doubt


class StoreRefused(Unavailable):
    """The server responds, but rejects the connection or lacks a permission."""

    code = "store-refused"
    template = "the database {} refuses: {}"
    default_hint = "check user, password and database of the address"


class DriverMissing(Unavailable):
    code = "driver-missing"
    template = "the driver for {} is not installed"
    default_hint = "install it: {1}"


class SqliteTooOld(Unavailable):
    code = "sqlite-too-old"
    template = "SQLite {} found, {} or newer needed"
    default_hint = "use a Python that comes with a newer SQLite"


# ── webhooks and alerts ─────────────────────────────────────────────────────────────────────────────────────────────


class WebhookRefused(Unavailable):
    """A webhook URL that is not allowed. Its host is the only part that is not secret."""

    code = "call-refused"
    template = "{} is not called: {}"


class WebhookUnanswered(Unavailable):
    code = "call-unanswered"
    template = "{}: {}"
    default_hint = "check that the server listens there and responds with 2xx; the delivery is retried"


class CommandFailed(Unavailable):
    """The command of an alert failed."""

    code = "command-failed"
    template = "the command of {}: {}"
    default_hint = "run it by hand; it is retried until it exits with 0"


# ── the host and its services ───────────────────────────────────────────────────────────────────────────────────────


class ExtraMissing(Unavailable):
    code = "extra-missing"
    template = "{} needs packages that are not installed"
    default_hint = "install them: {1}"


class CannotListen(Unavailable):
    code = "cannot-listen"
    template = "cannot listen on {}: {}"
    default_hint = "choose another port; --port 0 takes one that is free"


class SystemUnsupported(Unavailable):
    code = "system-unsupported"
    template = "workers cannot run on this system: {}"
    default_hint = "run them on Linux"


class TooManySlots(Unavailable):
    code = "too-many-slots"
    template = "the limit of open files allows a worker {1:,} slots, not {0:,}"
    default_hint = "raise it (ulimit -n, LimitNOFILE=), or use --count with a smaller number"


class SystemRefused(Unavailable):
    code = "system-refused"
    template = "{}: {}"

    def __init__(self, exc: OSError) -> None:
        hint = WANTS.get(exc.errno or 0, "fix the cause, then try again")
        super().__init__(exc.filename or "the system refuses", exc.strerror or exc, hint=hint)


# Resources that a host may run out of, and hints.
WANTS: Final = {
    errno.EMFILE: "let it have more files open: ulimit -n 1024",
    errno.ENFILE: "stop processes that have many files open on this machine",
    errno.ENOSPC: "free some disk space",
    errno.EROFS: "check how it is mounted",
}


class SupervisorGone(Unavailable):
    code = "supervisor-gone"
    template = "the process that keeps jobs for this worker: {}"
    default_hint = "restart the worker: it recovers its jobs. Without memory or processes, use fewer slots"

    def __init__(self, problem: str = "it is gone") -> None:
        super().__init__(problem)


class WorkerFailed(Unavailable):
    """A detached worker did not start; code and message are those it reported."""

    code = "worker-failed"

    def __init__(self, message: str, *, hint: str, code: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code or self.code  # type: ignore[misc] # a class attribute elsewhere


class PolicyUnusable(Unavailable):
    code = "policy-unusable"
    template = "the policy {} cannot be relied on: {}"
    default_hint = "a worker does not run without the policy it was given"


class ZonesMissing(Unavailable):
    code = "zones-missing"
    template = "cannot find the time zone {!r}: this machine has no time zone database"
    default_hint = "install tzdata with the package manager of the system or with pip; UTC needs none"


class ServiceManagerMissing(Unavailable):
    code = "no-service-manager"
    template = "{} cannot be asked: {}"
    default_hint = "--print shows what would be installed; without a service: queuectl worker start --detach"


class ServiceFailed(Unavailable):
    code = "service-failed"
    default_hint = "queuectl service status shows its state"
