"""Parts of the Python API: `Selection` (bulk operations), `Schedules`, and the conversion of Python values. See client.py."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

from queuectl.clock import Clock
from queuectl.config import environ
from queuectl.cron import operations as cron
from queuectl.cron.operations import local_zone_name
from queuectl.errors import InvalidInput, UsageError
from queuectl.jobs.edit import parse_edit
from queuectl.jobs.model import BulkResult, Job
from queuectl.jobs.spec import Defaults
from queuectl.jobs.states import FINAL, WAITING, State
from queuectl.operations import control
from queuectl.operations import wait as waiting
from queuectl.operations.enqueue import Fields
from queuectl.operations.query import restrict_states
from queuectl.store.reads import Reads
from queuectl.store.store import Store
from queuectl.store.types import Chosen, Filter
from queuectl.text import short_repr
from queuectl.units import from_ms, parse_duration_ms

Names = str | Iterable[str]
Duration = str | float | timedelta

# Argument -> how the jobs that it names have to end.
AFTER: Final = {"after": "completed", "after_any": "ended", "after_fail": "failed"}


def resolve(reads: Reads, job_id: object) -> str:
    """The full ID. Raises InvalidInput, JobNotFound or AmbiguousId."""
    if not isinstance(job_id, str):
        hint = "the id of a job, the beginning of one, or 'last'"
        raise InvalidInput("job_id", f"expected a string, got {short_repr(job_id)}", hint=hint)
    return reads.resolve(job_id)


def parse_timeout(timeout: Duration | None) -> float | None:
    """Seconds, None for no limit."""
    return None if timeout is None else parse_duration_ms(to_json(timeout), subject="timeout") / 1000


def to_json(value: Any) -> Any:
    """Values of Python's own types as JSON has them."""
    match value:
        case timedelta():
            return value.total_seconds()
        case datetime():
            return value.isoformat()
        case os.PathLike():
            return os.fspath(value)
        case Job():
            return value.id
        case list() | tuple() | set() | frozenset():
            return [to_json(item) for item in value]
        case _:
            return value


def to_job_fields(fields: Mapping[str, Any]) -> Fields:
    return {name: to_json(value) for name, value in _merge_parents(fields).items()}


def _merge_parents(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """`after`, `after_any` and `after_fail`, which are arguments in Python, as the one field `depends_on`."""
    given = {name: fields[name] for name in AFTER if fields.get(name) is not None}
    if not given.keys() - {"after"}:
        return fields
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Iterable):
            problem = f"expected a list of ids or jobs, got {short_repr(value)}"
            raise InvalidInput(name, problem, hint=f"like {name}=[build]")
    if fields.get("depends_on") is not None:
        raise InvalidInput("depends_on", f"not together with {', '.join(given)}", hint="say all of it in depends_on")
    parents = [(to_json(one), AFTER[name]) for name, ones in given.items() for one in ones]
    wanted = [{"id": one, "when": when} if isinstance(one, str) else one for one, when in parents]
    return {**{name: value for name, value in fields.items() if name not in AFTER}, "depends_on": wanted}


class BulkContext(NamedTuple):
    """What a Selection works with. `open_store` may create the data directory, so it is called last; `reads` creates nothing."""

    reads: Callable[[], Reads]
    open_store: Callable[[], Store]
    clock: Clock
    rescue: Callable[[], None]  # recovers the jobs of dead workers of this host
    home: str


class _BulkAction(Protocol):
    def __call__(self, store: Store, refs: Iterable[str], /, *, exact: bool = False) -> BulkResult: ...


