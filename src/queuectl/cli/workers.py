"""The workers, as commands see them: who lives, and what to do about those who do not.

The modules that know are loaded when somebody asks: most commands never do.
"""

from __future__ import annotations

from collections.abc import Callable

from queuectl.cli.app import App
from queuectl.cli.printable import printable
from queuectl.config import host_name
from queuectl.job.model import Job, Worker
from queuectl.queue.wait import UnservedWatch


def is_alive(app: App) -> Callable[[Worker], bool]:
    host = host_name(app.environ)

    def lives(worker: Worker) -> bool:
        from queuectl.upkeep.liveness import is_alive as lives_on

        return lives_on(worker, host=host)

    return lives


def rescuer(app: App) -> Callable[[], None]:
    """Deals with the jobs of dead workers of this host."""
    host = host_name(app.environ)

    def rescue() -> None:
        from queuectl.upkeep.rescue import rescue_dead

        rescue_dead(app.open_store(), host=host, clock=app.clock, settings=app.settings)

    return rescue


def unserved_watch(app: App) -> UnservedWatch:
    """Says one line once nobody alive has served a job's queue for two seconds."""

    def notify(job: Job) -> None:
        app.warn(f"no live worker serves the queue {printable(job.queue)!r}: queuectl worker start; still waiting")

    return UnservedWatch(app.open_reads(), app.clock, is_alive=is_alive(app), notify=notify)
