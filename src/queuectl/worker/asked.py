"""Jobs whose secrets are being found out. Each has a slot, and nothing of it has begun."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

from queuectl.clock import Clock
from queuectl.jobs.model import Claim
from queuectl.secrets.resolver import Secret, Unresolved

NOBODY = Unresolved("this worker cannot find out secrets")


class Secrets(Protocol):
    """What a worker asks of whoever knows the secrets of its host, see secrets/vault.py."""

    def fileno(self) -> int: ...
    def begin(self, token: str, secrets: Sequence[str], *, now: float) -> None: ...
    def turn(self, now: float) -> None: ...
    def is_known(self, token: str) -> bool: ...
    def take(self, token: str) -> list[Secret] | Unresolved: ...
    def drop(self, token: str) -> None: ...
    def wake_times(self) -> Iterator[float]: ...


class Asked:
    def __init__(self, secrets: Secrets | None, clock: Clock, note: Callable[[Collection[str]], None]) -> None:
        """`note` is told all that was claimed and not begun, whenever that changes: who finds us dead should know."""
        self._secrets = secrets
        self._clock = clock
        self._note = note
        self._reserved: Collection[str] = ()
        self._claims: dict[str, Claim] = {}  # by token

    def __len__(self) -> int:
        return len(self._claims)

    def note_reserve(self, tokens: Collection[str]) -> None:
        """What else was not begun."""
        self._reserved = tokens
        self._note([*tokens, *self._claims])

    @property
    def sources(self) -> Sequence[Secrets]:
        """To wait for."""
        return () if self._secrets is None or not self._claims else (self._secrets,)

    def sift(self, claims: Sequence[Claim], *, may_have: Callable[[Claim], bool]) -> list[Claim]:
        """Those of these that can begin, behind those whose secrets have become known. Who may not have what it asks for is told so
        when it is to begin: nobody is asked for it."""
        ready, before = self.known(), len(self._claims)
        for claim in claims:
            if not claim.secrets or self._secrets is None or not may_have(claim):
                ready.append(claim)
                continue
            self._secrets.begin(claim.token, claim.secrets, now=self._clock.monotonic())
            if self._secrets.is_known(claim.token):
                ready.append(claim)
            else:
                self._claims[claim.token] = claim
        if len(self._claims) > before:
            self.note_reserve(self._reserved)
        return ready

    def known(self) -> list[Claim]:
        """Take out those whose secrets have become known, or never will."""
        secrets = self._secrets
        if secrets is None or not self._claims:
            return []
        secrets.turn(self._clock.monotonic())
        return self._taken(lambda claim: secrets.is_known(claim.token))

    def take(self, claim: Claim) -> Sequence[Secret] | Unresolved:
        """The secrets of one that begins now."""
        if not claim.secrets:
            return ()
        return NOBODY if self._secrets is None else self._secrets.take(claim.token)

    def remove(self, which: Callable[[Claim], bool] = lambda _: True) -> list[Claim]:
        """All of them, or those of which this is true."""
        taken = self._taken(which)
        for claim in taken:
            self.forget(claim)
        return taken

    def _taken(self, which: Callable[[Claim], bool]) -> list[Claim]:
        taken = [claim for claim in self._claims.values() if which(claim)]
        for claim in taken:
            del self._claims[claim.token]
        if taken:
            self.note_reserve(self._reserved)
        return taken

    def forget(self, claim: Claim) -> None:
        """It does not begin."""
        if claim.secrets and self._secrets is not None:
            self._secrets.drop(claim.token)

    def wake_times(self) -> Iterator[float]:
        return iter(()) if self._secrets is None or not self._claims else self._secrets.wake_times()
