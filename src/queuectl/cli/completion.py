"""Shell completion of values: passed to click as `shell_complete` of an option or argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from queuectl.cli.app import App
from queuectl.jobs.states import State
from queuectl.settings import KEYS

if TYPE_CHECKING:
    from queuectl.store.reads import Reads

MAX_SUGGESTIONS = 50  # job ids
MAX_JOBS_READ = 2000  # newest jobs, to find ids with the typed prefix


def complete_states(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Of a list `dead,fa` only the last is incomplete."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{state}" for state in State if state.startswith(last.lower())]


def complete_keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [key.name for key in KEYS if key.name.startswith(incomplete.lower().replace("_", "-"))]


# ── values from the database ────────────────────────────────────────────────────────────────────────────────────────────


def complete_jobs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Newest first, without ids that are already in the command line."""
    named = ctx.params.get(param.name or "") or ()

    def ids(store: Reads) -> Iterable[str]:
        return (job.id for job in store.jobs(limit=MAX_JOBS_READ) if job.id not in named)

    return _suggest(ctx, incomplete, ids)[:MAX_SUGGESTIONS]


def complete_job_list(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Of a list `a,b` only the last is incomplete."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{found}" for found in complete_jobs(ctx, param, last)]


def complete_jobs_after_a_number(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return complete_jobs(ctx, param, incomplete) if ctx.params.get(param.name or "") else []


def _from_database(read: Callable[[Reads], Iterable[str]]) -> Callable[..., list[str]]:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        return _suggest(ctx, incomplete, read)

    return complete


complete_queues = _from_database(lambda store: sorted(store.tally()))
complete_workers = _from_database(lambda store: (worker.id for worker in store.workers()))
complete_schedules = _from_database(lambda store: (schedule.name for schedule in store.schedules.all()))
complete_alerts = _from_database(lambda store: (alert.name for alert in store.alerts.all()))
complete_batches = _from_database(lambda store: (batch.name for batch in store.batches.all()))


def complete_secrets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Secrets of this data directory; also after `NAME=`."""
    app = ctx.find_object(App)
    if app is None:
        return []
    from queuectl.secrets.files import names  # most commands import this module and never complete

    before, equals, last = incomplete.rpartition("=")
    return [f"{before}{equals}{name}" for name in names(app.home) if name.startswith(last)]


def _suggest(ctx: click.Context, incomplete: str, look: Callable[[Reads], Iterable[str]]) -> list[str]:
    """Suggestions from the database; none after any error, whose message would disturb the line being typed."""
    app = ctx.find_object(App)
    if app is None:
        return []
    try:
        app.check_trust()
        return [name for name in look(app.open_reads()) if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001 - as above
        return []
