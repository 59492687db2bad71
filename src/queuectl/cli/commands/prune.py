"""queuectl prune"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import click

from queuectl.cli.app import App
from queuectl.cli.command import command
from queuectl.cli.complete import complete_states
from queuectl.cli.confirm import confirm
from queuectl.cli.progress import progress
from queuectl.cli.result import Result, Sheet
from queuectl.cli.style import room
from queuectl.errors import InvalidInput
from queuectl.job.duration import parse_duration_ms
from queuectl.job.lifecycle import FINAL, State
from queuectl.job.retention import retention
from queuectl.queue.filters import parse_filter
from queuectl.store.open import store_exists
from queuectl.upkeep import prune as use


@command(
    "prune",
    examples="""
        # what the settings retain-completed and retain-dead say
        queuectl prune
        # how much would go?
        queuectl prune --older-than 7d --dry-run
        queuectl prune --older-than 90d --state dead --yes
    """,
)
@click.option("--older-than", metavar="D", help="Those that ended so long ago, like 7d; else as the settings say.")
@click.option(
    "--state",
    "-s",
    "states",
    multiple=True,
    metavar="S[,S]",
    shell_complete=complete_states,
    help="Only these: completed, dead, cancelled.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
def prune(app: App, older_than: str | None, states: tuple[str, ...], dry_run: bool, yes: bool) -> Result:
    """Remove jobs that have ended, with their history, output and logs, and make the store smaller.

    Without --older-than, those that have been kept for as long as retain-completed (also for cancelled jobs) and
    retain-dead say: what workers do by themselves, at once. Jobs that wait or run are never removed.
    """
    wanted = _ended_states(states)
    age = None if older_than is None else parse_duration_ms(older_than, subject="--older-than")
    reads = app.open_reads()
    ages = retention(app.settings) if age is None else dict.fromkeys(FINAL, age)
    plan = use.Plan.by_age({state: ages[state] for state in State if state in wanted}, now_ms=reads.now_ms())
    if dry_run:
        return _result(app, use.foresee(reads, plan), verb="would remove", dry_run=True)
    found = use.count(reads, plan)
    total = sum(found.values())
    if total:
        confirm(app, f"Remove {_jobs(found)} with history and logs?", yes=yes)
    if not store_exists(app.home, app.db):
        return _result(app, use.foresee(reads, plan), verb="removed", dry_run=False)
    pruner = use.Pruner(app.open_store(), home=app.home, writer=f"prune-{os.getpid()}", rows=use.ROWS_AT_ONCE)
    with progress(app, "pruning", total=total) as advance:
        done = use.prune(pruner, plan, clock=app.clock, advance=lambda jobs: advance(jobs, max(total, jobs)))
    app.done = f"removed {_jobs(done.jobs)}"
    return _result(app, done, verb="removed", dry_run=False)


def _ended_states(given: tuple[str, ...]) -> frozenset[State]:
    wanted = parse_filter(states=given).states if given else FINAL
    for state in sorted(wanted - FINAL):
        hint = "completed, dead, cancelled; queuectl cancel calls off a job that waits or runs"
        raise InvalidInput("--state", f"{state} jobs have not ended and are never pruned", hint=hint)
    return wanted


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
