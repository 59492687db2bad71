"""What is said about queues, and what follows from it for a claim. See store/queues.py and store/limits.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.job.lifecycle import State
from queuectl.job.limits import SOON_MS, Brake, Earlier, Rules
from queuectl.job.names import WEBHOOKS
from queuectl.store import limits, rows
from queuectl.store.auditing import moved, ruled
from queuectl.store.limits import ASIDE_AT_ONCE, Limit, Limits, Room, choose, earliest, with_room
from queuectl.store.postgres.base import PostgresBase
from queuectl.store.postgres.claims import ClaimOrder, in_order
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Question
from queuectl.store.postgres.session import Row
from queuectl.store.postgres.trouble import run_again

LOWEST_RANK: Final = -(2**63)


class PostgresQueueReads(PostgresBase):
    def rules(self) -> dict[str, Rules]:
        (found,) = self._db.ask(Question(SQL["rules"]))
        return {name: limits.rules(tuple(row)) for name, *row in found}

    def brakes(self) -> dict[str, Brake]:
        now = self._clock.now_ms()
        (found,) = self._db.ask(Question(SQL["limits"], {"now": now}))
        return brakes(found, now)

    def _write_rules(self, queue: str, before: Rules, rules: Rules) -> None:
        """Within a transaction that holds change_ageing.sql and the row of the queue."""
        if rules == Rules():
            self._db.execute(SQL["unset_rules"], {"name": queue})
        else:
            self._db.execute(SQL["set_rules"], limits.rules_row(queue, rules))
        if rules.rate is None:
            self._db.execute(SQL["forget_starts"], {"queue": queue})
        if rules.per_key != before.per_key:
            self._db.execute(SQL["line_up"], {"queue": queue, "per_key": rules.per_key})

    def running_keys(self) -> dict[tuple[str, str], list[str]]:
        (found,) = self._db.ask(Question(SQL["running_keys"]))
        return rows.by_key(found)

    def rates(self) -> dict[str, int]:
        (found,) = self._db.ask(Question(SQL["recent_starts"], {"now": self._clock.now_ms()}))
        return dict(found)


def brakes(found: Sequence[Row], now: int) -> dict[str, Brake]:
    """From the rows of limits.sql."""
    return {one.queue: one.brake(now) for one in map(limits.limit, found)}


class Chosen(NamedTuple):
    rows: list[Row]  # as claim.sql returns them
    limited: Limits
    opens_at: int | None  # when a rate lets the next one start


class PostgresLimits(PostgresQueueReads):
    """A claim where queues are limited, or served by weight: in steps, within a transaction that holds the limits."""

    def _claim_chosen(self, order: ClaimOrder) -> Chosen:
        request = order.request
        # Also of what tells of ends, whether or not that is asked for.
        wanted = None if request.queues is None else list(dict.fromkeys((*request.queues, WEBHOOKS)))
        now, queues = self._clock.now_ms(), {"queues": wanted}
        # In one round trip, though each of them sees what was committed while those before it waited.
        locks = Question(SQL["hold_limits"], queues), Question(SQL["hold_places"], queues)
        looks = Question(SQL["placed_queues"]), Question(SQL["limits"], {"now": now}), Question(SQL["ready_queues"])
        with self._db.transaction(Question(SQL["hold_worker"], {"worker": order.worker}), *locks, *looks) as answers:
            _, limits_held, places_held, placed, told, found_ready = answers
            held = {row[0] for row in (*limits_held, *places_held)}
            limited = limits.with_places(self._limits_now(told, now), [name for (name,) in placed])
            ready = [name for (name,) in found_ready]
            most = dict(limits.lines_of(request, lambda: ready))
            lines = list(most)
            rooms = self._rooms(most, limited, held, now=now, ready=frozenset(ready))
            heads: dict[str, list[Row]] = {line: [] for line in lines}
            by_key = {line: rule.per_key for line, rule in limited.items() if rule.is_by_key}
            places = [0 if line in by_key else room.places for line, room in zip(lines, rooms, strict=True)]
            for row in self._db.all(SQL["heads"], {"queues": lines, "places": places}):
                heads[row[2]].append(row)
            may_be_more = False
            for line, room in zip(lines, rooms, strict=True):
                if line in by_key and room.places:
                    heads[line], more = self._keyed_head(line, room.places, by_key[line])
                    may_be_more |= more
            calls = heads[WEBHOOKS] if request.calls else []
            of_jobs = [heads[line] for line in (lines[:-1] if request.calls else lines)]
            found = choose(of_jobs, limit=request.limit, shares=request.shares, in_one_order=wanted is None) + calls
            # One that has no more than it may give does not wait for its rate.
            opens_at = earliest(
                *(room.opens_at for room, line in zip(rooms, lines, strict=True) if len(heads[line]) == room.places)
            )
            chosen = [row[1] for row in found]
            claim = order._replace(now=now).question(SQL["candidates_chosen"], chosen=chosen)
            claimed = in_order(self._db.all(*claim)) if chosen else []
            self._note_starts(claimed, limited, now)
        if may_be_more:
            opens_at = now
        if len(claimed) < len(found):  # somebody else has them in hands; nobody tells us if they are left
            opens_at = earliest(opens_at, now + SOON_MS)
        return Chosen(claimed, limited, opens_at)

    def _limits_now(self, told: Sequence[Row], now: int) -> dict[str, Limit]:
        """`told`: the rows of limits.sql."""
        found = [limits.limit(row) for row in told]
        ahead = [one.queue for one in found if one.is_ahead(now)]
        if ahead:
            self._db.executemany(SQL["correct_starts"], [{"queue": queue, "now": now} for queue in ahead])
            found = [limits.limit(row) for row in self._db.all(SQL["limits"], {"now": now})]
        return {one.queue: one for one in found}

    def _rooms(
        self, lines: Mapping[str, int], limited: Limits, held: set[str], *, now: int, ready: Collection[str]
    ) -> list[Room]:
        """`lines`: with how many each may give."""
        questions = {}
        for line, most in lines.items():
            if (limit := limited.get(line)) is not None and limit.rate is not None and line in held:
                first = limit.last + 1 - limit.rate.starts
                values = {"queue": line, "first": first, "last": first + most - 1, "now": now}
                questions[line] = Question(SQL["earlier_starts"], values)
        answers = self._db.ask(*questions.values()) if questions else []
        earlier = {
            line: {number: Earlier(at, is_sure) for number, at, is_sure in answer}
            for line, answer in zip(questions, answers, strict=True)
        }
        rooms = []
        for line, most in lines.items():
            if line not in limited:
                rooms.append(Room(most))
            elif line not in held:  # paused, or it has had something to claim only since we looked
                rooms.append(Room(0, now + SOON_MS if line in ready and not limited[line].paused else None))
            else:
                rooms.append(limits.room(limited[line], earlier.get(line, {}), most=most, now_ms=now))
        return rooms

    def _keyed_head(self, queue: str, places: int, per_key: int | None) -> tuple[list[Row], bool]:
        """The head of a line whose keys are limited, and whether there may be more of it behind those that were set aside."""
        found: list[Row] = []
        aside: list[Row] = []
        taken: Counter[str] = Counter()
        rank, seq = LOWEST_RANK, 0
        while len(found) < places and len(aside) < ASIDE_AT_ONCE:
            # Most heads have room; who meets one that has not looks further at once: each look is a round trip.
            limit = places - len(found) if not aside else ASIDE_AT_ONCE
            line = self._db.all(SQL["heads_behind"], {"queue": queue, "rank": rank, "seq": seq, "limit": limit})
            if not line:
                break
            keys = sorted({row[3] for row in line if row[3] is not None and row[3] not in taken})
            if keys:
                taken.update(dict(self._db.all(SQL["running_of_keys"], {"queue": queue, "keys": keys})))
            fit, full = with_room(line, taken.__getitem__, per_key, taken, key_at=3)
            found += fit
            aside += full
            rank, seq = line[-1][:2]
        if aside:
            self._db.execute(SQL["set_aside"], {"seqs": [row[1] for row in aside]})
        return [row[:3] for row in found[:places]], len(found) < places and len(aside) >= ASIDE_AT_ONCE

    def _note_starts(self, claimed: Sequence[Row], limited: Limits, now: int) -> None:
        """`claimed`: as claim.sql returns them, in order."""
        begun: dict[str, list[Row]] = {}
        for row in claimed:
            if (limit := limited.get(row[10])) is not None and limit.rate is not None:
                begun.setdefault(limit.queue, []).append(row)
        for queue, started in begun.items():
            limit = limited[queue]
            assert limit.rate is not None
            values = [
                {"queue": queue, "number": number, "job": row[5], "run": row[3], "now": now}
                for number, row in enumerate(started, limit.last + 1)
            ]
            for one in values:
                self._db.later(SQL["add_start"], one)
            old = limit.last + len(started) - limit.rate.starts
            self._db.later(SQL["trim_starts"], {"queue": queue, "number": old})


class PostgresQueueRules(PostgresQueueReads):
    @run_again
    def set_rules(self, queue: str, changes: Mapping[str, Any]) -> Rules:
        # Alone: a claim that is under way has not seen this rule, and nobody sees yet what it takes.
        with self._db.transaction(Question(SQL["change_ageing"]), after=self._ring()):
            (before,) = self._db.all(SQL["take_rules"], {"name": queue})
            was = limits.rules(before)
            rules = limits.changed(was, changes)
            self._write_rules(queue, was, rules)
            if rules != was:
                self._record(ruled(queue, was, rules))
        return rules

    @run_again
    def move(self, queue: str, to: str, *, ids: Sequence[str] | None = None) -> dict[str, State]:
        with self._moving(ring=True, seconds=LONG_SECONDS) as moves:
            values = {"queue": queue, "to": to, "ids": None if ids is None else list(ids), "now": self._clock.now_ms()}
            found = sorted(self._db.all(SQL["move"], values))
            for state, jobs in Counter(state for _, _, state, _ in found).items():
                moves.relocate(queue, to, state, jobs=jobs)
            self._admit(sorted({(name, key) for *_, key in found if key is not None for name in (queue, to)}))
            self._record(moved([id_ for _, id_, *_ in found], queue, to))
        return {id_: State(state) for _, id_, state, _ in found}
