"""Workers as commands see them: which are alive, which serve, and the rescue of jobs of dead ones.

Modules of maintenance/ are imported on use: most commands need none."""

from __future__ import annotations

from collections.abc import Callable

from queuectl.cli.app import App
from queuectl.config import here
from queuectl.jobs.model import Job, Worker
from queuectl.operations.wait import UnservedWatch
from queuectl.text import escape_control


def store_line(app: App) -> str | None:
    """A line that names the database, if it is not the default one of the data directory."""
    from queuectl.store.open import store_shown

    shown = store_shown(app.home, app.db)
    return None if shown is None else f"store: {escape_control(shown)}"


def is_alive(app: App) -> Callable[[Worker], bool]:
    where = here(app.environ)

    def lives(worker: Worker) -> bool:
        from queuectl.maintenance.liveness import is_alive as lives_on

        return lives_on(worker, here=where)

    return lives


def is_serving(app: App) -> Callable[[Worker], bool]:
    """Whether a worker is alive and its heartbeat is not older than the lease."""
    where = here(app.environ)

    def serves(worker: Worker) -> bool:
        from queuectl.maintenance.liveness import is_serving as serves_on

        return serves_on(worker, here=where, now_ms=app.open_reads().now_ms(), lease_ms=lambda: app.settings.lease_ms)

    return serves


def rescuer(app: App, *, spare: bool) -> Callable[[], None]:
    """A function that rescues jobs of dead workers of this host. `spare`: let runs go on that were not cancelled."""
    where = here(app.environ)

    def rescue() -> None:
        from queuectl.maintenance.rescuer import rescue_dead

        rescue_dead(app.open_store(), here=where, clock=app.clock, settings=app.settings, spare=spare)

    return rescue


def unserved_watch(app: App) -> UnservedWatch:
    """Prints a warning after a job's queue had no live worker for two seconds."""

    def notify(job: Job) -> None:
        app.warn(f"no live worker serves the queue {escape_control(job.queue)!r}: queuectl worker start; still waiting")

    return UnservedWatch(app.open_reads(), app.clock, is_alive=is_serving(app), notify=notify)
