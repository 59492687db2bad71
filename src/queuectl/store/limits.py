"""How much of each limited queue a claim may take: the same for every dialect, within the transaction that claims."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from queuectl.job.limits import Brake, Earlier, Rate, Rules, allowed
from queuectl.job.model import Claim
from queuectl.job.names import WEBHOOKS
from queuectl.store.entry import Keys

if TYPE_CHECKING:
    from queuectl.store.protocol import ClaimRequest

APART_MS: Final = 1000
# How many at the head of a line one claim sets aside: they have no room by their key. If there are more, it comes again.
ASIDE_AT_ONCE: Final = 1000

Row = tuple[Any, ...]


class Limit(NamedTuple):
    """A queue that is paused or limited, from the columns of `limits`."""

    queue: str
    paused: bool
    concurrency: int | None
    rate: Rate | None
    running: int
    last: int  # the number of its latest start, 0 if there was none
    earlier: Earlier | None  # from which the next start has to keep its distance
    per_key: int | None = None
    has_places: bool = False  # some of its jobs say themselves how many of their key may run

    @property
    def is_by_key(self) -> bool:
        return self.per_key is not None or self.has_places

    def places(self) -> int | None:
        """As far as pause and concurrency let; None: any number."""
        if self.paused:
            return 0
        return None if self.concurrency is None else max(0, self.concurrency - self.running)

    def is_ahead(self, now_ms: int) -> bool:
        """Whether the clock was set back since: two hosts that have it from one server differ by less."""
        return self.earlier is not None and self.earlier.at > now_ms + APART_MS

    def brake(self, now_ms: int) -> Brake:
        opens_at = None if self.rate is None else allowed(self.rate, [self.earlier], now_ms=now_ms)[1]
        return Brake(self.paused, self.concurrency, self.running, self.rate, opens_at, self.per_key)


Limits = Mapping[str, Limit]  # by queue


class Room(NamedTuple):
    """`places` may be claimed; if that is fewer than were asked for because of a rate, more at `opens_at`."""

    places: int
    opens_at: int | None = None


def limit(row: Row) -> Limit:
    queue, paused, concurrency, starts, window_ms, running, last, at, is_sure, per_key = row
    return Limit(
        queue=queue,
        paused=bool(paused),
        concurrency=concurrency,
        rate=None if starts is None else Rate(starts, window_ms),
        running=running,
        last=last,
        earlier=None if at is None else Earlier(at, bool(is_sure)),
        per_key=per_key,
    )


def with_places(limited: Mapping[str, Limit], queues: Iterable[str]) -> dict[str, Limit]:
    """The same where some jobs of `queues` say themselves how many of their key may run."""
    found = dict(limited)
    for queue in queues:
        found[queue] = found.get(queue, Limit(queue, False, None, None, 0, 0, None))._replace(has_places=True)
    return found


def rules(row: Row) -> Rules:
    """From the columns of `rules` behind the name."""
    paused, concurrency, starts, window_ms, priority, max_retries, timeout_ms, per_key, *urls, said = row
    rate = None if starts is None else Rate(starts, window_ms)
    found = Rules(bool(paused), concurrency, rate, priority, max_retries, timeout_ms, per_key, *urls)
    return found if said is None else found._replace(limits=json.loads(said))


def changed(before: Rules, changes: Mapping[str, Any]) -> Rules:
    """By the names of Rules; of what runs may use, each that is named counts for itself."""
    of_runs = {**(before.limits or {}), **(changes.get("limits") or {})}
    return before._replace(**{**changes, "limits": {name: n for name, n in of_runs.items() if n} or None})


def rules_row(queue: str, told: Rules) -> dict[str, Any]:
    """The parameters of `set_rules`."""
    starts, window_ms = told.rate or (None, None)
    of_runs = None if told.limits is None else json.dumps(told.limits)
    of_rate = {"rate": None, "rate_starts": starts, "rate_ms": window_ms}
    return {**told._asdict(), **of_rate, "name": queue, "limits": of_runs}


def room(found: Limit, earlier: Mapping[int, Earlier], *, most: int, now_ms: int) -> Room:
    """`earlier`: by number, those of the starts that the next `most` have to keep their distance from."""
    places = found.places()
    places = most if places is None else min(most, places)
    if found.rate is None or places == 0:
        return Room(places)
    first = found.last + 1 - found.rate.starts
    # Behind the latest start come those that would start now.
    before = [earlier.get(n) if n <= found.last else Earlier(now_ms, True) for n in range(first, first + places)]
    return Room(*allowed(found.rate, before, now_ms=now_ms))


def leave_room(limited: Limits, ended: Iterable[Claim], begun: Iterable[Claim]) -> bool:
    """Whether somebody else may use a place that has become free, and who claimed here did not. `limited`: as it was between
    the two."""
    if not limited:
        return False
    freed = Counter(claim.queue for claim in ended if claim.queue in limited)
    taken = Counter(claim.queue for claim in begun)
    return any(_leaves_room(limited[queue], places, taken[queue]) for queue, places in freed.items())


def _leaves_room(found: Limit, freed: int, taken: int) -> bool:
    if found.is_by_key and taken < freed:
        return True
    return found.concurrency is not None and found.places() != taken


def earliest(*moments: int | None) -> int | None:
    return min((moment for moment in moments if moment is not None), default=None)


def keys_of(claims: Iterable[Claim]) -> Keys:
    """Queue and key of those that have one."""
    return sorted({(claim.queue, claim.key) for claim in claims if claim.key is not None})


def with_room(
    found: Iterable[Row], running: Callable[[str], int], per_key: int | None, taken: Counter[str], *, key_at: int
) -> tuple[list[Row], list[Row]]:
    """Those of `found`, the next of a line in order, whose key has a place left, and those whose key has none. `taken`: places
    that are taken by key, as far as somebody has asked; `running` is asked for the rest. Behind its key a row has its own limit."""
    fit: list[Row] = []
    full: list[Row] = []
    for row in found:
        key, places = row[key_at : key_at + 2]
        if key is None:
            fit.append(row)
            continue
        if key not in taken:
            taken[key] = running(key)
        limit = per_key if places is None else places
        if limit is None or taken[key] < limit:
            fit.append(row)
            taken[key] += 1
        else:
            full.append(row)
    return fit, full


def lines_of(request: ClaimRequest, ready: Callable[[], Iterable[str]]) -> list[tuple[str, int]]:
    """The lines to look at, and how many each may give; last, if any are asked for, of those that tell of ends."""
    if not request.limit:
        lines: Iterable[str] = ()
    elif request.queues is None:
        lines = [queue for queue in ready() if queue != WEBHOOKS]
    else:
        lines = dict.fromkeys(request.queues)
    calls = [(WEBHOOKS, request.calls)] if request.calls else []
    return [*((line, request.limit) for line in lines), *calls]


def without(request: ClaimRequest, claims: Sequence[Claim]) -> ClaimRequest:
    """What is still to be asked for, if there are these already."""
    calls = sum(claim.queue == WEBHOOKS for claim in claims) if request.calls else 0
    limit = max(0, request.limit - len(claims) + calls)
    shares = request.shares if limit else None
    return request._replace(limit=limit, shares=shares, calls=max(0, request.calls - calls))


def filled(request: ClaimRequest | None, claims: Sequence[Claim]) -> tuple[bool, bool]:
    """Whether all was found that was asked for, so that there may be more: of jobs, and of those that tell of ends."""
    if request is None:
        return False, False
    calls = sum(claim.queue == WEBHOOKS for claim in claims) if request.calls else 0
    return 0 < request.limit == len(claims) - calls, 0 < request.calls == calls


def choose(
    lines: Sequence[Sequence[Row]], *, limit: int, shares: Sequence[int] | None, in_one_order: bool
) -> list[Row]:
    """The rows to claim of the heads of some lines, each of which begins with its rank and seq, best first.

    `shares`: how many of each line go first; what they leave over is filled in the order of the lines.
    """
    if in_one_order:
        # No two rows share a seq: nothing behind it is ever compared.
        return sorted(row for line in lines for row in line)[:limit]
    if shares is None:
        return [row for line in lines for row in line][:limit]
    first = [row for line, share in zip(lines, shares, strict=True) for row in line[:share]]
    rest = [row for line, share in zip(lines, shares, strict=True) for row in line[share:]]
    return (first + rest)[:limit]
