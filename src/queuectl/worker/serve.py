"""Putting a worker together and letting it work: its lock, its ledger, its signals, its loop."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from queuectl import errors
from queuectl import paths as places
from queuectl.filelock import Lock, take_lock
from queuectl.policy.gate import Gate
from queuectl.process.ledger import Ledger
from queuectl.process.spawn import forbid_inheritance
from queuectl.process.table import lives
from queuectl.worker.launch import Launcher
from queuectl.worker.loop import Worker
from queuectl.worker.plan import Duty, Plan, World
from queuectl.worker.signals import SignalPipe

HEIR_TIMEOUT: Final = 5.0


def serve(
    plan: Plan,
    world: World,
    *,
    db: str | None,
    gate: Gate,
    duties: Sequence[Duty],
    detached: bool,
    inherit: Callable[[], None],
    on_ready: Callable[[], None],
) -> int | None:
    """Work until it is over. Returns the signal that ended us at once, 0 after a graceful end or when we
    were told to leave what runs to the next worker, None if this process is to begin anew.

    `inherit` deals with what a dead worker of our name has left; it is called when the name is ours, before we put
    anything of our own in its place. Raises WorkerNameTaken if a worker of this name lives.
    """
    if not lives(plan.pid):
        raise errors.SystemUnsupported("there is no /proc: processes cannot be told apart here")
    forbid_inheritance()
    lock = _claim_name(plan, world)
    plan = plan._replace(lock=lock.mark)
    is_over = True
    try:
        inherit()
        runs_file = places.runs_file(plan.home, plan.id)
        with _of_home(plan.home):
            ledger = Ledger(runs_file)
        world.processes.open(runs_file, lock=lock.fileno(), environment=gate.environment)
        launcher = Launcher(
            worker=plan.id,
            home=plan.home,
            db=db,
            ledger=ledger,
            is_shared=world.store.is_shared,
            gate=gate,
        )
        with SignalPipe(ignore_hangup=detached) as signals:
            worker = Worker(plan, world, launcher=launcher, signals=signals, duties=duties)
            is_over = not worker.run(on_ready)
            ledger.close()
            signals.drain()
            if not is_over:
                return 0 if signals.is_leaving else None
            with contextlib.suppress(OSError):  # the whole home may be gone by now
                os.unlink(runs_file)
            return signals.last_stop if signals.stops >= 2 else 0
    finally:
        world.processes.close()
        if is_over:
            lock.remove()
        else:
            lock.release()


@contextlib.contextmanager
def _of_home(home: str) -> Iterator[None]:
    """A worker that cannot have its files there cannot work; only a disk that fills up later is no reason to go."""
    try:
        yield
    except OSError as exc:
        raise errors.HomeUnusable(home, exc.strerror or str(exc)) from exc


def _claim_name(plan: Plan, world: World) -> Lock:
    """The lock that makes the name ours."""
    path = places.lock_file(plan.home, plan.id)
    deadline = world.clock.monotonic() + HEIR_TIMEOUT
    while (lock := _take_lock(plan.home, path)) is None:
        # Held by a worker of this name; or by the heir of a dead one, who is about to let go.
        namesakes = [worker for worker in world.store.workers() if worker.id == plan.id]
        if (
            any(lives(worker.pid) and worker.pid != plan.pid for worker in namesakes)
            or world.clock.monotonic() > deadline
        ):
            raise errors.WorkerNameTaken(plan.id)
        world.clock.sleep(0.05)
    # In another home of the store another lock makes the name somebody's.
    if any(worker.id == plan.id and worker.home != plan.home for worker in world.store.workers()):
        lock.remove()
        raise errors.WorkerNameTaken(plan.id)
    return lock


def _take_lock(home: str, path: str) -> Lock | None:
    with _of_home(home):
        return take_lock(path)
