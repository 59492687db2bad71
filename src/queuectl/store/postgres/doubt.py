"""What an exchange may have done whose answer never came.

The connection broke between the commit and its answer: the ends that were sent may be written, and jobs may have been
claimed for a worker that never heard of them. Both can be told afterwards by the tokens, which are made here and not by
the server. Only what was in such an exchange is looked up: an end of somebody else's run stays lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from queuectl.job.model import Claim


class Doubt:
    def __init__(self) -> None:
        self._ends: set[str] = set()
        self._offers: set[str] = set()
        self._found: list[Claim] = []

    def add(self, *, ends: Iterable[str], offers: Iterable[str]) -> None:
        """The tokens of the runs that were to be ended, and those that were to be given to new ones."""
        self._ends.update(ends)
        self._offers.update(offers)

    def is_about_end(self, token: str) -> bool:
        return token in self._ends

    def forget_end(self, token: str) -> None:
        self._ends.discard(token)

    @property
    def has_offers(self) -> bool:
        return bool(self._offers)

    def look(self, running: Iterable[Claim]) -> None:
        """These are the worker's: those with a token that was offered were claimed, and nobody has begun them."""
        self._found += [claim for claim in running if claim.token in self._offers]
        self._offers.clear()

    def hand_out(self, limit: int) -> list[Claim]:
        """Claims to begin now."""
        given, self._found = self._found[:limit], self._found[limit:]
        return given

    def take_back(self, claims: Sequence[Claim]) -> None:
        """What was handed out did not reach the worker."""
        self._found = [*claims, *self._found]
