"""Admission: how many jobs of each limited queue a claim may take, within the transaction that claims; and the rules of queues."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from queuectl.jobs.model import Claim
from queuectl.jobs.queue_limits import PriorStart, QueueLoad, QueueSettings, Rate, allowed_starts
from queuectl.store.transactions import Keys
from queuectl.store.types import Row
from queuectl.text import WEBHOOK_QUEUE

if TYPE_CHECKING:
    from queuectl.store.types import ClaimRequest

MAX_CLOCK_SKEW_MS: Final = 1000
# Jobs that one claim marks as blocked on their concurrency key; the next claim handles the rest.
MAX_KEY_BLOCKED: Final = 1000


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
    has_places: bool = False  # some of its jobs have their own limit for their key

    @property
    def is_by_key(self) -> bool:
        return self.per_key is not None or self.has_places

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


def with_places(limited: Mapping[str, Limit], queues: Iterable[str]) -> dict[str, Limit]:
    """The same with the queues in which some jobs have their own limit for their key."""
    found = dict(limited)
    for queue in queues:
        found[queue] = found.get(queue, Limit(queue, False, None, None, 0, 0, None))._replace(has_places=True)
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


def split_by_key(
    found: Iterable[Row], running: Callable[[str], int], per_key: int | None, taken: Counter[str], *, key_at: int
) -> tuple[list[Row], list[Row]]:
    """Those of `found`, in order, whose concurrency key has a free slot, and those whose key has none. `taken`: used slots by key, as
    far as known; `running` is called for the others. `key_at`: the column of the key; the next column is the limit of the job."""
    fit: list[Row] = []
    full: list[Row] = []
    for row in found:
        key, own_limit = row[key_at : key_at + 2]
        if key is None:
            fit.append(row)
            continue
        if key not in taken:
            taken[key] = running(key)
        limit = per_key if own_limit is None else own_limit
        if limit is None or taken[key] < limit:
            fit.append(row)
            taken[key] += 1
        else:
            full.append(row)
    return fit, full


def queues_of(request: ClaimRequest, ready: Callable[[], Iterable[str]]) -> list[tuple[str, int]]:
    """The queues to read, and how many jobs of each; last, if requested, that of webhook deliveries."""
    if not request.limit:
        queues: Iterable[str] = ()
    elif request.queues is None:
        queues = [queue for queue in ready() if queue != WEBHOOK_QUEUE]
    else:
        queues = dict.fromkeys(request.queues)
    calls = [(WEBHOOK_QUEUE, request.calls)] if request.calls else []
    return [*((queue, request.limit) for queue in queues), *calls]


def without(request: ClaimRequest, claims: Sequence[Claim]) -> ClaimRequest:
    """The rest of the request after these claims."""
    calls = sum(claim.queue == WEBHOOK_QUEUE for claim in claims) if request.calls else 0
    limit = max(0, request.limit - len(claims) + calls)
    shares = request.shares if limit else None
    return request._replace(limit=limit, shares=shares, calls=max(0, request.calls - calls))


def filled(request: ClaimRequest | None, claims: Sequence[Claim]) -> tuple[bool, bool]:
    """Whether as many were found as requested, so that there may be more: of jobs, and of webhook deliveries."""
    if request is None:
        return False, False
    calls = sum(claim.queue == WEBHOOK_QUEUE for claim in claims) if request.calls else 0
    return 0 < request.limit == len(claims) - calls, 0 < request.calls == calls


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
