"""What a shell may offer for a value: handed to click as `shell_complete` of an option or argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from queuectl.cli.app import App
from queuectl.config import KEYS
from queuectl.job.lifecycle import State

if TYPE_CHECKING:
    from queuectl.store.protocol import Reads

MOST = 50  # jobs offered: the newest, since a list of thousands helps nobody
LOOKED_AT = 2000  # of them, to find those that begin as was typed


def complete_states(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Of a list `dead,fa` only the last is incomplete."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{state}" for state in State if state.startswith(last.lower())]


def complete_keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [key.name for key in KEYS if key.name.startswith(incomplete.lower().replace("_", "-"))]


# ── what is in the store ────────────────────────────────────────────────────────────────────────────────────────────


def complete_jobs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Newest first, and not one that is named already."""
    named = ctx.params.get(param.name or "") or ()

    def ids(store: Reads) -> Iterable[str]:
        return (job.id for job in store.jobs(limit=LOOKED_AT) if job.id not in named)

    return [] if not _may_be_id(incomplete) else _offer(ctx, incomplete, ids)[:MOST]


def complete_job_list(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Of a list `a,b` only the last is incomplete."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{found}" for found in complete_jobs(ctx, param, last)]


def complete_jobs_after_a_number(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return complete_jobs(ctx, param, incomplete) if ctx.params.get(param.name or "") else []


def complete_queues(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _offer(ctx, incomplete, lambda store: sorted(store.tally()))


def complete_workers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _offer(ctx, incomplete, lambda store: (worker.id for worker in store.workers()))


def complete_schedules(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _offer(ctx, incomplete, lambda store: (schedule.name for schedule in store.schedules()))


def complete_alerts(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _offer(ctx, incomplete, lambda store: (alert.name for alert in store.alerts()))


def complete_batches(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _offer(ctx, incomplete, lambda store: (batch.name for batch in store.batches()))


def complete_secrets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Those that lie in this home; behind a `NAME=` as well."""
    app = ctx.find_object(App)
    if app is None:
        return []
    from queuectl.secrets.files import names  # here, since every command that completes something loads this

    before, equals, last = incomplete.rpartition("=")
    return [f"{before}{equals}{name}" for name in names(app.home) if name.startswith(last)]


def _offer(ctx: click.Context, incomplete: str, look: Callable[[Reads], Iterable[str]]) -> list[str]:
    """Whatever keeps us from looking: nothing is offered, and nothing is said in the middle of somebody's line."""
    app = ctx.find_object(App)
    if app is None:
        return []
    try:
        app.check_trust()
        return [name for name in look(app.open_reads()) if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001 - as above
        return []


def _may_be_id(text: str) -> bool:
    return text.replace("-", "a").replace(".", "a").replace("_", "a").replace(":", "a").isalnum() or not text
