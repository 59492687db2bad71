"""What a transaction does to the counts: collected while it runs, written once at its end, the same for every dialect.

Not by triggers: they would write once a job, and the jobs of a transaction mostly make the same few moves.
"""

from __future__ import annotations

from typing import Final

OUTSIDE: Final = ""  # where a job is before it is enqueued and after it is removed
ELSEWHERE: Final = (
    "elsewhere"  # in another queue: who comes from there has not been enqueued, who goes there is not gone
)
NO_RUN: Final = ""  # the ending of a move that ends no run
REFUSED: Final = "refused"  # that of a claim which did not become one, by a policy
GIVEN_BACK: Final = "given back"  # the same, by its worker


class Moves:
    """The passages of jobs between two states that one transaction makes. Every end of a run is one of them."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str, str, str], int] = {}

    def add(self, queue: str, was: str, now: str, *, ending: str = NO_RUN, jobs: int = 1) -> None:
        move = (queue, was, now, ending)
        self._jobs[move] = self._jobs.get(move, 0) + jobs

    def net(self, queue: str, state: str) -> int:
        """How many more of a queue are in this state than before."""
        return sum(
            jobs * ((now == state) - (was == state)) for (of, was, now, _), jobs in self._jobs.items() if of == queue
        )

    def relocate(self, queue: str, to: str | None, state: str, *, jobs: int = 1) -> None:
        """Jobs in this state pass to another queue, if that is one."""
        if to is not None and to != queue:
            self.add(queue, state, ELSEWHERE, jobs=jobs)
            self.add(to, ELSEWHERE, state, jobs=jobs)

    def rows(self) -> list[tuple[str, str, str, str, int]]:
        """Queue, state before, state after, ending, and how many jobs: each combination once."""
        return [(*move, jobs) for move, jobs in self._jobs.items()]
