"""Asking workers to stop, and waiting until they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from queuectl.clock import Clock
from queuectl.job.model import Worker
from queuectl.store.protocol import StopMode, Store

LOOK_EVERY: Final = 0.02
CHECK_EVERY: Final = 0.5


class Hands(NamedTuple):
    """What can be seen of the processes of workers, and done to them, from here."""

    is_gone: Callable[[Worker], bool]  # of one that the store has forgotten
    is_stopped: Callable[[Worker], bool]  # it is there, and somebody has stopped it: it hears nothing
    wake: Callable[[Worker], None]
    kill: Callable[[Worker], None]
    is_dead: Callable[[Worker], bool]  # for certain, unlike those of other machines
    rescue: Callable[[bool], None]  # deals with the jobs of the dead; those that run on are ended only if True


class Silent(NamedTuple):
    """A worker that does not answer, and why if that can be seen."""

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
    hands: Hands,
    on_progress: Callable[[Sequence[Worker]], None],
    on_silent: Callable[[Silent], None],
) -> list[str]:
    """Ask each worker to stop and wait until it has; after `timeout` seconds ask it to end at once.

    A worker that dies on the way is taken care of. `on_silent` is told, once, of one that does not answer: it is stopped,
    or gave no sign for a whole `lease`. A stopped one that is to end at once is woken for it, and killed if that has not
    helped for `patience` seconds. Returns the names, in the order they went.
    """
    begin = clock.monotonic()
    for worker in workers:
        store.request_stop(worker.id, mode)
    waiting = {worker.id: worker for worker in workers}
    watch = _Watch(hands, patience=patience, lease=lease, on_silent=on_silent)
    forgotten: set[str] = set()
    stopped: list[str] = []
    check_at = begin
    while waiting:
        now = clock.monotonic()
        if timeout is not None and mode is StopMode.FINISH and now - begin >= timeout:
            mode = StopMode.NOW
            for name in waiting:
                store.request_stop(name, mode)
        is_time_to_check = now >= check_at
        if is_time_to_check:
            check_at = now + CHECK_EVERY
            hands.rescue(mode is StopMode.NOW)
        registered = {worker.id: worker for worker in store.workers()}
        for name, worker in list(waiting.items()):
            current = registered.get(name)
            # Another worker may have taken the name in the meantime.
            if current is None or current.pid != worker.pid:
                if hands.is_gone(worker):
                    stopped.append(name)
                    del waiting[name]
                    continue
                forgotten.add(name)
            elif is_time_to_check and hands.is_dead(worker):  # what it has left running is spared, or has been seen to
                stopped.append(name)
                del waiting[name]
                continue
            elif name in forgotten:
                # It was silent for so long that it was declared lost, and begins anew: without the order that it had.
                forgotten.discard(name)
                store.request_stop(name, mode)
            if is_time_to_check:
                watch.look(current or worker, now, at_once=mode is StopMode.NOW)
        on_progress([registered.get(name, worker) for name, worker in waiting.items()])
        if waiting:
            clock.sleep(LOOK_EVERY)
    return stopped


class _Watch:
    """Looks whether workers answer, and what can be done about one that does not."""

    def __init__(self, hands: Hands, *, patience: float, lease: float, on_silent: Callable[[Silent], None]) -> None:
        self._hands = hands
        self._patience = patience
        self._lease = lease
        self._on_silent = on_silent
        self._stopped_since: dict[str, float] = {}
        self._beats: dict[str, tuple[int, float]] = {}
        self._told: set[str] = set()
        self._woken: dict[str, float] = {}

    def look(self, worker: Worker, now: float, *, at_once: bool) -> None:
        if not self._hands.is_stopped(worker):
            self._stopped_since.pop(worker.id, None)
            self._listen(worker, now)
            return
        # Seen twice: somebody may be stopping and continuing it for a moment.
        if now - self._stopped_since.setdefault(worker.id, now) < CHECK_EVERY:
            return
        self._tell(worker, is_stopped=True)
        if not at_once:
            return
        if now - self._woken.setdefault(worker.id, now) >= self._patience:
            self._hands.kill(worker)
        else:
            self._hands.wake(worker)

    def _listen(self, worker: Worker, now: float) -> None:
        beats, since = self._beats.get(worker.id, (-1, now))
        if beats != worker.beats:
            self._beats[worker.id] = (worker.beats, now)
        elif now - since >= self._lease:
            self._tell(worker, is_stopped=False)

    def _tell(self, worker: Worker, *, is_stopped: bool) -> None:
        if worker.id not in self._told:
            self._told.add(worker.id)
            self._on_silent(Silent(worker, is_stopped))
