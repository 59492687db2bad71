"""Errors of the database, the data directory, the host and its services."""

from __future__ import annotations

import errno
from typing import Final

from queuectl.errors import Unavailable


class HomeUnusable(Unavailable):
    code = "home-unusable"

    def __init__(self, path: str, problem: str, *, hint: str = "choose another with --home or QUEUECTL_HOME") -> None:
        super().__init__(f"cannot use {path} as the data directory: {problem}", hint=hint)


class FileUnreadable(Unavailable):
    code = "file-unreadable"

    def __init__(self, path: str, problem: str, *, or_stdin: bool = False) -> None:
        """`or_stdin`: whether - is accepted for stdin."""
        hint = "check the name, or give - for stdin" if or_stdin else "check the name, and that you may read it"
        super().__init__(f"cannot read {path}: {problem}", hint=hint)


class OutputFailed(Unavailable):
    code = "output-failed"

    def __init__(self, problem: str, *, done: str | None = None) -> None:
        """`done`: the result that the output would have shown."""
        suffix = f"; {done}" if done else ""
        hint = "check where it goes; completed changes are kept"
        super().__init__(f"cannot write the output: {problem}{suffix}", hint=hint)
        self.problem = problem


class StoreBusy(Unavailable):
    code = "store-locked"

    def __init__(self, path: str, waited: float, *, hint: str | None = None) -> None:
        duration = f" (waited {waited:.0f} s)" if waited >= 1 else ""  # unknown for a server
        super().__init__(
            f"the store {path} is locked by another program{duration}",
            hint=hint or "find the process that uses it (fuser, lsof), or try again",
        )


class StoreFull(Unavailable):
    code = "store-full"

    def __init__(self, path: str) -> None:
        super().__init__(f"no space left for the store {path}", hint="free some disk space; nothing was changed")


class StoreReadOnly(Unavailable):
    code = "store-read-only"

    def __init__(self, path: str, *, hint: str = "check who owns it and how it is mounted") -> None:
        super().__init__(f"the store {path} cannot be written", hint=hint)


class StoreFailed(Unavailable):
    """An error of the database without a class of its own, with the message of the driver."""

    code = "store-failed"

    def __init__(self, path: str, problem: str, *, hint: str = "check the disk, then try again") -> None:
        super().__init__(f"the store {path} failed: {problem}", hint=hint)


class StoreDamaged(Unavailable):
    code = "store-damaged"
    # An empty file may never have been a database.
    IF_EMPTY: Final = "restore a backup; if it never was a store, remove it"

    def __init__(self, path: str, problem: str, *, hint: str = "keep the file as it is, restore a backup") -> None:
        super().__init__(f"the store {path} is damaged: {problem}", hint=hint)


class StoreForeign(Unavailable):
    code = "store-foreign"

    def __init__(
        self, path: str, *, hint: str = "choose another place with --home or --db; if it was one, restore a backup"
    ) -> None:
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
            hint="put it back; a new one is never created in its place",
        )