class Selection:
    """The jobs that match a filter. Each method evaluates the filter again.

    An action applies to the selected jobs whose state allows it and returns the result that `--json` prints:
    `{"done": [ids], "refused": [{"id", "code", "message"}]}`. It raises InvalidInput if the filter names a state that does
    not allow it, and UsageError if the filter is empty.

    >>> from queuectl import Queue
    >>> with Queue() as queue:
    ...     _ = queue.enqueue_many(["true", "false"], batch="some")
    ...     some = queue.select(batch="some", match="false")
    ...     len(some.cancel()["done"]), [job.state.value for job in some]
    (1, ['cancelled'])
    """

    def __init__(self, where: Filter, context: BulkContext) -> None:
        self._where = where
        self._context = context

    def __iter__(self) -> Iterator[Job]:
        """Newest first, in bounded memory."""
        return self._context.reads().jobs(self._where)

    def __len__(self) -> int:
        return self._context.reads().count(self._where)

    def cancel(self) -> dict[str, Any]:
        """Cancel the jobs, and wait until the processes of running jobs have exited."""
        clock, rescue = self._context.clock, self._context.rescue

        def action(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> BulkResult:
            return control.cancel(store, clock, refs, rescue=rescue, exact=exact)

        return self._act(action, control.CANCELLABLE, done="cancelled")

    def retry(self) -> dict[str, Any]:
        """Requeue the failed, dead and cancelled jobs."""
        return self._act(control.retry, control.RETRYABLE, done="retried")

    def edit(self, **fields: Any) -> dict[str, Any]:
        """Change the waiting jobs. `fields` are the same as in `Queue.edit`.

        >>> with Queue() as queue:
        ...     _ = queue.enqueue("true", queue="later", id="later-1")
        ...     queue.select(queue="later").edit(priority=-5, timeout="1h")
        {'done': ['later-1'], 'refused': []}
        """
        change = parse_edit({name: to_json(value) for name, value in fields.items()})

        def action(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> BulkResult:
            return control.edit(store, refs, change, exact=exact)

        return self._act(action, WAITING, done="edited")

    def hold(self) -> dict[str, Any]:
        """Keep the waiting jobs from running until they are released."""
        return self._act(control.hold, WAITING, done="held", wants=lambda job: not job.held)

    def release(self) -> dict[str, Any]:
        """Release the held jobs."""
        return self._act(control.release, WAITING, done="released", wants=lambda job: job.held)

    def run_now(self) -> dict[str, Any]:
        """Make the delayed, held and failed jobs due now."""
        return self._act(control.run_now, control.CLAIMABLE, done="made due")

    def purge(self) -> dict[str, Any]:
        """Remove the dead jobs with their history and logs."""
        return self._act(control.purge_dead, control.DEAD, done="purged")

    def prune(self, *, older_than: Duration = 0) -> dict[str, int]:
        """Remove the jobs that ended at least `older_than` ago, with history, output and logs. Returns their number by state."""
        from queuectl.maintenance import pruner as maintenance

        age = parse_duration_ms(to_json(older_than), subject="older_than")
        where = self._restrict(FINAL, done="pruned")
        chosen = frozenset(job.id for job in self._context.reads().choose(where))
        if not chosen:
            return {}
        store = self._context.open_store()
        ages: dict[State, int | None] = {state: age for state in State if state in where.states}
        plan = maintenance.Plan.by_age(ages, now_ms=store.now_ms(), only=chosen)
        writer = f"prune-{os.getpid()}"
        pruner = maintenance.Pruner(store, home=self._context.home, writer=writer, rows=maintenance.MAX_ROWS)
        done = maintenance.prune(pruner, plan, clock=self._context.clock, advance=lambda _: None)
        return {state.value: jobs for state, jobs in done.jobs.items() if jobs}

    def wait(self, timeout: Duration | None = None) -> list[Job]:
        """Wait for the unfinished jobs, or the jobs in the states of the filter, and return them. Raises WaitTimeout."""
        seconds = parse_timeout(timeout)
        where = self._where if self._where.states else self._where._replace(states=frozenset(State) - FINAL)
        ids = [job.id for job in self._context.reads().choose(where)]
        return waiting.wait(self._context.reads(), self._context.clock, ids, timeout=seconds) if ids else []

    def _restrict(self, able: frozenset[State], *, done: str) -> Filter:
        if self._where.names_states_only and not self._where.states:
            # An empty list or a None is more likely than the wish to change every job.
            raise UsageError("no jobs are selected", hint="choose them by state, queue, tag, batch, since or match")
        return restrict_states(self._where, able, done=done, subject="state")

    def _act(
        self,
        action: _BulkAction,
        able: frozenset[State],
        *,
        done: str,
        wants: Callable[[Chosen], bool] = lambda _: True,
    ) -> dict[str, Any]:
        where = self._restrict(able, done=done)
        ids = [job.id for job in self._context.reads().choose(where) if wants(job)]
        result = action(self._context.open_store(), ids, exact=True) if ids else BulkResult([], [])
        return result.to_dict()


class Schedules:
    """The schedules of a queue, each as `queuectl cron show --json` prints it.

    >>> from queuectl import Queue
    >>> with Queue() as queue:
    ...     added = queue.schedules.add("nightly", "0 2 * * *", "make backup", tz="Europe/Berlin", timeout="1h")
    ...     [schedule["name"] for schedule in queue.schedules]
    ['nightly']
    """

    def __init__(
        self, reads: Callable[[], Reads], open_store: Callable[[], Store], defaults: Callable[[], Defaults]
    ) -> None:
        self._reads = reads
        self._context = cron.CronContext(reads, open_store, defaults, random.random)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All schedules, by name."""
        return (one.schedule.to_dict(one.last) for one in cron.list_schedules(self._reads()))

    def add(
        self,
        name: str,
        schedule: str,
        command: str | None = None,
        *,
        argv: Sequence[str] | None = None,
        tz: str | None = None,
        overlap: str = "skip",
        catch_up: str = "one",
        jitter: Duration | None = None,
        until: str | datetime | None = None,
        unique: str | None = None,
        replace: bool = False,
        **fields: Any,
    ) -> dict[str, Any]:
        """Add a schedule. `fields` are the same as in `enqueue`, except id, run_at and after.

        If another job has the key `unique` when a job is due, no job is added, unless that job waits and `if_exists` is
        "replace". Raises InvalidInput, UnknownName or ScheduleExists.

        >>> with Queue() as queue:
        ...     queue.schedules.add("poll", "every 90s", argv=["./poll"], tz="UTC", queue="low")["queue"]
        'low'
        """
        given = {"command": command, "argv": argv, "unique_key": unique, **fields}
        job = {field: to_json(value) for field, value in given.items()}
        zone = local_zone_name(environ()) if tz is None else tz
        request = cron.ScheduleRequest(name, schedule, zone, job, overlap, catch_up, jitter, until)
        return cron.add(request, self._context, replace=replace).to_dict(None)

    def edit(self, name: str, schedule: str | None = None, **changes: Any) -> dict[str, Any]:
        """Change a schedule: `schedule`, tz, overlap, catch_up, jitter, until, and fields of its job. "none" removes jitter and until,
        None removes a field of the job. A paused schedule stays paused. Raises ScheduleNotFound or InvalidInput.

        >>> with Queue() as queue:
        ...     _ = queue.schedules.add("report", "@daily", "./report.sh", tz="UTC", timeout="1h")
        ...     queue.schedules.edit("report", "@hourly", timeout=None)["schedule"]
        '@hourly'
        """
        own = {part: to_json(changes.pop(part)) for part in cron.ScheduleEdit._fields if part in changes}
        fields = {field: to_json(value) for field, value in changes.items()}
        change = cron.ScheduleEdit(schedule, **own, fields=fields)
        return cron.edit(name, change, self._context).to_dict(None)

    def get(self, name: str) -> dict[str, Any]:
        """Return a schedule, with its latest runs as `ticks`. Raises ScheduleNotFound."""
        found = cron.show(self._reads(), name)
        return {**found.schedule.to_dict(found.last), "ticks": [run.to_dict() for run in found.ticks]}

    def next(self, name: str, count: int = 5) -> list[datetime]:
        """Return the next run times. For a paused schedule, return the times that it would have if it were resumed.

        >>> with Queue() as queue:
        ...     _ = queue.schedules.add("leap", "0 0 29 2 *", "true", tz="UTC")
        ...     queue.schedules.next("leap", 1)[0].day
        29
        """
        return [from_ms(at) for at in cron.upcoming(self._reads(), name, count)]

    def run(self, name: str) -> Job:
        """Add the job of the schedule now. Raises NotFired if another job has the unique key of the schedule."""
        job_id = cron.run(name, self._context)  # first: it may replace the connection for reads
        return self._reads().get(job_id)

    def pause(self, name: str) -> None:
        """Pause the schedule until it is resumed. Runs missed in the meantime are not caught up."""
        self._raise_refused(cron.pause_all([name], self._context))

    def resume(self, name: str) -> None:
        """Resume the schedule, from now on."""
        self._raise_refused(cron.resume_all([name], self._context))

    def remove(self, name: str) -> None:
        """Remove the schedule. Its jobs are not removed."""
        self._raise_refused(cron.remove_all([name], self._context))

    def _raise_refused(self, result: BulkResult) -> None:
        for _, error in result.refused:
            raise error
