"""About batches, dependencies, schedules, alerts, unique keys, queues, and changes to what waits."""

from __future__ import annotations

from queuectl.errors import Conflict, NotFound


class BatchNotFound(NotFound):
    code = "batch-not-found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no batch {name!r}", hint="queuectl batch list shows the batches there are")


class BatchComplete(Conflict):
    code = "batch-complete"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the batch {name!r} is complete: what runs then is queued", hint="choose another name for what comes now"
        )


class BatchDiffers(Conflict):
    code = "batch-differs"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the batch {name!r} has another --on-complete", hint=f"leave it away, or see: queuectl batch show {name}"
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
        self.name = name


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
        self.name = name


class ScheduleExists(Conflict):
    code = "schedule-exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule {name!r} already", hint="choose another name, or add --replace")
        self.name = name


class NotFired(Conflict):
    code = "not-fired"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"the schedule {name!r} adds nothing now: {reason}", hint="run it again when nothing is in its way any more"
        )


class StaleEdit(Conflict):
    code = "stale-edit"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id!r} has changed since it was shown: it stays as it is", hint="edit it again")


class NotMovable(Conflict):
    code = "not-movable"

    def __init__(self, job_id: str, problem: str) -> None:
        super().__init__(f"job {job_id} {problem}", hint="only jobs that wait in that queue can be moved from it")


class ParentNotFound(NotFound):
    code = "parent-not-found"

    def __init__(self, parent: str, *, child: str | None) -> None:
        whose = "" if child is None else f": {child!r} cannot wait for it"
        super().__init__(f"no job {parent!r}{whose}", hint="a job waits for jobs of the store or of its own batch")
        self.said = parent


class ParentEnded(Conflict):
    code = "parent-ended"

    def __init__(self, parent: str, state: str, *, when: str, child: str | None, said: str) -> None:
        who = "a job" if child is None else repr(child)
        again = "" if state == "completed" else f"queuectl retry {parent} first, or "  # which retry would refuse
        hint = f'{again}wait for any end (--after-any, "when": "ended"), or give "else": "run"'
        super().__init__(f"{parent!r} is {state}: {who} cannot wait for it to be {when}", hint=hint)
        self.said = said


class CommandRefused(Conflict):
    """The policy of this host refuses the command of an alert."""

    code = "command-refused"

    def __init__(self, alert: str, rule: str, problem: str) -> None:
        super().__init__(
            f"the command of {alert} is refused by policy: {rule}: {problem}",
            hint='rules for alert commands are in [queues."queuectl.webhooks"] of policy.toml',
        )
