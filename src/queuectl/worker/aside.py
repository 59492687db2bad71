"""Calls that a worker makes beside its jobs: they wait for strangers, so they take none of its slots, and are few."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from queuectl.jobs.model import Claim
from queuectl.text import WEBHOOK_QUEUE

FIRST: Final = 1 << 20  # they are numbered from here on: the slots of jobs are counted from 0


class Aside:
    def __init__(self, *, most: int) -> None:
        """`most` is 0 for a worker that was given their queue: there they are jobs like all others."""
        self._most = most
        self._tokens: set[str] = set()

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def room(self) -> int:
        return max(0, self._most - len(self._tokens))

    def split(self, claims: Sequence[Claim]) -> tuple[Sequence[Claim], list[Claim]]:
        """Those that need a slot, and those that do not."""
        if not self._most:
            return claims, []
        calls = [claim for claim in claims if claim.queue == WEBHOOK_QUEUE]
        return ([claim for claim in claims if claim.queue != WEBHOOK_QUEUE], calls) if calls else (claims, calls)

    def places(self, claims: Sequence[Claim], slots: set[int], places: set[int]) -> list[tuple[Claim, int, int]]:
        """For each a slot and a place in the ledger that are not taken. What needs no slot counts here until it is removed."""
        free, beside = _free(slots, 0), _free(slots, FIRST)
        ledger = _free(places, 0)
        return [(claim, next(beside if self._add(claim) else free), next(ledger)) for claim in claims]

    def _add(self, claim: Claim) -> bool:
        if is_aside := self._most > 0 and claim.queue == WEBHOOK_QUEUE:
            self._tokens.add(claim.token)
        return is_aside

    def remove(self, claim: Claim) -> bool:
        """Whether it was here."""
        was_here = claim.token in self._tokens
        self._tokens.discard(claim.token)
        return was_here


def _free(taken: set[int], first: int) -> Iterator[int]:
    return (number for number in itertools.count(first) if number not in taken)
