"""What is said about queues, and what follows from it for a claim. See store/queues.py and store/limits.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from queuectl.job.lifecycle import State
from queuectl.job.limits import SOON_MS, Brake, Earlier, Rules
from queuectl.store import limits
from queuectl.store.limits import Limit, Limits, Room, choose, earliest
from queuectl.store.postgres.base import PostgresBase
from queuectl.store.postgres.connection import LONG_SECONDS, SQL, Question
from queuectl.store.postgres.session import Row
from queuectl.store.postgres.trouble import run_again
from queuectl.store.protocol import ClaimRequest


class PostgresQueueReads(PostgresBase):
    def rules(self) -> dict[str, Rules]:
        (found,) = self._db.ask(Question(SQL["rules"]))
        return {name: limits.rules(tuple(row)) for name, *row in found}

    def brakes(self) -> dict[str, Brake]:
        now = self._clock.now_ms()
        (found,) = self._db.ask(Question(SQL["limits"], {"now": now}))
        return brakes(found, now)

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

    def _claim_chosen(self, request: ClaimRequest, *, worker: str, slots: int, values: Mapping[str, Any]) -> Chosen:
        """`values`: those of claim.sql, which do not say yet what is chosen."""
        wanted = None if request.queues is None else list(dict.fromkeys(request.queues))
        hold = Question(SQL["hold_worker"], {"worker": worker})
        with self._db.transaction(hold):
            now = self._clock.now_ms()
            held = {name for (name,) in self._db.all(SQL["hold_limits"], {"queues": wanted})}
            limited = self._limits_now(now)
            lines = wanted or [name for (name,) in self._db.all(SQL["ready_queues"])]
            rooms = self._rooms(lines, limited, held, most=slots, now=now)
            places = [room.places for room in rooms]
            heads: dict[str, list[Row]] = {line: [] for line in lines}
            for row in self._db.all(SQL["heads"], {"queues": lines, "places": places}):
                heads[row[2]].append(row)
            found = choose(list(heads.values()), limit=slots, shares=request.shares, in_one_order=wanted is None)
            # One that has no more than it may give does not wait for its rate.
            opens_at = earliest(
                *(room.opens_at for room, line in zip(rooms, lines, strict=True) if len(heads[line]) == room.places)
            )
            chosen = [seq for _, seq, _ in found]
            rows = self._db.all(SQL["claim"], {**values, "chosen": chosen, "now": now}) if chosen else []
            self._note_starts(rows, limited, now)
        if len(rows) < len(found):  # somebody else has them in hands; nobody tells us if they are left
            opens_at = earliest(opens_at, now + SOON_MS)
        return Chosen(sorted(rows), limited, opens_at)

    def _limits_now(self, now: int) -> dict[str, Limit]:
        found = [limits.limit(row) for row in self._db.all(SQL["limits"], {"now": now})]
        ahead = [one.queue for one in found if one.is_ahead(now)]
        if ahead:
            self._db.executemany(SQL["correct_starts"], [{"queue": queue, "now": now} for queue in ahead])
            found = [limits.limit(row) for row in self._db.all(SQL["limits"], {"now": now})]
        return {one.queue: one for one in found}

    def _rooms(self, lines: Sequence[str], limited: Limits, held: set[str], *, most: int, now: int) -> list[Room]:
        questions = {}
        for line in lines:
            if (limit := limited.get(line)) is not None and limit.rate is not None and line in held:
                first = limit.last + 1 - limit.rate.starts
                values = {"queue": line, "first": first, "last": first + most - 1, "now": now}
                questions[line] = Question(SQL["earlier_starts"], values)
        answers = self._db.ask(*questions.values()) if questions else []
        earlier = {
            line: {number: Earlier(at, is_sure) for number, at, is_sure in rows}
            for line, rows in zip(questions, answers, strict=True)
        }
        rooms = []
        for line in lines:
            if line not in limited:
                rooms.append(Room(most))
            elif line not in held:  # paused, or it has had something to claim only since we looked
                rooms.append(Room(0, None if limited[line].paused else now + SOON_MS))
            else:
                rooms.append(limits.room(limited[line], earlier.get(line, {}), most=most, now_ms=now))
        return rooms

    def _note_starts(self, rows: Sequence[Row], limited: Limits, now: int) -> None:
        """`rows`: as claim.sql returns them."""
        begun: dict[str, list[Row]] = {}
        for row in sorted(rows):
            if (limit := limited.get(row[10])) is not None and limit.rate is not None:
                begun.setdefault(limit.queue, []).append(row)
        for queue, started in begun.items():
            limit = limited[queue]
            assert limit.rate is not None
            values = [
                {"queue": queue, "number": number, "job": row[5], "run": row[3], "now": now}
                for number, row in enumerate(started, limit.last + 1)
            ]
            self._db.executemany(SQL["add_start"], values)
            old = limit.last + len(started) - limit.rate.starts
            self._db.execute(SQL["trim_starts"], {"queue": queue, "number": old})


class PostgresQueueRules(PostgresQueueReads):
    @run_again
    def set_rules(self, queue: str, changes: Mapping[str, Any]) -> Rules:
        # Alone: a claim that is under way has not seen this rule, and nobody sees yet what it takes.
        with self._db.transaction(Question(SQL["change_ageing"]), after=self._ring()):
            (before,) = self._db.all(SQL["take_rules"], {"name": queue})
            rules = limits.rules(before)._replace(**changes)
            if rules == Rules():
                self._db.execute(SQL["unset_rules"], {"name": queue})
            else:
                self._db.execute(SQL["set_rules"], limits.rules_row(queue, rules))
            if rules.rate is None:
                self._db.execute(SQL["forget_starts"], {"queue": queue})
        return rules

    @run_again
    def move(self, queue: str, to: str, *, ids: Sequence[str] | None = None) -> dict[str, State]:
        with self._moving(ring=True, seconds=LONG_SECONDS) as moves:
            values = {"queue": queue, "to": to, "ids": None if ids is None else list(ids), "now": self._clock.now_ms()}
            found = sorted(self._db.all(SQL["move"], values))
            for state, jobs in Counter(state for _, _, state in found).items():
                moves.relocate(queue, to, state, jobs=jobs)
        return {id_: State(state) for _, id_, state in found}
