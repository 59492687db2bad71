"""Asking workers to stop, and waiting until they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from queuectl.clock import Clock
from queuectl.job.model import Worker
from queuectl.store.protocol import StopMode, Store

LOOK_EVERY: Final = 0.02
CHECK_EVERY: Final = 0.5


def stop_workers(
    store: Store,
    clock: Clock,
    workers: Sequence[Worker],
    *,
    mode: StopMode,
    timeout: float | None,
    is_gone: Callable[[Worker], bool],
    rescue: Callable[[], None],
    on_progress: Callable[[Sequence[Worker]], None],
) -> list[str]:
    """Ask each worker to stop and wait until it has; after `timeout` seconds ask it to end at once.

    A worker that dies on the way is taken care of by `rescue`. `is_gone` says whether the process of a worker that the
    store has forgotten has ended. Returns the names, in the order they went.
    """
    begin = clock.monotonic()
    for worker in workers:
        store.request_stop(worker.id, mode)
    waiting = {worker.id: worker for worker in workers}
    stopped: list[str] = []
    check_at = begin
    while waiting:
        now = clock.monotonic()
        if timeout is not None and mode is StopMode.FINISH and now - begin >= timeout:
            mode = StopMode.NOW
            for name in waiting:
                store.request_stop(name, mode)
        if now >= check_at:
            check_at = now + CHECK_EVERY
            rescue()
        registered = {worker.id: worker for worker in store.workers()}
        for name, worker in list(waiting.items()):
            current = registered.get(name)
            # Another worker may have taken the name in the meantime.
            if (current is None or current.pid != worker.pid) and is_gone(worker):
                stopped.append(name)
                del waiting[name]
        on_progress([registered.get(name, worker) for name, worker in waiting.items()])
        if waiting:
            clock.sleep(LOOK_EVERY)
    return stopped
