"""Claims that have no process yet, and what they wait for: a slot (prefetch, webhook deliveries) or the values of secrets."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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
        webhooks = [claim for claim in claims if self.is_webhook(claim)]
        return [claim for claim in claims if not self.is_webhook(claim)], webhooks

    def is_webhook(self, claim: Claim) -> bool:
        return self._limit > 0 and claim.queue == WEBHOOK_QUEUE

    def add(self, claim: Claim) -> bool:
        """Count a webhook delivery until it is removed. False if this is none."""
        if is_webhook := self.is_webhook(claim):
            self._tokens.add(claim.token)
        return is_webhook

    def remove(self, claim: Claim) -> bool:
        """Whether it was here."""
        was_here = claim.token in self._tokens
        self._tokens.discard(claim.token)
        return was_here


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

    def __init__(self, secrets: Secrets | None, clock: Clock) -> None:
        self._secrets = secrets
        self._clock = clock
        self._claims: dict[str, Claim] = {}  # by token

    def __len__(self) -> int:
        return len(self._claims)

    @property
    def sources(self) -> Sequence[Secrets]:
        """To wait for."""
        return () if self._secrets is None or not self._claims else (self._secrets,)

    def ready(self, claims: Sequence[Claim], *, may_have: Callable[[Claim], bool]) -> list[Claim]:
        """Those of these that can start, behind those whose secrets have been resolved. Nothing is requested for a claim that may not have
        its secrets: it is refused when it is to start."""
        ready = self._resolved()
        for claim in claims:
            if not claim.secrets or self._secrets is None or not may_have(claim):
                ready.append(claim)
                continue
            self._secrets.begin(claim.token, claim.secrets, now=self._clock.monotonic())
            if self._secrets.is_known(claim.token):
                ready.append(claim)
            else:
                self._claims[claim.token] = claim
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
        return taken

    def forget(self, claim: Claim) -> None:
        """It does not start."""
        if claim.secrets and self._secrets is not None:
            self._secrets.drop(claim.token)

    def wake_times(self) -> Iterator[float]:
        return iter(()) if self._secrets is None or not self._claims else self._secrets.wake_times()


# ── quarantine ──────────────────────────────────────────────────────────────────────────────────────────────────────

# A job that ran when the supervisor died may have killed it. For this long it runs without the others that may have.
QUARANTINE: Final = 30.0

LiveRun = tuple[str, float]  # the ID of its job, and when it began


class Quarantine:
    """Jobs that ran when the supervisor died: one of them may kill the next one, so they run one at a time, and others beside them."""

    def __init__(self) -> None:
        self._suspects: frozenset[str] = frozenset()
        self._seconds = QUARANTINE
        self._held: deque[Claim] = deque()  # suspects that wait for another one

    def __len__(self) -> int:
        return len(self._held)

    def blame(self, crashed: frozenset[str]) -> frozenset[str]:
        """The supervisor has died while these ran. Returns the job that is the cause, if it is known: the only one, or the only one that
        also ran when it died before."""
        again = self._suspects & crashed
        culprits = again or crashed
        if len(culprits) > 1 and again:  # they had run one at a time, but not for long enough
            self._seconds *= 2
        self._suspects = again or (self._suspects | crashed)
        return culprits if len(culprits) == 1 else frozenset()

    def clear(self, ended: Callable[[], Iterable[str]]) -> None:
        """These have ended without killing their supervisor."""
        if self._suspects:
            self._suspects -= frozenset(ended())
        if not self._suspects:
            self._seconds = QUARANTINE

    def admit(self, claims: Sequence[Claim], live: Callable[[], Iterable[LiveRun]], now: float) -> Sequence[Claim]:
        """Those that can start now, of these and of those that wait here."""
        if not (self._suspects or self._held):
            return claims
        waiting, ready = [*self._held, *claims], list[Claim]()
        self._held.clear()
        is_one_running = any(id_ in self._suspects and now - began < self._seconds for id_, began in live())
        for claim in waiting:
            if claim.id in self._suspects and is_one_running:
                self._held.append(claim)
            else:
                ready.append(claim)
                is_one_running |= claim.id in self._suspects
        return ready

    def remove(self, is_meant: Callable[[Claim], bool] = lambda _: True) -> list[Claim]:
        """Take out all that wait, or those for which `is_meant` is true."""
        removed = [claim for claim in self._held if is_meant(claim)]
        self._held = deque(claim for claim in self._held if not is_meant(claim))
        return removed

    def wake_time(self, live: Callable[[], Iterable[LiveRun]]) -> float:
        """When the next one may start, unless the one that runs ends before."""
        if not self._held:
            return math.inf
        return max((began + self._seconds for id_, began in live() if id_ in self._suspects), default=0.0)


# ── prefetch ────────────────────────────────────────────────────────────────────────────────────────────────────────

# A job that takes less is short; where exchanges with the store take longer than this, a job that takes less than one exchange.
SHORT_JOB: Final = 0.01
SHORT_JOBS_IN_A_ROW: Final = 8  # before any is prefetched
MAX_PREFETCHED: Final = 48
MIN_WAVES: Final = 5  # for each slot
# Without a start for this long the jobs have become longer, and the claims are given back: another worker may have a slot. At
# least two exchanges: giving back takes one, claiming again another.
STALE_AFTER: Final = 0.05
EXCHANGES: Final = 4  # how many of the latest are compared: one that was slow by chance changes nothing
# While others wait for a slot, so many ended runs are settled at once, or as many as there are after this time: that costs less. With more of
# them the supervisor would have nothing left to start until the next claim.
SETTLE_TOGETHER: Final = MAX_PREFETCHED // 3
SETTLE_WITHIN: Final = 0.02


class Prefetch:
    """How many jobs a worker claims ahead of a free slot: some, as long as its jobs are short.

    Between the end of a job and the start of the next one lie a transaction and two messages. For a job of milliseconds, or one that is
    shorter than an exchange with a distant server, that is as long as the job. So the supervisor of such a worker holds some runs ready,
    and starts them while the worker settles several at once. See docs/internals/adr/0054-queue-starts-in-the-supervisor.md.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._short = 0  # short jobs in a row
        self._average = SHORT_JOB  # moving average of their durations
        self._exchanges: deque[float] = deque(maxlen=EXCHANGES)
        self._started_at = 0.0

    @property
    def _latency(self) -> float:
        """How long an exchange with the store takes."""
        return min(self._exchanges, default=0.0)

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

    def note_start(self) -> None:
        """A run has been started."""
        self._started_at = self._clock.monotonic()

    def note_stale(self) -> None:
        """Some were given back: no more are claimed ahead until some jobs were short again."""
        self._short = 0

    def size(self, slots: int) -> int:
        """How many to hold ready: what the slots can start during one exchange, and some for each slot at least."""
        if self._short < max(SHORT_JOBS_IN_A_ROW, slots):
            return 0
        waves = max(MIN_WAVES, math.ceil(self._latency / max(self._average, 0.001)))
        return min(waves * slots, MAX_PREFETCHED)

    def stale_at(self, requested_at: float) -> float:
        """When a run that was requested then has waited for too long, if nothing starts until then."""
        return max(requested_at, self._started_at) + max(STALE_AFTER, 2 * self._latency)
