"""Errors about jobs, batches, dependencies, schedules, alerts, secrets, and about export, import and copies."""

from __future__ import annotations

from collections.abc import Sequence

from queuectl.errors import Conflict, NotFound, Unavailable, UsageError

# ── batches and requests ────────────────────────────────────────────────────────────────────────────────────────────


class BatchNotFound(NotFound):
    code = "batch-not-found"
    template = "no batch {!r}"
    default_hint = "see all batches: queuectl batch list"


class BatchComplete(Conflict):
    code = "batch-complete"
    template = "the batch {!r} is complete, and its completion job is queued"
    default_hint = "choose another name"


class BatchDiffers(Conflict):
    code = "batch-differs"
    template = "the batch {0!r} has another --on-complete"
    default_hint = "omit it, or see: queuectl batch show {0}"


class KeyReused(Conflict):
    code = "idempotency-key-reused"
    template = "the key {!r} was given to another request"
    default_hint = "repeat the request unchanged, or choose another key"


# ── alerts and schedules ────────────────────────────────────────────────────────────────────────────────────────────


class AlertNotFound(NotFound):
    code = "alert-not-found"
    template = "no alert {!r}"
    default_hint = "see all alerts: queuectl alert list"


class AlertExists(Conflict):
    code = "alert-exists"
    template = "there is an alert {0!r} already"
    default_hint = "choose another name, or queuectl alert remove {0}"


class CommandRefused(Conflict):
    """The policy of this host refuses the command of an alert."""

    code = "command-refused"
    template = "the command of {} is refused by policy: {}: {}"
    default_hint = 'rules for alert commands are in [queues."queuectl.webhooks"] of policy.toml'


class ScheduleNotFound(NotFound):
    code = "schedule-not-found"
    template = "no schedule {!r}"
    default_hint = "see all schedules: queuectl cron list"


class ScheduleExists(Conflict):
    code = "schedule-exists"
    template = "there is a schedule {!r} already"
    default_hint = "choose another name, or add --replace"


class NotFired(Conflict):
    code = "not-fired"
    template = "the schedule {!r} adds nothing now: {}"
    default_hint = "run it again later"


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class StaleEdit(Conflict):
    code = "stale-edit"
    template = "job {!r} has changed since it was shown, and was not edited"
    default_hint = "edit it again"


class NotMovable(Conflict):
    code = "not-movable"
    template = "job {} {}"
    default_hint = "only jobs that wait in that queue can be moved from it"


class ParentNotFound(NotFound):
    code = "parent-not-found"
    template = "no job {!r}{}"
    default_hint = "a job waits for jobs of the database or of its own batch"

    def __init__(self, parent: str, *, child: str | None) -> None:
        super().__init__(parent, "" if child is None else f": {child!r} cannot wait for it")
        self.ref = parent


class ParentEnded(Conflict):
    code = "parent-ended"
    template = "{!r} is {}: {} cannot wait for it to be {}"

    def __init__(self, parent: str, state: str, *, when: str, child: str | None, ref: str) -> None:
        again = "" if state == "completed" else f"queuectl retry {parent} first, or "  # retry refuses a completed job
        hint = f'{again}wait for any end (--after-any, "when": "ended"), or give "else": "run"'
        super().__init__(parent, state, "a job" if child is None else repr(child), when, hint=hint)
        self.ref = ref


# ── export, import and copies ───────────────────────────────────────────────────────────────────────────────────────


class FileExists(Conflict):
    code = "file-exists"
    template = "there is a file {} already"
    default_hint = "choose a new name: existing files are never overwritten"


class FileUnwritable(Unavailable):
    code = "file-unwritable"
    template = "cannot write {}: {}"
    default_hint = "check the directory, who may write there, and the disk"


class StoreUnsupported(UsageError):
    """An address with the scheme of another kind of database."""

    code = "store-unsupported"
    template = "unsupported database {}://"
    default_hint = "use a path, sqlite:///PATH or postgresql://…"


class StoreNotFound(NotFound):
    code = "store-not-found"
    template = "there is no queuectl database at {}"
    default_hint = "check the address of --from; it is never created there"


class StoreNotEmpty(Conflict):
    code = "store-not-empty"
    template = "the database {} has jobs, settings or history already"
    default_hint = "name a new file, or an empty database: two queuectl databases are never merged"


class SameStore(Conflict):
    code = "same-store"
    template = "--from and --to are the same database: {}"
    default_hint = "name another database for --to"


class JobsRunning(Conflict):
    code = "jobs-running"
    template = "{:,} {} in the database {}"
    default_hint = "wait for them, or add --force: in the copy they are pending again, and the run does not count"

    def __init__(self, address: str, jobs: int) -> None:
        super().__init__(jobs, "job runs" if jobs == 1 else "jobs run", address)


class CopyDiffers(Unavailable):
    code = "copy-differs"
    template = "the copy differs from its source: {}"
    default_hint = "nothing was copied; please report it"

    def __init__(self, counts: Sequence[tuple[str, int, int]]) -> None:
        super().__init__(", ".join(f"{what} {source:,} and {target:,}" for what, source, target in counts))


class JobDiffers(Conflict):
    code = "job-differs"
    template = "{2}: there is another job {0!r} already: its {1} differs"
    default_hint = "nothing was imported; look at it: queuectl show {0}"


class RuleDiffers(Conflict):
    code = "rule-differs"
    template = "there is another {} {!r} already: its {} differs"

    def __init__(self, kind: str, name: str, field: str) -> None:
        group = "cron" if kind == "schedule" else kind
        command = "queue list" if kind == "queue" else f"{group} show {name}"
        super().__init__(kind, name, field, hint=f"nothing was imported; look at it: queuectl {command}")


class UnknownLayout(Unavailable):
    """A readable file in an unknown format."""

    code = "unknown-layout"
    template = "cannot import {}: {}"
    default_hint = "import reads what export wrote; see its --help"


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class SecretNotFound(NotFound):
    code = "secret-not-found"
    template = "there is no secret {0!r} on this host"
    default_hint = "queuectl secret set {0} there, as the user of its workers; see all secrets: queuectl secret list"


class SecretUnusable(Unavailable):
    """Never contains any of its value."""

    code = "secret-unusable"
    template = "the secret {!r} cannot be used: {}"
