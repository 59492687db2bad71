"""Putting a worker together and letting it work: its lock, its ledger, its signals, its loop."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence

from queuectl import errors
from queuectl import home as places
from queuectl.process.ledger import Ledger
from queuectl.process.lock import Lock, take_lock
from queuectl.process.spawn import forbid_inheritance
from queuectl.worker.launch import Launcher
from queuectl.worker.loop import Worker
from queuectl.worker.plan import Duty, Plan, World
from queuectl.worker.signals import SignalPipe


def serve(
    plan: Plan,
    world: World,
    *,
    db: str | None,
    environment: Mapping[str, str],
    duties: Sequence[Duty],
    detached: bool,
    on_ready: Callable[[], None],
) -> int:
    """Work until it is over. Returns the signal that ended us at once, 0 after a graceful end.

    Raises WorkerNameTaken if a worker of this name lives.
    """
    forbid_inheritance()
    lock = _claim_name(plan)
    try:
        runs_file = places.runs_file(plan.home, plan.id)
        ledger = Ledger(runs_file)
        launcher = Launcher(
            world.processes, worker=plan.id, home=plan.home, db=db, base_environment=environment, ledger=ledger
        )
        with SignalPipe(ignore_hangup=detached) as signals:
            Worker(plan, world, launcher=launcher, signals=signals, duties=duties).run(on_ready)
            ledger.close()
            with contextlib.suppress(OSError):  # the whole home may be gone by now
                os.unlink(runs_file)
            return signals.last_stop if signals.stops >= 2 else 0
    finally:
        lock.remove()


def _claim_name(plan: Plan) -> Lock:
    lock = take_lock(places.lock_file(plan.home, plan.id))
    if lock is None:
        raise errors.WorkerNameTaken(plan.id)
    return lock
