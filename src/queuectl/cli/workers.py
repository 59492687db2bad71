"""The workers, as commands see them: who lives, and what to do about those who do not.

The modules that know are loaded when somebody asks: most commands never do.
"""

from __future__ import annotations

from collections.abc import Callable

from queuectl.cli.app import App
from queuectl.cli.printable import printable
from queuectl.config import here
from queuectl.job.model import Job, Worker
from queuectl.queue.stop import Hands
from queuectl.queue.wait import UnservedWatch


def store_line(app: App) -> str | None:
    """Which store this is about, unless it is the one that every home has: who looks at another one than the workers do
    wonders why nothing happens."""
    from queuectl.store.open import store_shown

    shown = store_shown(app.home, app.db)
    return None if shown is None else f"store: {printable(shown)}"


def is_alive(app: App) -> Callable[[Worker], bool]:
    where = here(app.environ)

    def lives(worker: Worker) -> bool:
        from queuectl.upkeep.liveness import is_alive as lives_on

        return lives_on(worker, here=where)

    return lives


def is_serving(app: App) -> Callable[[Worker], bool]:
    """Whether it lives and gives signs of it. One that is stopped for longer than the lease is treated as gone."""
    where = here(app.environ)

    def serves(worker: Worker) -> bool:
        from queuectl.upkeep.liveness import is_serving as serves_on

        return serves_on(worker, here=where, now_ms=app.open_reads().now_ms(), lease_ms=lambda: app.settings.lease_ms)

    return serves


def hands(app: App) -> Hands:
    """What `worker stop` can see and do from here."""
    from queuectl.upkeep import stopped

    where, alive = here(app.environ), is_alive(app)
    return Hands(
        # Of another host nobody here can see the process: that the store has forgotten it has to do.
        is_gone=lambda worker: worker.machine != where.machine or not alive(worker),
        is_dead=lambda worker: worker.machine == where.machine and not alive(worker),
        is_stopped=lambda worker: stopped.is_stopped(worker, here=where),
        wake=lambda worker: stopped.wake(worker, here=where),
        kill=lambda worker: stopped.kill(worker, here=where),
        rescue=lambda at_once: rescuer(app, spare=not at_once)(),
    )


def rescuer(app: App, *, spare: bool) -> Callable[[], None]:
    """Deals with the jobs of dead workers of this host. `spare`: those that run on, and were not called off, may."""
    where = here(app.environ)

    def rescue() -> None:
        from queuectl.upkeep.rescue import rescue_dead

        rescue_dead(app.open_store(), here=where, clock=app.clock, settings=app.settings, spare=spare)

    return rescue


def unserved_watch(app: App) -> UnservedWatch:
    """Says one line once nobody alive has served a job's queue for two seconds."""

    def notify(job: Job) -> None:
        app.warn(f"no live worker serves the queue {printable(job.queue)!r}: queuectl worker start; still waiting")

    return UnservedWatch(app.open_reads(), app.clock, is_alive=is_serving(app), notify=notify)
