"""What is said about queues, and what follows from it for a claim. See store/queues.py and store/limits.py."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from queuectl.job.lifecycle import State
from queuectl.job.limits import Brake, Earlier, Rules
from queuectl.job.model import Claim
from queuectl.store import limits, rows
from queuectl.store.auditing import moved, ruled
from queuectl.store.counting import Moves
from queuectl.store.limits import ASIDE_AT_ONCE, Limit, Room, with_room
from queuectl.store.sqlite.base import SQL, SqliteBase
from queuectl.store.sqlite.connection import Row

LOWEST_RANK: Final = -(2**63)
KEY_AT: Final = 19  # in the columns of `ready`; behind it the job's own limit


class SqliteQueueReads(SqliteBase):
    def rules(self) -> dict[str, Rules]:
        return {name: limits.rules(tuple(row)) for name, *row in self._db.all(SQL["rules"])}

    def brakes(self) -> dict[str, Brake]:
        now = self._clock.now_ms()
        return {found.queue: found.brake(now) for found in self._limits(now)}

    def running_keys(self) -> dict[tuple[str, str], list[str]]:
        return rows.by_key(self._db.all(SQL["running_keys"]))

    def rates(self) -> dict[str, int]:
        return dict(self._db.all(SQL["recent_starts"], {"now": self._clock.now_ms()}))

    def _limits(self, now: int) -> list[Limit]:
        return [limits.limit(row) for row in self._db.all(SQL["limits"], {"now": now})]

    def _write_rules(self, queue: str, before: Rules, rules: Rules) -> None:
        """Within a transaction."""
        if rules == Rules():
            self._db.execute(SQL["unset_rules"], {"name": queue})
        else:
            self._db.execute(SQL["set_rules"], limits.rules_row(queue, rules))
        if rules.rate is None:
            self._db.execute(SQL["forget_starts"], {"queue": queue})
        if rules.per_key != before.per_key:
            self._line_up(queue)

    def _line_up(self, *queues: str) -> None:
        """Within a transaction that has changed the limits of these queues, or their lines."""
        per_key: dict[str, int] = dict(self._db.all(SQL["per_key"]))
        self._db.executemany(SQL["line_up"], [{"queue": name, "per_key": per_key.get(name)} for name in queues])

    def _line_up_all(self) -> None:
        """The same for all queues in which keys are limited."""
        self._line_up(*{name for name, _ in self._db.all(SQL["per_key"])}.union(self._placed_queues()))

    def _placed_queues(self) -> list[str]:
        return [queue for (queue,) in self._db.all(SQL["placed_queues"])]


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

    def _keyed_head(self, queue: str, places: int, per_key: int | None) -> tuple[list[Row], bool]:
        """The head of a line whose keys are limited, and whether there may be more of it behind those that were set aside."""
        found: list[Row] = []
        aside: list[Row] = []
        taken: Counter[str] = Counter()
        rank, seq = LOWEST_RANK, 0
        while len(found) < places and len(aside) < ASIDE_AT_ONCE:
            values = {"queue": queue, "rank": rank, "seq": seq, "limit": places - len(found) + min(len(aside), 100)}
            line = self._db.all(SQL["ready_behind"], values)
            if not line:
                break
            fit, full = with_room(line, partial(self._running_of_key, queue), per_key, taken, key_at=KEY_AT)
            found += fit
            aside += full
            rank, seq = line[-1][:2]
        self._db.executemany(SQL["set_aside"], [{"seq": row[1]} for row in aside])
        return found[:places], len(found) < places and len(aside) >= ASIDE_AT_ONCE

    def _running_of_key(self, queue: str, key: str) -> int:
        return int(self._db.value(SQL["running_of_key"], {"queue": queue, "key": key}))

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
            before = self.rules().get(queue, Rules())
            rules = limits.changed(before, changes)
            self._write_rules(queue, before, rules)
            if rules != before:
                self._record(ruled(queue, before, rules))
        self._ring()
        return rules

    def move(self, queue: str, to: str, *, ids: Sequence[str] | None = None) -> dict[str, State]:
        with self._moving() as moves:
            now = self._clock.now_ms()
            found = self._db.all(SQL["movable"], {"queue": queue, "ids": None if ids is None else json.dumps(ids)})
            self._db.executemany(SQL["move"], [{"seq": seq, "queue": to, "now": now} for seq, *_ in found])
            for state, jobs in Counter(state for _, _, state, _ in found).items():
                moves.relocate(queue, to, state, jobs=jobs)
            self._admit(sorted({(name, key) for *_, key in found if key is not None for name in (queue, to)}))
            self._record(moved([id_ for _, id_, *_ in found], queue, to))
        self._ring()
        return {id_: State(state) for _, id_, state, _ in found}
