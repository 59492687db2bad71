"""A worker's name in the store: taking it, saying that it lives, giving it back."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Final

from queuectl.errors import StoreRefused
from queuectl.events import WakeUpSilent
from queuectl.settings import Settings
from queuectl.store.protocol import Wakeup
from queuectl.store.types import NewWorker, Span
from queuectl.worker.plan import Plan, World
from queuectl.worker.signals import SignalPipe
from queuectl.worker.trouble import RETRY_EVERY, Trouble

FAREWELL: Final = 5.0


class Membership:
    """`bell` rings for us from `enrol` on."""

    bell: Wakeup

    def __init__(self, plan: Plan, world: World, *, signals: SignalPipe, trouble: Trouble) -> None:
        self._plan = plan
        self._world = world
        self._store = world.store
        self._signals = signals
        self._trouble = trouble
        self._mentioned: set[str] = set()
        self._sign_at = 0.0  # when we last gave a sign, or shortly before

    def enrol(self, slots: int, *, patience: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Begin to work under our name. Raises what keeps us from it, at once if waiting cannot help."""
        plan = self._plan
        card = NewWorker(plan.id, plan.host, plan.pid, plan.home, slots, plan.queues, plan.machine, plan.lock)
        self._sign_at = self._world.clock.monotonic()
        deadline = self._sign_at + patience
        while (bell := self._trouble.attempt(lambda: self._store.register(card))) is None:
            is_late = self._world.clock.monotonic() >= deadline or self._signals.stops > 0
            # What it refuses to whoever begins somebody has to grant first. One that was lost has jobs of its own to think of.
            is_refused = math.isfinite(patience) and isinstance(self._trouble.last, StoreRefused)
            if self._trouble.last and (self._trouble.is_fatal or is_refused or is_late):
                raise self._trouble.last
            self._pause()
            meanwhile()
            self._sign_at = self._world.clock.monotonic()
        self.bell = bell
        self._mention_silence()

    def say_alive(self, *, slots: int, stopping: bool) -> bool | None:
        """Whether the store still knows us, None if it cannot be asked."""
        now = self._world.clock.monotonic()
        known = self._trouble.attempt(lambda: self._store.heartbeat(self._plan.id, slots=slots, stopping=stopping))
        if known:
            self._sign_at = now
            self._mention_silence()
        return known

    def is_fresh(self, settings: Settings) -> bool:
        """Whether our last sign of life is not older than a lease, so that what the store gave us is ours without asking."""
        return self._world.clock.monotonic() - self._sign_at < settings.lease_ms / 1000

    def is_sure(self, say_alive: Callable[[], bool | None], settings: Settings) -> bool:
        """Whether what the store gave us is ours still. Nobody takes us for lost within a lease of our last sign; later, as when
        we were stopped, it has to be asked. False also if it cannot be."""
        while not self.is_fresh(settings):
            if not say_alive():
                return False
        return True

    def give_back(self, spans: Mapping[str, Span], *, max_crashes: int) -> bool:
        """Give back, by token, what was taken from us, now that nothing of it runs. Whoever took it may be gone, too, and
        then nobody else does. False if the store cannot be asked."""
        me, only = self._plan.id, frozenset(spans)
        lost = self._trouble.attempt(lambda: self._store.rescue(me, max_crashes=max_crashes, spans=spans, only=only))
        return lost is not None

    def leave(self) -> None:
        """Be forgotten. Whoever is in a hurry, or waits in vain, leaves that to others: they see that we are gone."""
        deadline = self._world.clock.monotonic() + FAREWELL
        while self._trouble.attempt(self._retire) is None and not self._trouble.is_fatal and self._signals.stops < 2:
            if self._world.clock.monotonic() >= deadline:
                return
            self._pause()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # closed already, if the store went while we began anew
            self.bell.close()

    def _mention_silence(self) -> None:
        """Once for each reason: it may last for as long as we live."""
        why = self.bell.polling_because
        if why is not None and why not in self._mentioned:
            self._mentioned.add(why)
            self._world.emit(WakeUpSilent(why))

    def _retire(self) -> bool:
        self._store.retire(self._plan.id)
        return True

    def _pause(self) -> None:
        """Between two attempts of something without which nothing else can be done."""
        self._world.wait((self._signals,), RETRY_EVERY)
        self._signals.drain()
