"""Telling children what became of their parents, some at a time. See job/graph.py for the rules."""

from __future__ import annotations

from contextlib import suppress

from queuectl.errors import Unavailable
from queuectl.job.graph import EdgeState, Need, Otherwise, decide, judge, mended_by
from queuectl.job.lifecycle import Event, State, is_final
from queuectl.store.counting import Moves
from queuectl.store.sqlite.base import SQL, SqliteBase
from queuectl.store.sqlite.connection import Row
from queuectl.store.sqlite.unique import held
from queuectl.store.telling import AT_ONCE, Child, Moment, Parent, Told, change


class SqliteEdges(SqliteBase):
    def decide(self) -> bool:
        with self._moving() as moves:
            told = self._decide(Moment(self._clock.now_ms(), self._last_seq(), self._ageing()), moves)
        if told.freed:
            self._ring()
        return told.more

    def try_to_settle_children(self) -> None:
        """After a transaction that has ended jobs: there may be no worker to do it. What was written is written: a store that
        cannot serve now is no reason to say otherwise, and whoever comes next tells them."""
        with suppress(Unavailable):
            self._settle_children()

    def _settle_children(self) -> None:
        if self._is_undecided():
            while self.decide():
                pass

    def _is_undecided(self) -> bool:
        return bool(self._db.value("select exists (select 1 from undecided)"))

    def _decide(self, at: Moment, moves: Moves, *, most: int = AT_ONCE) -> Told:
        """Within a transaction."""
        left, freed = most, False
        # One by one: what a parent is may have changed by what the one before it was.
        while row := self._db.one(SQL["undecided"]):
            if left <= 0:
                return Told(freed, more=True)
            parent = Parent(row[0], row[1], State(row[2]))
            found = self._decidable(parent, left)
            if not found:
                self._db.execute(SQL["decided"], (parent.seq,))
            left -= max(1, len(found))
            for was, child in found:
                freed |= self._tell(parent, was, child, at, moves) is Event.UNBLOCK
        return Told(freed, more=False)

    def _decidable(self, parent: Parent, limit: int) -> list[tuple[EdgeState, Row]]:
        """Edges of this parent that are not what they should be."""
        values = {"parent": parent.seq, "limit": limit}
        if is_final(parent.state):
            found = self._db.all(SQL["decidable"], {**values, "state": EdgeState.WAITING.value, "need": None})
            if found:
                return [(EdgeState.WAITING, row) for row in found]
        for need in sorted(mended_by(parent.state)):
            found = self._db.all(SQL["decidable"], {**values, "state": EdgeState.BROKE.value, "need": need.value})
            if found:
                return [(EdgeState.BROKE, row) for row in found]
        return []

    def _tell(self, parent: Parent, was: EdgeState, row: Row, at: Moment, moves: Moves) -> Event | None:
        need, otherwise, *of_child = row
        child = Child._make(of_child)
        verdict = judge(Need(need), Otherwise(otherwise), parent.state)
        if was is EdgeState.BROKE:
            # What broke waits again first, whatever its parent has become meanwhile.
            state = EdgeState.VOID if self._is_key_taken(child) else EdgeState.WAITING
        else:
            state = verdict
        self._db.execute(SQL["mark_edge"], (state.value, child.seq, parent.seq))
        if state is EdgeState.VOID:
            return None
        is_last = verdict is EdgeState.MET and not self._db.value(SQL["is_waiting"], (child.seq,))
        event = decide(was, verdict, is_last=is_last)
        if event is not None:
            if event is Event.REBLOCK:
                self._db.executemany(SQL["leave_undecided"], self._db.all(SQL["wait_again"], (child.seq,)))
            changed = change(event, child, parent, at)
            self._db.execute(_statement(event), changed.values)
            moves.add(child.queue, changed.was, changed.now)
        return event

    def _is_key_taken(self, child: Child) -> bool:
        """Whether another job has come to wait or run in its place: then it stays called off, and is in nobody's hands."""
        if child.unique_key is None:
            return False
        return any(holder.is_open for holder in held(self._db, [child.unique_key]).values())


def _statement(event: Event) -> str:
    return SQL[{Event.UNBLOCK: "unblock", Event.ORPHAN: "orphan", Event.REBLOCK: "reblock"}[event]]
