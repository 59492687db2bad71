"""Playing seeds, and telling about one that failed so that it can be played again."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.sim.pool import Pool
from tests.sim.scene import Scene
from tests.swift import swift_folder

PORTION: Final = 50
GARBAGE: Final = 20_000
REPLAY: Final = "python -m tests.sim --seed {seed}"


class Failure(NamedTuple):
    seed: int
    what: str
    trace: list[str]

    def __str__(self) -> str:
        events = "\n".join(self.trace)
        return f"seed {self.seed}: {self.what}\nagain: {REPLAY.format(seed=self.seed)}\n\n{events}"


class Played(NamedTuple):
    failure: Failure | None
    digest: str  # of all that happened
    trace: list[str]


class Theatre:
    """Where seeds are played, one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pool = Pool(folder / "queue.db")

    def play(self, seed: int) -> Played:
        failure = None
        self._pool.clear()
        scene = Scene(seed, self._folder, self._pool)
        try:
            scene.play()
        except Exception as exc:  # noqa: BLE001 - a traceback of ours is a failure as well
            failure = Failure(seed, f"{type(exc).__name__}: {exc}", list(scene.stage.trace))
            self._pool.forget()
        finally:
            for host in scene.hosts:
                shutil.rmtree(host.home)
        return Played(failure, scene.stage.digest, list(scene.stage.trace))

    def close(self) -> None:
        self._pool.forget()

    def first_failure(self, seeds: Iterable[int]) -> Failure | None:
        return next((found for seed in seeds if (found := self.play(seed).failure)), None)


@contextmanager
def theatre() -> Iterator[Theatre]:
    # A play makes much and throws away little of it: looking for circles every 700 objects takes a twentieth of the time.
    before = gc.get_threshold()
    gc.set_threshold(GARBAGE, *before[1:])
    try:
        with swift_folder() as folder:
            stage = Theatre(Path(folder))
            yield stage
            stage.close()
    finally:
        gc.set_threshold(*before)


def failures_from(first: int) -> list[Failure]:
    """Of one portion. Here and not in the program: it is run by processes that the program starts."""
    with theatre() as stage:
        return [found for seed in range(first, first + PORTION) if (found := stage.play(seed).failure)]
