"""Several at the same time: threads, each with a store of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

from queuectl.clock import Clock
from queuectl.store.store import Store
from tests.store.backends import Backend
from tests.store.hands import Hands

WORKERS = 3


def at_once(*tasks: Callable[[], None]) -> None:
    """Run all of them, each in a thread; whatever one raises is raised here."""
    failures: list[BaseException] = []
    gate = threading.Barrier(len(tasks))

    def guarded(task: Callable[[], None]) -> None:
        try:
            gate.wait(20)
            task()
        except BaseException as exc:  # noqa: BLE001 # a thread's failure is the test's
            failures.append(exc)

    threads = [threading.Thread(target=guarded, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(40)
        assert not thread.is_alive(), "a thread does not end"
    if failures:
        raise failures[0]


def work_at_once(
    backend: Backend,
    clock: Clock,
    look: Callable[[Store], int],
    *,
    turns: int = 200,
    meanwhile: Callable[[Store, int], object] = lambda store, turn: None,
) -> list[int]:
    """Three workers claim some jobs and end them, until nothing is left to do or for so many turns. What each saw by `look`, every
    time between the two; `meanwhile`: what each does there beside that, turn by turn."""
    seen: list[int] = []

    def work(name: str) -> None:
        mine = backend.open(clock)
        hands = Hands(mine, backend.home, name=name)
        try:
            for turn in range(turns):
                claims = hands.claim(3)
                seen.append(look(mine))
                meanwhile(mine, turn)
                for claim in claims:
                    hands.end(claim)
                if mine.is_drained(None):
                    break
        finally:
            hands.wakeup.close()
            mine.close()

    at_once(*(partial(work, f"t{number}") for number in range(WORKERS)))
    return seen


def most_of_a_key(store: Store) -> int:
    """How many of the key run of which most do."""
    return max(map(len, store.queues.running_keys().values()), default=0)
