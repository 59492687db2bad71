"""Letting workers begin anew in place, and waiting until they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from queuectl.clock import Clock
from queuectl.errors import WorkerFailed
from queuectl.job.model import Worker
from queuectl.queue.pick import Answer, Refusal
from queuectl.store.protocol import StopMode, Store

LOOK_EVERY: Final = 0.02
GONE_AFTER: Final = 10.0


def restart_workers(
    store: Store, clock: Clock, workers: Sequence[Worker], *, is_alive: Callable[[Worker], bool], patience: float
) -> Answer:
    """Ask each worker to begin anew, and wait until it has; what it runs goes on meanwhile.

    One that ends instead, or does not answer for `patience` seconds, is refused. While it begins it holds no lock, and its name is
    forgotten before it is taken again: for a while it says nothing that it looks as if it were gone.
    """
    seen: dict[str, float] = {}
    for worker in workers:
        store.request_stop(worker.id, StopMode.RESTART)
    waiting = {worker.id: worker for worker in workers}
    deadline = clock.monotonic() + patience
    answer = Answer([], [])
    while waiting:
        registered = {worker.id: worker for worker in store.workers()}
        for name, before in list(waiting.items()):
            now = registered.get(name)
            if now is not None and is_alive(now):
                seen[name] = clock.monotonic()
            if now is not None and now.started_at > before.started_at and now.state == "running":
                answer.done.append(name)
            elif clock.monotonic() - seen.setdefault(name, clock.monotonic()) > GONE_AFTER:
                answer.refused.append(Refusal(name, _failed(f"worker {name} has ended instead")))
            elif clock.monotonic() >= deadline:
                answer.refused.append(Refusal(name, _failed(f"worker {name} does not answer")))
            else:
                continue
            del waiting[name]
        if waiting:
            clock.sleep(LOOK_EVERY)
    return answer


def _failed(problem: str) -> WorkerFailed:
    return WorkerFailed(
        problem, hint="queuectl worker list shows who works; start one again with queuectl worker start"
    )
