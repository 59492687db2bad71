"""Stop and restart workers, and wait until they have done so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.errors import WorkerFailed
from queuectl.jobs.model import BulkResult, Refusal, Worker
from queuectl.store.store import Store
from queuectl.store.types import StopMode

POLL_SECONDS: Final = 0.02
CHECK_SECONDS: Final = 0.5


class WorkerProcesses(NamedTuple):
    """Access to the processes of workers."""

    is_gone: Callable[[Worker], bool]  # of a worker that is not registered any more
    is_stopped: Callable[[Worker], bool]  # by SIGSTOP: it does not react
    wake: Callable[[Worker], None]
    kill: Callable[[Worker], None]
    is_dead: Callable[[Worker], bool]  # for certain: never of a worker on another host
    rescue: Callable[[bool], None]  # recover the jobs of dead workers; True: terminate those that still run


class UnresponsiveWorker(NamedTuple):
    """A worker that does not react; `is_stopped`: by SIGSTOP."""

    worker: Worker
    is_stopped: bool


def stop_workers(
    store: Store,
    clock: Clock,
    workers: Sequence[Worker],
    *,
    mode: StopMode,
    timeout: float | None,
    patience: float,
    lease: float,
    processes: WorkerProcesses,
    on_progress: Callable[[Sequence[Worker]], None],
    on_silent: Callable[[UnresponsiveWorker], None],
) -> list[str]:
    """Ask each worker to stop and wait until it has; after `timeout` seconds ask it to stop at once.

    The jobs of a worker that dies meanwhile are rescued. `on_silent` is called once for a worker that does not react: it is stopped by
    SIGSTOP, or had no heartbeat for a `lease`. A stopped one that is to stop at once is continued, and killed after `patience`
    seconds. Returns the names in the order in which they stopped.
    """
    begin = clock.monotonic()
    for worker in workers:
        store.claims.request_stop(worker.id, mode)
    waiting = {worker.id: worker for worker in workers}
    watch = _ResponseWatch(processes, patience=patience, lease=lease, on_silent=on_silent)
    forgotten: set[str] = set()
    stopped: list[str] = []
    check_at = begin
    while waiting:
        now = clock.monotonic()
        if timeout is not None and mode is StopMode.FINISH and now - begin >= timeout:
            mode = StopMode.NOW
            for name in waiting:
                store.claims.request_stop(name, mode)
        is_time_to_check = now >= check_at
        if is_time_to_check:
            check_at = now + CHECK_SECONDS
            processes.rescue(mode is StopMode.NOW)
        registered = {worker.id: worker for worker in store.workers()}
        for name, worker in list(waiting.items()):
            current = registered.get(name)
            # Another worker may have the name now.
            if current is None or current.pid != worker.pid:
                if processes.is_gone(worker):
                    stopped.append(name)
                    del waiting[name]
                    continue
                forgotten.add(name)
            elif is_time_to_check and processes.is_dead(worker):  # its jobs have been rescued, or are adopted later
                stopped.append(name)
                del waiting[name]
                continue
            elif name in forgotten:
                # Its lease expired and it registered again, without the request to stop.
                forgotten.discard(name)
                store.claims.request_stop(name, mode)
            if is_time_to_check:
                watch.look(current or worker, now, at_once=mode is StopMode.NOW)
        on_progress([registered.get(name, worker) for name, worker in waiting.items()])
        if waiting:
            clock.sleep(POLL_SECONDS)
    return stopped


class _ResponseWatch:
    """Checks whether workers react, and continues or kills one that does not."""

    def __init__(
        self,
        processes: WorkerProcesses,
        *,
        patience: float,
        lease: float,
        on_silent: Callable[[UnresponsiveWorker], None],
    ) -> None:
        self._processes = processes
        self._patience = patience
        self._lease = lease
        self._on_silent = on_silent
        self._stopped_since: dict[str, float] = {}
        self._beats: dict[str, tuple[int, float]] = {}
        self._reported: set[str] = set()
        self._woken: dict[str, float] = {}

    def look(self, worker: Worker, now: float, *, at_once: bool) -> None:
        if not self._processes.is_stopped(worker):
            self._stopped_since.pop(worker.id, None)
            self._listen(worker, now)
            return
        # Only if seen twice: it may be stopped and continued for a moment.
        if now - self._stopped_since.setdefault(worker.id, now) < CHECK_SECONDS:
            return
        self._report(worker, is_stopped=True)
        if not at_once:
            return
        if now - self._woken.setdefault(worker.id, now) >= self._patience:
            self._processes.kill(worker)
        else:
            self._processes.wake(worker)

    def _listen(self, worker: Worker, now: float) -> None:
        beats, since = self._beats.get(worker.id, (-1, now))
        if beats != worker.beats:
            self._beats[worker.id] = (worker.beats, now)
        elif now - since >= self._lease:
            self._report(worker, is_stopped=False)

    def _report(self, worker: Worker, *, is_stopped: bool) -> None:
        if worker.id not in self._reported:
            self._reported.add(worker.id)
            self._on_silent(UnresponsiveWorker(worker, is_stopped))


DEAD_AFTER_SECONDS: Final = 10.0


def restart_workers(
    store: Store, clock: Clock, workers: Sequence[Worker], *, is_alive: Callable[[Worker], bool], patience: float
) -> BulkResult:
    """Ask each worker to restart in place, and wait until it has; its jobs continue.

    A worker that ends instead, or does not react for `patience` seconds, is refused. While it restarts it holds no lock and is not
    registered, so it counts as dead only after DEAD_AFTER_SECONDS.
    """
    seen: dict[str, float] = {}
    for worker in workers:
        store.claims.request_stop(worker.id, StopMode.RESTART)
    waiting = {worker.id: worker for worker in workers}
    deadline = clock.monotonic() + patience
    answer = BulkResult([], [])
    while waiting:
        registered = {worker.id: worker for worker in store.workers()}
        for name, before in list(waiting.items()):
            now = registered.get(name)
            if now is not None and is_alive(now):
                seen[name] = clock.monotonic()
            if now is not None and now.started_at > before.started_at and now.state == "running":
                answer.done.append(name)
            elif clock.monotonic() - seen.setdefault(name, clock.monotonic()) > DEAD_AFTER_SECONDS:
                answer.refused.append(Refusal(name, _failed(f"worker {name} has ended instead")))
            elif clock.monotonic() >= deadline:
                answer.refused.append(Refusal(name, _failed(f"worker {name} does not answer")))
            else:
                continue
            del waiting[name]
        if waiting:
            clock.sleep(POLL_SECONDS)
    return answer


def _failed(problem: str) -> WorkerFailed:
    return WorkerFailed(
        problem, hint="queuectl worker list shows who works; start one again with queuectl worker start"
    )
