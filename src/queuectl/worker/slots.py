"""Claims that have no process yet, and what they wait for: a slot (prefetch, webhook deliveries) or the values of secrets."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, Protocol

from queuectl.clock import Clock
from queuectl.jobs.model import Claim
from queuectl.secrets.resolver import Secret, Unresolved
from queuectl.text import WEBHOOK_QUEUE

# ── webhook deliveries ──────────────────────────────────────────────────────────────────────────────────────────────

WEBHOOK_SLOTS_FROM: Final = 1 << 20  # their numbers; the slots of jobs are counted from 0


class WebhookSlots:
    """Webhook deliveries wait for servers of others, so they take none of the slots, and only a few run at once."""

    def __init__(self, *, limit: int) -> None:
        """`limit` is 0 for a worker that was given their queue: there they are jobs like all others."""
        self._limit = limit
        self._tokens: set[str] = set()

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def free(self) -> int:
        return max(0, self._limit - len(self._tokens))

    def split(self, claims: Sequence[Claim]) -> tuple[Sequence[Claim], list[Claim]]:
        """Those that need a slot, and the webhook deliveries, which do not."""
        if not self._limit:
            return claims, []
        webhooks = [claim for claim in claims if claim.queue == WEBHOOK_QUEUE]
        return ([claim for claim in claims if claim.queue != WEBHOOK_QUEUE], webhooks) if webhooks else (claims, [])

    def assign(self, claims: Sequence[Claim], slots: set[int], places: set[int]) -> list[tuple[Claim, int, int]]:
        """For each a slot, and a place in the journal, that are not taken. A webhook delivery counts here until it is removed."""
        free, beside = _free(slots, 0), _free(slots, WEBHOOK_SLOTS_FROM)
        journal = _free(places, 0)
        return [(claim, next(beside if self._add(claim) else free), next(journal)) for claim in claims]

    def _add(self, claim: Claim) -> bool:
        if is_webhook := self._limit > 0 and claim.queue == WEBHOOK_QUEUE:
            self._tokens.add(claim.token)
        return is_webhook

    def remove(self, claim: Claim) -> bool:
        """Whether it was here."""
        was_here = claim.token in self._tokens
        self._tokens.discard(claim.token)
        return was_here


def _free(taken: set[int], first: int) -> Iterator[int]:
    return (number for number in itertools.count(first) if number not in taken)


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────────────────────────

NO_RESOLVER: Final = Unresolved("this worker cannot resolve secrets")


class Secrets(Protocol):
    """Resolves secrets without blocking, see secrets/resolver.py."""

    def fileno(self) -> int: ...
    def begin(self, token: str, secrets: Sequence[str], *, now: float) -> None: ...
    def turn(self, now: float) -> None: ...
    def is_known(self, token: str) -> bool: ...
    def take(self, token: str) -> list[Secret] | Unresolved: ...
    def drop(self, token: str) -> None: ...
    def wake_times(self) -> Iterator[float]: ...


class PendingSecrets:
    """Claims whose secrets are being resolved. Each has a slot."""

    def __init__(
        self, secrets: Secrets | None, clock: Clock, write_unstarted: Callable[[Collection[str]], None]
    ) -> None:
        """`write_unstarted` gets the tokens of all claims without a process whenever they change, for the process that finds us dead."""
        self._secrets = secrets
        self._clock = clock
        self._write_unstarted = write_unstarted
        self._prefetched: Collection[str] = ()
        self._held: Collection[str] = ()
        self._claims: dict[str, Claim] = {}  # by token

    def __len__(self) -> int:
        return len(self._claims)

    def set_prefetched(self, tokens: Collection[str]) -> None:
        """Other claims that were not started: those that wait for a slot."""
        self._prefetched = tokens
        self._write()

    def set_held(self, tokens: Collection[str]) -> None:
        """The same: those that wait until another run has ended, see `Executor.supervisor_lost`."""
        if tokens or self._held:
            self._held = tokens
            self._write()

    def _write(self) -> None:
        self._write_unstarted([*self._prefetched, *self._claims, *self._held])

    @property
    def sources(self) -> Sequence[Secrets]:
        """To wait for."""
        return () if self._secrets is None or not self._claims else (self._secrets,)

    def ready(self, claims: Sequence[Claim], *, may_have: Callable[[Claim], bool]) -> list[Claim]:
        """Those of these that can start, behind those whose secrets have been resolved. Nothing is requested for a claim that may not have
        its secrets: it is refused when it is to start."""
        ready, before = self._resolved(), len(self._claims)
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
            self._write()
        return ready

    def _resolved(self) -> list[Claim]:
        """Take out those whose secrets are known, or cannot be."""
        secrets = self._secrets
        if secrets is None or not self._claims:
            return []
        secrets.turn(self._clock.monotonic())
        return self._take_out(lambda claim: secrets.is_known(claim.token))

    def take(self, claim: Claim) -> Sequence[Secret] | Unresolved:
        """The secrets of a claim that starts now."""
        if not claim.secrets:
            return ()
        return NO_RESOLVER if self._secrets is None else self._secrets.take(claim.token)

    def remove(self, is_meant: Callable[[Claim], bool] = lambda _: True) -> list[Claim]:
        """Take out all of them, or those for which `is_meant` is true."""
        taken = self._take_out(is_meant)
        for claim in taken:
            self.forget(claim)
        return taken

    def _take_out(self, is_meant: Callable[[Claim], bool]) -> list[Claim]:
        taken = [claim for claim in self._claims.values() if is_meant(claim)]
        for claim in taken:
            del self._claims[claim.token]
        if taken:
            self._write()
        return taken

    def forget(self, claim: Claim) -> None:
        """It does not start."""
        if claim.secrets and self._secrets is not None:
            self._secrets.drop(claim.token)

    def wake_times(self) -> Iterator[float]:
        return iter(()) if self._secrets is None or not self._claims else self._secrets.wake_times()


# ── prefetch ────────────────────────────────────────────────────────────────────────────────────────────────────────

# A job that takes less is short; where exchanges with the store take longer than this, a job that takes less than one exchange.
SHORT_JOB: Final = 0.01
SHORT_JOBS_IN_A_ROW: Final = 8  # before any is prefetched
MAX_PREFETCHED: Final = 32  # they are in one record of the journal
# Without a free slot for this long the jobs have become longer, and the claims are given back: another worker may have a slot. At
# least two exchanges: giving back takes one, claiming again another.
STALE_AFTER: Final = 0.05
EXCHANGES: Final = 4  # how many of the latest are compared: one that was slow by chance changes nothing
# For this long after the last start, more are started only if they fill half of the slots: the supervisor, too, does better with several
# at once. The same for settling.
GATHER: Final = 0.003
SETTLE_WITHIN: Final = 0.01


class Prefetch:
    """Jobs that a worker claims ahead of a free slot, as long as its jobs are short.

    Between the end of a job and the start of the next one lie a transaction and two messages. For a job of milliseconds, or one that is
    shorter than an exchange with a distant server, that is as long as the job. So such a worker holds some claims ready, starts them while
    it settles, and settles several at once. See docs/internals/adr/0028.
    """

    def __init__(self, clock: Clock, write_unstarted: Callable[[Collection[str]], None]) -> None:
        """`write_unstarted` gets the tokens of all of them whenever they change."""
        self._clock = clock
        self._write_unstarted = write_unstarted
        self._claims: deque[tuple[Claim, float]] = deque()  # since when
        self._short = 0  # short jobs in a row
        self._average = SHORT_JOB  # moving average of their durations
        self._exchanges: deque[float] = deque(maxlen=EXCHANGES)
        self._started_at = 0.0

    def __len__(self) -> int:
        return len(self._claims)

    @property
    def _latency(self) -> float:
        """How long an exchange with the store takes."""
        return min(self._exchanges, default=0.0)

    @property
    def _stale_after(self) -> float:
        return max(STALE_AFTER, 2 * self._latency)

    def note_exchange(self, seconds: float) -> None:
        """An exchange with the store has taken this long."""
        self._exchanges.append(seconds)

    def note_duration(self, seconds: float) -> None:
        """A job has taken this long."""
        if seconds < max(SHORT_JOB, self._latency):
            self._short += 1
            self._average += (seconds - self._average) / SHORT_JOBS_IN_A_ROW
        else:
            self._short = 0

    def size(self, slots: int) -> int:
        """How many to hold ready: what the slots can start during one exchange, and two for each slot at least."""
        if self._short < max(SHORT_JOBS_IN_A_ROW, slots):
            return 0
        waves = max(2, math.ceil(self._latency / max(self._average, 0.001)))
        return min(waves * slots, MAX_PREFETCHED)

    def draw(self, more: Sequence[Claim], *, free: int, slots: int, is_busy: bool) -> list[Claim]:
        """Add these, and return those to start now in the `free` slots."""
        now = self._clock.monotonic()
        has_changed = bool(self._claims)
        self._claims.extend((claim, now) for claim in more)
        is_too_few = is_busy and free < slots // 2 and free < len(self._claims) and now < self._started_at + GATHER
        drawn = [] if free <= 0 or is_too_few else [self._claims.popleft()[0] for _ in range(min(free, len(self)))]
        if drawn:
            self._started_at = now
        if self._claims or (has_changed and drawn):
            self._write()
        return drawn

    def stale(self, now: float) -> list[Claim]:
        """Take out those that have waited for too long, while no slot became free for any. No more are prefetched until some jobs were short
        again."""
        taken = self.remove(lambda _, since: now >= max(since, self._started_at) + self._stale_after)
        if taken:
            self._short = 0
        return taken

    def remove(self, is_meant: Callable[[Claim, float], bool] = lambda *_: True) -> list[Claim]:
        """Take out all of them, or those for which `is_meant` is true."""
        taken = [claim for claim, since in self._claims if is_meant(claim, since)]
        if taken:
            self._claims = deque(item for item in self._claims if not is_meant(*item))
            self._write()
        return taken

    def stale_at(self) -> float:
        """When the first of them has waited for too long, if nothing changes."""
        return max(self._claims[0][1], self._started_at) + self._stale_after if self._claims else math.inf

    def start_at(self, free: int) -> float:
        """When to start some of them, with this many slots free."""
        return self._started_at + GATHER if self._claims and free > 0 else math.inf

    def _write(self) -> None:
        self._write_unstarted([claim.token for claim, _ in self._claims])
