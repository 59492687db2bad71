"""Errors about jobs, batches, dependencies, schedules, alerts, secrets, and about export, import and copies."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.errors import Conflict, NotFound, Unavailable, UsageError


class BatchNotFound(NotFound):
    code = "batch-not-found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no batch {name!r}", hint="queuectl batch list shows the batches there are")


class BatchComplete(Conflict):
    code = "batch-complete"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the batch {name!r} is complete, and its completion job is queued", hint="choose another name"
        )


class BatchDiffers(Conflict):
    code = "batch-differs"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the batch {name!r} has another --on-complete", hint=f"omit it, or see: queuectl batch show {name}"
        )


class KeyReused(Conflict):
    code = "idempotency-key-reused"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"the key {key!r} was given to another request", hint="repeat a request as it was, or choose another key"
        )


class AlertNotFound(NotFound):
    code = "alert-not-found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no alert {name!r}", hint="queuectl alert list shows the alerts there are")


class AlertExists(Conflict):
    code = "alert-exists"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is an alert {name!r} already", hint=f"choose another name, or queuectl alert remove {name}"
        )
        self.name = name


class ScheduleNotFound(NotFound):
    code = "schedule-not-found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no schedule {name!r}", hint="queuectl cron list shows the schedules there are")


class ScheduleExists(Conflict):
    code = "schedule-exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule {name!r} already", hint="choose another name, or add --replace")
        self.name = name


class NotFired(Conflict):
    code = "not-fired"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"the schedule {name!r} adds nothing now: {reason}", hint="run it again later")


class StaleEdit(Conflict):
    code = "stale-edit"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id!r} has changed since it was shown, and was not edited", hint="edit it again")


class NotMovable(Conflict):
    code = "not-movable"

    def __init__(self, job_id: str, problem: str) -> None:
        super().__init__(f"job {job_id} {problem}", hint="only jobs that wait in that queue can be moved from it")


class ParentNotFound(NotFound):
    code = "parent-not-found"

    def __init__(self, parent: str, *, child: str | None) -> None:
        whose = "" if child is None else f": {child!r} cannot wait for it"
        super().__init__(f"no job {parent!r}{whose}", hint="a job waits for jobs of the store or of its own batch")
        self.ref = parent


class ParentEnded(Conflict):
    code = "parent-ended"

    def __init__(self, parent: str, state: str, *, when: str, child: str | None, ref: str) -> None:
        who = "a job" if child is None else repr(child)
        again = "" if state == "completed" else f"queuectl retry {parent} first, or "  # retry refuses a completed job
        hint = f'{again}wait for any end (--after-any, "when": "ended"), or give "else": "run"'
        super().__init__(f"{parent!r} is {state}: {who} cannot wait for it to be {when}", hint=hint)
        self.ref = ref


class CommandRefused(Conflict):
    """The policy of this host refuses the command of an alert."""

    code = "command-refused"

    def __init__(self, alert: str, rule: str, problem: str) -> None:
        super().__init__(
            f"the command of {alert} is refused by policy: {rule}: {problem}",
            hint='rules for alert commands are in [queues."queuectl.webhooks"] of policy.toml',
        )


class FileExists(Conflict):
    code = "file-exists"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is a file {path} already", hint="name a new one: existing files are never overwritten")


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
            hint="let them end, or add --force: in the copy they wait again, and the run does not count",
        )


class CopyDiffers(Unavailable):
    code = "copy-differs"

    def __init__(self, counts: Sequence[tuple[str, int, int]]) -> None:
        differences = ", ".join(f"{what} {source:,} and {target:,}" for what, source, target in counts)
        super().__init__(
            f"the copy differs from its source: {differences}", hint="nothing was copied; please report it"
        )


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
        command = (
            "queuectl queue list"
            if kind == "queue"
            else f"queuectl {'cron' if kind == 'schedule' else kind} show {name}"
        )
        super().__init__(
            f"there is another {kind} {name!r} already: its {field} differs",
            hint=f"nothing was imported; look at it: {command}",
        )


class UnknownLayout(Unavailable):
    """A readable file in an unknown format."""

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
    """`name`: on the host. Never contains any of its value."""

    code = "secret-unusable"

    def __init__(self, name: str, problem: str, *, hint: str) -> None:
        super().__init__(f"the secret {name!r} cannot be used: {problem}", hint=hint)