class StoreUnreachable(Unavailable):
    """The server does not respond, or no longer does. `path` is the address without its password.

    `in_doubt`: a write was in progress, and it is unknown whether it was committed.
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
    """The server responds, but rejects the connection or lacks a permission."""

    code = "store-refused"

    def __init__(
        self, path: str, problem: str, *, hint: str = "check user, password and database of the address"
    ) -> None:
        super().__init__(f"the store {path} refuses: {problem}", hint=hint)


class DriverMissing(Unavailable):
    """`command` installs it."""

    code = "driver-missing"

    def __init__(self, store: str, command: str) -> None:
        super().__init__(f"the driver for {store} is not installed", hint=f"install it: {command}")


class ExtraMissing(Unavailable):
    """`command` installs the packages."""

    code = "extra-missing"

    def __init__(self, what: str, command: str) -> None:
        super().__init__(f"{what} needs packages that are not installed", hint=f"install them: {command}")


class CannotListen(Unavailable):
    code = "cannot-listen"

    def __init__(self, address: str, problem: str) -> None:
        super().__init__(
            f"cannot listen on {address}: {problem}", hint="choose another port; --port 0 takes one that is free"
        )


class WebhookRefused(Unavailable):
    """A webhook URL that is not allowed. `host` is the only part of its URL that is not secret."""

    code = "call-refused"

    def __init__(self, host: str, problem: str, *, hint: str) -> None:
        super().__init__(f"{host} is not called: {problem}", hint=hint)


class WebhookUnanswered(Unavailable):
    code = "call-unanswered"

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(
            f"{host}: {problem}",
            hint="check that the server listens there and responds with 2xx; the delivery is retried",
        )


class CommandFailed(Unavailable):
    """The command of an alert failed."""

    code = "command-failed"

    def __init__(self, alert: str, problem: str) -> None:
        super().__init__(
            f"the command of {alert}: {problem}", hint="run it by hand; it is retried until it exits with 0"
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


class TooManySlots(Unavailable):
    code = "too-many-slots"

    def __init__(self, slots: int, most: int) -> None:
        problem = f"the limit of open files allows a worker {most:,} slots, not {slots:,}"
        super().__init__(problem, hint="raise it (ulimit -n, LimitNOFILE=), or use --count with a smaller number")


class SystemRefused(Unavailable):
    code = "system-refused"

    def __init__(self, exc: OSError) -> None:
        message = f"{exc.filename or 'the system refuses'}: {exc.strerror or exc}"
        super().__init__(message, hint=WANTS.get(exc.errno or 0, "fix the cause, then try again"))


# Resources that a host may run out of, and hints.
WANTS: Final = {
    errno.EMFILE: "let it have more files open: ulimit -n 1024",
    errno.ENFILE: "stop processes that have many files open on this machine",
    errno.ENOSPC: "free some disk space",
    errno.EROFS: "check how it is mounted",
}


class SupervisorGone(Unavailable):
    code = "supervisor-gone"

    def __init__(self, problem: str = "it is gone") -> None:
        hint = "restart the worker, it recovers its jobs; if out of memory or processes, use fewer slots"
        super().__init__(f"the process that keeps jobs for this worker: {problem}", hint=hint)


class WorkerFailed(Unavailable):
    """A detached worker did not start; code and message are those it reported."""

    code = "worker-failed"

    def __init__(self, message: str, *, hint: str, code: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code or self.code  # type: ignore[misc] # a class attribute elsewhere


class PolicyUnusable(Unavailable):
    code = "policy-unusable"

    def __init__(
        self, path: str, problem: str, *, hint: str = "a worker does not run without the policy it was given"
    ) -> None:
        super().__init__(f"the policy {path} cannot be relied on: {problem}", hint=hint)


class ZonesMissing(Unavailable):
    code = "zones-missing"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"cannot find the time zone {name!r}: this machine has no time zone database",
            hint="install the package tzdata of the system, or: pip install tzdata; UTC needs none",
        )


class ServiceManagerMissing(Unavailable):
    code = "no-service-manager"

    def __init__(self, manager: str, problem: str) -> None:
        super().__init__(
            f"{manager} cannot be asked: {problem}",
            hint="--print shows what would be installed; without a service: queuectl worker start --detach",
        )


class ServiceFailed(Unavailable):
    code = "service-failed"

    def __init__(self, problem: str, *, hint: str = "queuectl service status shows its state") -> None:
        super().__init__(problem, hint=hint)
        self.problem = problem


class NotTrusted(Unavailable):
    """Another user owns the data directory or the database, or can write to it: they could have planted jobs in it."""

    code = "not-trusted"

    def __init__(self, path: str, problem: str, *, hint: str) -> None:
        super().__init__(f"{path} is not safe to use: {problem}", hint=f"{hint}, or trust it with --trust-home")
        self.path = path
