"""Those who use the queue: they enqueue, cancel, retry, purge, stop workers, and crash over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from queuectl import errors
from queuectl.config import Here
from queuectl.jobs.spec import NewJob
from queuectl.jobs.states import State
from queuectl.maintenance.rescuer import rescue_dead
from queuectl.store.types import StopMode
from tests.factories import new_job
from tests.sim.host import Host
from tests.sim.stage import Crashed
from tests.sim.store import SimStore

if TYPE_CHECKING:
    from tests.sim.scene import Scene

MOST_JOBS: Final = 14


class People:
    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._deaths = 0  # of which it knows

    def _has_seen_a_death(self) -> bool:
        return self._scene.are_alert and self._scene.deaths > self._deaths

    def live(self, host: Host) -> None:
        stage, acts = (
            self._scene.stage,
            (self._enqueue,) * 5 + (self._cancel, self._retry, self._purge, self._stop, self._tidy),
        )
        store: SimStore | None = None
        while not self._scene.is_quiet:
            try:
                stage.wait(self._scene.chance() * 1.2, self._has_seen_a_death)
                if store is None:
                    store = SimStore(self._scene.path, stage, host, self._scene.witness, patience=5.0)
                act = self._tidy if self._has_seen_a_death() else acts[int(self._scene.chance() * len(acts))]
                self._deaths = self._scene.deaths
                act(store)
            except errors.QueuectlError as exc:
                stage.note(f"is told: {exc.message}")
            except Crashed:
                if store is not None:
                    store.close()
                    store = None
                stage.born_again()
        if store is not None:
            store.close()

    def _enqueue(self, store: SimStore) -> None:
        if self._scene.jobs >= MOST_JOBS:
            return
        chance, jobs = self._scene.chance, []
        for _ in range(1 + int(chance() * 3)):
            self._scene.jobs += 1
            jobs.append(
                new_job(
                    f"j{self._scene.jobs}",
                    queue="a" if chance() < 0.5 else "b",
                    priority=int(chance() * 3),
                    max_retries=int(chance() * 3),
                    first_is_free=chance() < 0.2,
                    timeout_ms=None if chance() < 0.5 else 500 + int(chance() * 1000),
                    delay_ms=None if chance() < 0.7 else int(chance() * 3000),
                    key=self._scene.key(self._scene.jobs),
                    places=self._scene.places(self._scene.jobs),
                )
            )
        jobs = self._linked(jobs)
        ids = store.enqueue(jobs)
        self._scene.stage.effect("before it is told so")
        self._scene.witness.acknowledged.update(ids)

    def _linked(self, jobs: list[NewJob]) -> list[NewJob]:
        """For those whose jobs wait for each other, see test_graphs.py."""
        return jobs

    def _some_id(self) -> str:
        return f"j{1 + int(self._scene.chance() * max(1, self._scene.jobs))}"

    def _cancel(self, store: SimStore) -> None:
        found = {job: str(answer.before) for job, answer in store.cancel([self._some_id()]).items()}
        self._scene.stage.note(f"cancels {found}")

    def _retry(self, store: SimStore) -> None:
        states = frozenset({State.FAILED, State.DEAD, State.CANCELLED})
        found = {job: str(state) for job, state in store.retry([self._some_id()], states=states).items()}
        self._scene.stage.note(f"retries {found}")

    def _purge(self, store: SimStore) -> None:
        found = {job: str(state) for job, (state, _) in store.purge([self._some_id()]).items()}
        self._scene.stage.note(f"purges {found}")

    def _stop(self, store: SimStore) -> None:
        chance = self._scene.chance
        serving = [(name, one) for name, one in self._scene.witness.serving.items() if not one.is_gone]
        if not serving or chance() < 0.5:
            return
        name, process = serving[int(chance() * len(serving))]
        if chance() < 0.5:
            mode = StopMode.NOW if chance() < 0.5 else StopMode.FINISH
            self._scene.stage.note(f"stops {name}, {mode}: {store.claims.request_stop(name, mode)}")
        else:
            self._scene.stage.note(f"sends TERM to {name}")
            process.signals.stop()

    def _tidy(self, store: SimStore) -> None:
        """As `cancel` does it, or `worker stop --now`."""
        scene, host = self._scene, store.host
        here, spare = Here(host.name, host.machine), scene.chance() < (0.2 if scene.are_alert else 0.5)
        store.spares_nothing = not spare
        try:
            rescue_dead(store, here=here, clock=host, settings=scene.settings, spare=spare, emit=scene.emit)
        finally:
            store.spares_nothing = False
