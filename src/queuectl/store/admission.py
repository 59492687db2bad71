"""Admission: how many jobs of each limited queue a claim may take, within the transaction that claims; and the rules of queues."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from queuectl.jobs.model import Claim
from queuectl.jobs.queue_limits import PriorStart, QueueLoad, QueueSettings, Rate, allowed_starts
from queuectl.store.transactions import Keys, Parameters, Transactions
from queuectl.store.types import Row
from queuectl.text import WEBHOOK_QUEUE

if TYPE_CHECKING:
    from queuectl.store.types import ClaimRequest

MAX_CLOCK_SKEW_MS: Final = 1000
# Jobs that one claim marks as blocked on their concurrency key; the next claim handles the rest.
MAX_KEY_BLOCKED: Final = 1000
LOWEST_RANK: Final = -(2**63)


class Limit(NamedTuple):
    """A queue that is paused or limited, from the columns of `limits`."""

    queue: str
    paused: bool
    concurrency: int | None
    rate: Rate | None
    running: int
    last: int  # the number of its latest start, 0 if there was none
    earlier: PriorStart | None  # the start that the rate limit of the next one counts from
    per_key: int | None = None
    has_key_limits: bool = False  # some of its jobs have their own limit for their key

    @property
    def is_by_key(self) -> bool:
        return self.per_key is not None or self.has_key_limits

    def free_slots(self) -> int | None:
        """By pause and concurrency; None: any number."""
        if self.paused:
            return 0
        return None if self.concurrency is None else max(0, self.concurrency - self.running)

    def is_ahead(self, now_ms: int) -> bool:
        """Whether the clock was set back since the last start: hosts that use the clock of one server differ by less."""
        return self.earlier is not None and self.earlier.at > now_ms + MAX_CLOCK_SKEW_MS

    def brake(self, now_ms: int) -> QueueLoad:
        opens_at = None if self.rate is None else allowed_starts(self.rate, [self.earlier], now_ms=now_ms)[1]
        return QueueLoad(self.paused, self.concurrency, self.running, self.rate, opens_at, self.per_key)


Limits = Mapping[str, Limit]  # by queue


class Admitted(NamedTuple):
    """`jobs` may be claimed; if a rate limit is the reason that it is fewer than requested, more at `opens_at`."""

    jobs: int
    opens_at: int | None = None


def read_limit(row: Row) -> Limit:
    queue, paused, concurrency, starts, window_ms, running, last, at, is_sure, per_key = row
    return Limit(
        queue=queue,
        paused=bool(paused),
        concurrency=concurrency,
        rate=None if starts is None else Rate(starts, window_ms),
        running=running,
        last=last,
        earlier=None if at is None else PriorStart(at, bool(is_sure)),
        per_key=per_key,
    )


def with_key_limits(limited: Mapping[str, Limit], queues: Iterable[str]) -> dict[str, Limit]:
    """The same with the queues in which some jobs have their own limit for their key."""
    found = dict(limited)
    for queue in queues:
        found[queue] = found.get(queue, Limit(queue, False, None, None, 0, 0, None))._replace(has_key_limits=True)
    return found


def read_rules(row: Row) -> QueueSettings:
    """From the columns of `rules` after the name."""
    paused, concurrency, starts, window_ms, priority, max_retries, timeout_ms, per_key, *urls, limits = row
    rate = None if starts is None else Rate(starts, window_ms)
    found = QueueSettings(bool(paused), concurrency, rate, priority, max_retries, timeout_ms, per_key, *urls)
    return found if limits is None else found._replace(limits=json.loads(limits))


def change_rules(before: QueueSettings, changes: Mapping[str, Any]) -> QueueSettings:
    """By the names of Rules. Resource limits are merged one by one."""
    of_runs = {**(before.limits or {}), **(changes.get("limits") or {})}
    return before._replace(**{**changes, "limits": {name: n for name, n in of_runs.items() if n} or None})


def rules_row(queue: str, rules: QueueSettings) -> dict[str, Any]:
    """The parameters of `set_rules`."""
    starts, window_ms = rules.rate or (None, None)
    of_runs = None if rules.limits is None else json.dumps(rules.limits)
    of_rate = {"rate": None, "rate_starts": starts, "rate_ms": window_ms}
    return {**rules._asdict(), **of_rate, "name": queue, "limits": of_runs}


def admitted(found: Limit, earlier: Mapping[int, PriorStart], *, most: int, now_ms: int) -> Admitted:
    """`earlier`: by number, the starts that the rate limit of the next `most` counts from."""
    slots = found.free_slots()
    slots = most if slots is None else min(most, slots)
    if found.rate is None or slots == 0:
        return Admitted(slots)
    first = found.last + 1 - found.rate.starts
    # After the latest start come those that would start now.
    before = [earlier.get(n) if n <= found.last else PriorStart(now_ms, True) for n in range(first, first + slots)]
    return Admitted(*allowed_starts(found.rate, before, now_ms=now_ms))


def frees_slots(limited: Limits, ended: Iterable[Claim], begun: Iterable[Claim]) -> bool:
    """Whether these ends have freed slots that other workers may use. `limited`: between the ends and the new claims."""
    if not limited:
        return False
    freed = Counter(claim.queue for claim in ended if claim.queue in limited)
    taken = Counter(claim.queue for claim in begun)
    return any(_frees_slots(limited[queue], slots, taken[queue]) for queue, slots in freed.items())


def _frees_slots(found: Limit, freed: int, taken: int) -> bool:
    if found.is_by_key and taken < freed:
        return True
    return found.concurrency is not None and found.free_slots() != taken


def earliest(*moments: int | None) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)


def claimed_keys(claims: Iterable[Claim]) -> Keys:
    """Queue and concurrency key of those that have one."""
    return sorted({(claim.queue, claim.key) for claim in claims if claim.key is not None})


def queues_of(request: ClaimRequest, ready: Callable[[], Iterable[str]]) -> dict[str, int]:
    """The queues to read, and how many jobs of each; last, if requested, that of webhook deliveries."""
    if not request.limit:
        queues: Iterable[str] = ()
    elif request.queues is None:
        queues = [queue for queue in ready() if queue != WEBHOOK_QUEUE]
    else:
        queues = request.queues
    webhooks = {WEBHOOK_QUEUE: request.webhooks} if request.webhooks else {}
    return dict.fromkeys(queues, request.limit) | webhooks


def without(request: ClaimRequest, claims: Sequence[Claim]) -> ClaimRequest:
    """The rest of the request after these claims."""
    webhooks = sum(claim.queue == WEBHOOK_QUEUE for claim in claims) if request.webhooks else 0
    limit = max(0, request.limit - len(claims) + webhooks)
    shares = request.shares if limit else None
    return request._replace(limit=limit, shares=shares, webhooks=max(0, request.webhooks - webhooks))


def filled(request: ClaimRequest | None, claims: Sequence[Claim]) -> tuple[bool, bool]:
    """Whether as many were found as requested, so that there may be more: of jobs, and of webhook deliveries."""
    if request is None:
        return False, False
    webhooks = sum(claim.queue == WEBHOOK_QUEUE for claim in claims) if request.webhooks else 0
    return 0 < request.limit == len(claims) - webhooks, 0 < request.webhooks == webhooks


def choose_rows(
    heads: Sequence[Sequence[Row]], *, limit: int, shares: Sequence[int] | None, in_one_order: bool
) -> list[Row]:
    """The rows to claim, best first, among the heads of some queues. Rows begin with rank and seq.

    `shares`: how many of each queue go first; the rest is filled in the order of the queues.
    """
    if in_one_order:
        # No two rows share a seq, so no later column is ever compared.
        return sorted(row for head in heads for row in head)[:limit]
    if shares is None:
        return [row for head in heads for row in head][:limit]
    first = [row for head, share in zip(heads, shares, strict=True) for row in head[:share]]
    rest = [row for head, share in zip(heads, shares, strict=True) for row in head[share:]]
    return (first + rest)[:limit]


class LimitedQueues(ABC):
    """Claims where queues are limited or have weights, within a transaction that excludes other claims from the limited queues. Base of
    the two dialects."""

    key_at: int  # the column of the key in `ready_behind`; the next column is the limit of the job

    def __init__(self, tx: Transactions) -> None:
        self._tx = tx

    @abstractmethod
    def read_heads(self, slots: Mapping[str, int]) -> dict[str, list[Row]]:
        """The first jobs of each of these queues, at most as many as it has slots. Rows begin with rank and seq."""

    @abstractmethod
    def running(self, queue: str, keys: Sequence[str]) -> Mapping[str, int]:
        """How many jobs of a queue run with each of these keys."""

    @abstractmethod
    def page_size(self, missing: int, blocked: int) -> int:
        """How many jobs to read next if `missing` more are wanted, and the keys of `blocked` jobs had no free slot."""

    def limits(self, now: int, found: Sequence[Row] | None = None) -> dict[str, Limit]:
        """The limited queues. `found`: the rows of `limits`, if they were read already."""
        limits = list(map(read_limit, self._tx.all("limits", {"now": now}) if found is None else found))
        if ahead := [one.queue for one in limits if one.is_ahead(now)]:
            self._tx.executemany("correct_starts", [{"queue": queue, "now": now} for queue in ahead])
            limits = list(map(read_limit, self._tx.all("limits", {"now": now})))
        return {one.queue: one for one in limits}

    def choose(
        self,
        request: ClaimRequest,
        queues: Mapping[str, int],
        limits: Limits,
        *,
        now: int,
        decided: Mapping[str, Admitted] = MappingProxyType({}),
    ) -> tuple[list[Row], int | None]:
        """The jobs to claim, best first; and when a rate limit lets the next one start. `queues`: from `queues_of`. `decided`: for queues
        whose slots need not be computed."""
        slots = self._slots(queues, limits, decided, now)
        keyed = [name for name in queues if name in limits and limits[name].is_by_key]
        heads = self.read_heads({name: one.jobs for name, one in slots.items() if name not in keyed})
        may_be_more = False
        for name in keyed:
            heads[name], more = self._keyed_head(name, slots[name].jobs, limits[name].per_key)
            may_be_more |= more
        of_jobs = [heads[name] for name in queues]
        webhooks = of_jobs.pop() if request.webhooks else []
        chosen = choose_rows(of_jobs, limit=request.limit, shares=request.shares, in_one_order=request.queues is None)
        # A queue with fewer jobs does not wait for its rate limit.
        opens_at = earliest(*(one.opens_at for name, one in slots.items() if len(heads[name]) == one.jobs))
        return chosen + webhooks, now if may_be_more else opens_at

    def note_starts(self, claims: Sequence[Claim], limits: Limits, now: int) -> None:
        for queue, limit in limits.items():
            if limit.rate is None or not (begun := [claim for claim in claims if claim.queue == queue]):
                continue
            values = [
                {"queue": queue, "number": number, "job": claim.seq, "run": claim.run, "now": now}
                for number, claim in enumerate(begun, limit.last + 1)
            ]
            self._tx.defer_each("add_start", values)
            old = limit.last + len(begun) - limit.rate.starts
            self._tx.defer_each("trim_starts", [{"queue": queue, "number": old}])

    def _slots(
        self, queues: Mapping[str, int], limits: Limits, decided: Mapping[str, Admitted], now: int
    ) -> dict[str, Admitted]:
        asked: dict[str, tuple[str, Parameters]] = {}
        for queue, most in queues.items():
            limit = limits.get(queue)
            if limit is not None and limit.rate is not None and not limit.paused and queue not in decided:
                first = limit.last + 1 - limit.rate.starts
                values = {"queue": queue, "first": first, "last": first + most - 1, "now": now}
                asked[queue] = ("earlier_starts", values)
        found = dict(zip(asked, self._tx.each(*asked.values()), strict=True)) if asked else {}
        slots = {}
        for queue, most in queues.items():
            earlier = {number: PriorStart(at, bool(is_sure)) for number, at, is_sure in found.get(queue, ())}
            if queue in decided:
                slots[queue] = decided[queue]
            elif queue in limits:
                slots[queue] = admitted(limits[queue], earlier, most=most, now_ms=now)
            else:
                slots[queue] = Admitted(most)
        return slots

    def _keyed_head(self, queue: str, slots: int, per_key: int | None) -> tuple[list[Row], bool]:
        """The first jobs of a queue that limits keys, and whether there may be more after those that are blocked on their key."""
        found: list[Row] = []
        blocked: list[Row] = []
        taken: Counter[str] = Counter()
        rank, seq = LOWEST_RANK, 0
        while len(found) < slots and len(blocked) < MAX_KEY_BLOCKED:
            values = {"queue": queue, "rank": rank, "seq": seq}
            limit = self.page_size(slots - len(found), len(blocked))
            page = self._tx.all("ready_behind", {**values, "limit": limit})
            if not page:
                break
            keys = {row[self.key_at] for row in page} - {None, *taken}
            taken.update(self.running(queue, sorted(keys)))
            for row in page:
                key, own_limit = row[self.key_at : self.key_at + 2]
                most = per_key if own_limit is None else own_limit
                if key is None or most is None or taken[key] < most:
                    found.append(row)
                    taken[key] += 1
                else:
                    blocked.append(row)
            rank, seq = page[-1][:2]
        self._tx.write_each("block_on_key", [{"seq": row[1]} for row in blocked])
        return found[:slots], len(found) < slots and len(blocked) >= MAX_KEY_BLOCKED
