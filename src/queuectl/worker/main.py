"""Run a worker: take the lock on its name, open its journal, start its supervisor, and run the loop."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from queuectl import errors, paths
from queuectl.filelock import Lock, take_lock
from queuectl.policy.gate import Gate
from queuectl.process.journal import Journal
from queuectl.process.output import max_runs
from queuectl.process.tree import is_alive
from queuectl.worker.config import MaintenanceTask, WorkerConfig, WorkerContext
from queuectl.worker.launcher import Launcher
from queuectl.worker.loop import Worker
from queuectl.worker.signals import SignalPipe

# A process that rescues the jobs of a dead worker of this name holds its lock for a moment.
LOCK_TIMEOUT: Final = 5.0
LOCK_RETRY_EVERY: Final = 0.05


def run_worker(
    config: WorkerConfig,
    context: WorkerContext,
    *,
    db: str | None,
    gate: Gate,
    tasks: Sequence[MaintenanceTask],
    detached: bool,
    rescue_namesake: Callable[[], None],
    on_ready: Callable[[], None],
) -> int | None:
    """Run a worker until it is done. Returns the signal that ended it at once, 0 after a graceful end or when it was told to leave its jobs to
    the next worker, None if this process is to restart the worker in place.

    `rescue_namesake` recovers the jobs of a dead worker of our name; it is called when the name is ours, before anything of ours replaces its
    files. Raises WorkerNameTaken if a worker of this name is alive.
    """
    if not is_alive(config.pid):
        raise errors.SystemUnsupported("the process table cannot be read: processes cannot be identified here")
    if (config.slots or 1) > max_runs():
        raise errors.TooManySlots(config.slots or 1, max(0, max_runs()))
    lock = _lock_name(config, context)
    config = config._replace(lock=lock.mark)
    is_over = True
    try:
        rescue_namesake()
        runs_file = paths.runs_file(config.home, config.id)
        with _home_errors(config.home):
            journal = Journal(runs_file)
        context.processes.open(runs_file, lock=lock.fileno(), environment=gate.environment)
        launcher = Launcher(worker=config.id, home=config.home, db=db, journal=journal, gate=gate)
        with SignalPipe(ignore_hangup=detached) as signals:
            worker = Worker(config, context, launcher=launcher, signals=signals, tasks=tasks)
            is_over = not worker.run(on_ready)
            journal.close()
            signals.drain()
            if not is_over:
                return 0 if signals.is_leaving else None
            with contextlib.suppress(OSError):  # the data directory may have been removed
                os.unlink(runs_file)
            return signals.last_stop if signals.stops >= 2 else 0
    finally:
        context.processes.close()
        if is_over:
            lock.remove()
        else:
            lock.release()


@contextlib.contextmanager
def _home_errors(home: str) -> Iterator[None]:
    """A worker that cannot create its files cannot work; a disk that becomes full later does not end it."""
    try:
        yield
    except OSError as exc:
        raise errors.HomeUnusable(home, exc.strerror or str(exc)) from exc


def _lock_name(config: WorkerConfig, context: WorkerContext) -> Lock:
    """The lock that makes the name ours."""
    path = paths.lock_file(config.home, config.id)
    deadline = context.clock.monotonic() + LOCK_TIMEOUT
    while (lock := _take_lock(config.home, path)) is None:
        # Held by a worker of this name; or, for a moment, by the rescuer of a dead one.
        namesakes = [worker for worker in context.store.workers() if worker.id == config.id]
        if (
            any(is_alive(worker.pid) and worker.pid != config.pid for worker in namesakes)
            or context.clock.monotonic() > deadline
        ):
            raise errors.WorkerNameTaken(config.id)
        context.clock.sleep(LOCK_RETRY_EVERY)
    # In another data directory of the same store, the name has another lock.
    if any(worker.id == config.id and worker.home != config.home for worker in context.store.workers()):
        lock.remove()
        raise errors.WorkerNameTaken(config.id)
    return lock


def _take_lock(home: str, path: str) -> Lock | None:
    with _home_errors(home):
        return take_lock(path)
