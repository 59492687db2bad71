"""What is said about queues, and what follows from it for a claim. See store/queues.py and store/limits.py."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from queuectl.job.lifecycle import State
from queuectl.job.limits import Brake, Earlier, Rules
from queuectl.job.model import Claim
from queuectl.store import limits
from queuectl.store.counting import Moves
from queuectl.store.limits import Limit, Room
from queuectl.store.sqlite.base import SQL, SqliteBase


class SqliteQueueReads(SqliteBase):
    def rules(self) -> dict[str, Rules]:
        return {name: limits.rules(tuple(row)) for name, *row in self._db.all(SQL["rules"])}

    def brakes(self) -> dict[str, Brake]:
        now = self._clock.now_ms()
        return {found.queue: found.brake(now) for found in self._limits(now)}

    def rates(self) -> dict[str, int]:
        return dict(self._db.all(SQL["recent_starts"], {"now": self._clock.now_ms()}))

    def _limits(self, now: int) -> list[Limit]:
        return [limits.limit(row) for row in self._db.all(SQL["limits"], {"now": now})]


class SqliteLimits(SqliteQueueReads):
    """Within the transaction that claims: its write lock keeps everybody else from using the same place."""

    def _limits_now(self, now: int, moves: Moves) -> dict[str, Limit]:
        """By queue, those that are limited, after what this transaction has done so far."""
        found = self._limits(now)
        ahead = [one.queue for one in found if one.is_ahead(now)]
        if ahead:
            self._db.executemany(SQL["correct_starts"], [{"queue": queue, "now": now} for queue in ahead])
            found = self._limits(now)
        return {one.queue: one._replace(running=one.running + moves.net(one.queue, "processing")) for one in found}

    def _room(self, limit: Limit, *, most: int, now: int) -> Room:
        earlier: dict[int, Earlier] = {}
        if limit.rate is not None and not limit.paused:
            first = limit.last + 1 - limit.rate.starts
            values = {"queue": limit.queue, "first": first, "last": first + most - 1, "now": now}
            earlier = {
                number: Earlier(at, bool(sure)) for number, at, sure in self._db.all(SQL["earlier_starts"], values)
            }
        return limits.room(limit, earlier, most=most, now_ms=now)

    def _note_starts(self, claims: Sequence[Claim], limited: Mapping[str, Limit], now: int) -> None:
        for queue, limit in limited.items():
            if limit.rate is None:
                continue
            begun = [claim for claim in claims if claim.queue == queue]
            rows = [
                {"queue": queue, "number": number, "job": claim.seq, "run": claim.run, "now": now}
                for number, claim in enumerate(begun, limit.last + 1)
            ]
            self._db.executemany(SQL["add_start"], rows)
            if begun:
                old = limit.last + len(begun) - limit.rate.starts
                self._db.execute(SQL["trim_starts"], {"queue": queue, "number": old})


class SqliteQueueRules(SqliteQueueReads):
    def set_rules(self, queue: str, changes: Mapping[str, Any]) -> Rules:
        with self._db.transaction():
            rules = self.rules().get(queue, Rules())._replace(**changes)
            if rules == Rules():
                self._db.execute(SQL["unset_rules"], {"name": queue})
            else:
                self._db.execute(SQL["set_rules"], limits.rules_row(queue, rules))
            if rules.rate is None:
                self._db.execute(SQL["forget_starts"], {"queue": queue})
        self._ring()
        return rules

    def move(self, queue: str, to: str, *, ids: Sequence[str] | None = None) -> dict[str, State]:
        with self._moving() as moves:
            now = self._clock.now_ms()
            found = self._db.all(SQL["movable"], {"queue": queue, "ids": None if ids is None else json.dumps(ids)})
            self._db.executemany(SQL["move"], [{"seq": seq, "queue": to, "now": now} for seq, _, _ in found])
            for state, jobs in Counter(state for _, _, state in found).items():
                moves.relocate(queue, to, state, jobs=jobs)
        self._ring()
        return {id_: State(state) for _, id_, state in found}
