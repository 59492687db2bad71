"""Playing seeds, and telling about one that failed so that it can be played again."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from tests.sim.scene import Scene, make_template
from tests.store.backends import swift_folder

PORTION: Final = 50
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
        self._template = folder / "template.db"
        make_template(self._template)

    def play(self, seed: int) -> Played:
        place = self._folder / "scene"
        place.mkdir()
        failure = None
        scene = Scene(seed, place, self._template)
        try:
            scene.play()
        except Exception as exc:  # noqa: BLE001 - a traceback of ours is a failure as well
            failure = Failure(seed, f"{type(exc).__name__}: {exc}", list(scene.stage.trace))
        finally:
            shutil.rmtree(place)
        return Played(failure, scene.stage.digest, list(scene.stage.trace))

    def first_failure(self, seeds: Iterable[int]) -> Failure | None:
        return next((found for seed in seeds if (found := self.play(seed).failure)), None)


@contextmanager
def theatre() -> Iterator[Theatre]:
    with swift_folder() as folder:
        yield Theatre(Path(folder))


def failures_from(first: int) -> list[Failure]:
    """Of one portion. Here and not in the program: it is run by processes that the program starts."""
    with theatre() as stage:
        return [found for seed in range(first, first + PORTION) if (found := stage.play(seed).failure)]
