"""queuectl prune"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import click

from queuectl.cli.act import Verb, act
from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_jobs
from queuectl.cli.confirm import confirm, yes_option
from queuectl.cli.jobs import plural
from queuectl.cli.progress import progress
from queuectl.cli.result import Result, Sheet
from queuectl.cli.selectors import Selection, selectors
from queuectl.cli.style import room
from queuectl.errors import InvalidInput, QueuectlError, UsageError
from queuectl.job.duration import parse_duration_ms
from queuectl.job.lifecycle import FINAL, State
from queuectl.job.retention import retention
from queuectl.queue.pick import Answer, find, for_each, pick, refuse
from queuectl.store.open import store_exists
from queuectl.store.protocol import Store
from queuectl.upkeep import prune as use

_NOT_ENDED: Final = "completed, dead, cancelled; queuectl cancel calls off a job that waits or runs"


@command(
    "prune",
    examples="""
        # what the settings retain-completed and retain-dead say
        queuectl prune
        # how much would go?
        queuectl prune --older-than 7d --dry-run
        queuectl prune --older-than 90d --state dead --yes
        queuectl prune --older-than 1d --queue thumbnails
        queuectl prune 7f3a
    """,
)
@click.argument("ids", nargs=-1, metavar="[ID...]", shell_complete=complete_jobs)
@click.option("--older-than", metavar="D", help="Those that ended so long ago, like 7d; else as the settings say.")
@selectors()
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@yes_option
def prune(
    app: App, ids: tuple[str, ...], older_than: str | None, selection: Selection, dry_run: bool, yes: bool
) -> Result:
    """Remove jobs that have ended, with their history, output and logs, and make the store smaller.

    Without --older-than, those that have been kept for as long as retain-completed (also for cancelled jobs) and
    retain-dead say: what workers do by themselves, at once. Jobs that are named by id go at any age. Jobs that wait or
    run are never removed.
    """
    age = None if older_than is None else parse_duration_ms(older_than, subject="--older-than")
    if ids:
        if selection or older_than is not None or dry_run:
            raise UsageError("jobs by id, and options that choose others", hint="leave one of the two away")
        return _prune_named(app, ids, yes=yes)
    where = selection.where(app)
    wanted = _ended_states(where.states)
    reads = app.open_reads()
    only = None
    if not where.names_states_only:
        only = frozenset(job.id for job in reads.choose(where._replace(states=wanted)))
    ages = retention(app.settings) if age is None else dict.fromkeys(FINAL, age)
    ages = {state: ages[state] for state in State if state in wanted}
    plan = use.Plan.by_age(ages, now_ms=reads.now_ms(), only=only)
    if dry_run:
        return _result(app, use.foresee(reads, plan), verb="would remove", dry_run=True)
    found = use.count(reads, plan)
    total = sum(found.values())
    if only and not total and age is None:
        app.say(app.paint(f"{plural(len(only), 'job')} like that, kept for longer: --older-than 0s removes any", "dim"))
    if total:
        confirm(app, f"Remove {_jobs(found)} with history and logs?", yes=yes)
    if not store_exists(app.home, app.db):
        return _result(app, use.foresee(reads, plan), verb="removed", dry_run=False)
    with progress(app, "pruning", total=total) as advance:
        done = _carry_out(app, plan, advance=lambda jobs: advance(jobs, max(total, jobs)))
    app.done = f"removed {_jobs(done.jobs)}"
    return _result(app, done, verb="removed", dry_run=False)


def _carry_out(app: App, plan: use.Plan, *, advance: Callable[[int], None]) -> use.Pruned:
    pruner = use.Pruner(app.open_store(), home=app.home, writer=f"prune-{os.getpid()}", rows=use.ROWS_AT_ONCE)
    return use.prune(pruner, plan, clock=app.clock, advance=advance)


def _prune_named(app: App, ids: tuple[str, ...], *, yes: bool) -> Result:
    def remove(store: Store, refs: Iterable[str], /, *, exact: bool = False) -> Answer:
        def remove_some(some: Sequence[str]) -> Mapping[str, QueuectlError]:
            plan = use.Plan(dict.fromkeys(FINAL, store.now_ms()), frozenset(some))
            _carry_out(app, plan, advance=lambda _: None)
            left = {job.id: job.state for job in find(store, some).values()}
            return refuse(left, left, able=(), verb="prune", hint=_cannot_prune)

        return for_each(store, refs, remove_some, exact=exact)

    ended = [job for job in find(app.open_reads(), pick(app.open_reads(), ids).done).values() if job.state in FINAL]
    if ended:
        counts = Counter(job.state for job in ended)
        confirm(app, f"Remove {_jobs(counts)} with history and logs?", yes=yes)
    return act(app, Verb(remove, "prune", "removed", FINAL), ids)


def _cannot_prune(_: State) -> str:
    return _NOT_ENDED


def _ended_states(given: frozenset[State]) -> frozenset[State]:
    for state in sorted(given - FINAL):
        raise InvalidInput("--state", f"{state} jobs have not ended and are never pruned", hint=_NOT_ENDED)
    return given or FINAL


def _result(app: App, done: use.Pruned, *, verb: str, dry_run: bool) -> Sheet:
    jobs = {state.value: done.jobs.get(state, 0) for state in State if state in FINAL}
    value = {"dry_run": dry_run, "jobs": jobs, "logs": done.logs._asdict()}
    return Sheet(value, people=lambda: _lines(done, verb))


def _lines(done: use.Pruned, verb: str) -> Iterator[str]:
    logs = done.logs
    if not any(done.jobs.values()) and not logs.files:
        yield "nothing to remove"
        return
    files = f"{logs.files:,} {'log' if logs.files == 1 else 'logs'}, {room(logs.bytes)}"
    yield f"{verb} {_jobs(done.jobs)}; {files}"
    if logs.elsewhere:
        which = "1 log is" if logs.elsewhere == 1 else f"{logs.elsewhere:,} logs are"
        yield f"{which} not here: of another host, or removed before"


def _jobs(jobs: Mapping[State, int]) -> str:
    """`3 completed jobs`, `3 completed and 1 dead jobs`."""
    told = [f"{number:,} {state}" for state, number in jobs.items() if number]
    if not told:
        return "no jobs"
    listed = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return f"{listed} {'job' if sum(jobs.values()) == 1 else 'jobs'}"
