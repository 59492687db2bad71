"""Resolve dependencies in SQLite, some at a time. The rules are in jobs/dependencies.py."""

from __future__ import annotations

from queuectl.jobs.dependencies import DependencyState, Need, Otherwise, child_event, evaluate, needs_met_again_by
from queuectl.jobs.states import Event, State, is_final
from queuectl.store.dependencies import (
    MAX_CHILDREN_PER_STEP,
    STATEMENTS,
    Child,
    Moment,
    Parent,
    Resolution,
    Resolver,
    change_child,
)
from queuectl.store.sqlite.connection import SQL, SqliteTransactions
from queuectl.store.transactions import Transitions
from queuectl.store.types import Row


class SqliteResolver(Resolver):
    _tx: SqliteTransactions

    def __init__(self, tx: SqliteTransactions) -> None:
        super().__init__(tx)
        self._db = tx.db

    def decide(self) -> bool:
        with self._tx.write() as transitions:
            at = Moment(self._tx.clock.now_ms(), self._tx.last_seq(), self._tx.ageing())
            resolved = self.resolve_some(at, transitions)
        if resolved.freed:
            self._tx.notify_workers()
        return resolved.more

    def resolve_some(self, at: Moment, transitions: Transitions, *, most: int = MAX_CHILDREN_PER_STEP) -> Resolution:
        """Within a transaction."""
        left, freed = most, False
        # One by one: resolving a parent may change the state of the next one.
        while row := self._db.one(SQL["undecided"]):
            if left <= 0:
                return Resolution(freed, more=True)
            parent = Parent(row[0], row[1], State(row[2]))
            found = self._unresolved(parent, left)
            if not found:
                self._db.execute(SQL["decided"], (parent.seq,))
            left -= max(1, len(found))
            for was, child in found:
                freed |= self._resolve(parent, was, child, at, transitions) is Event.UNBLOCK
        return Resolution(freed, more=False)

    def _unresolved(self, parent: Parent, limit: int) -> list[tuple[DependencyState, Row]]:
        """The dependencies on this parent whose state is outdated."""
        values = {"parent": parent.seq, "limit": limit}
        if is_final(parent.state):
            found = self._db.all(SQL["decidable"], {**values, "state": DependencyState.WAITING.value, "need": None})
            if found:
                return [(DependencyState.WAITING, row) for row in found]
        for need in sorted(needs_met_again_by(parent.state)):
            found = self._db.all(SQL["decidable"], {**values, "state": DependencyState.BROKE.value, "need": need.value})
            if found:
                return [(DependencyState.BROKE, row) for row in found]
        return []

    def _resolve(
        self, parent: Parent, was: DependencyState, row: Row, at: Moment, transitions: Transitions
    ) -> Event | None:
        need, otherwise, *of_child = row
        child = Child._make(of_child)
        verdict = evaluate(Need(need), Otherwise(otherwise), parent.state)
        if was is DependencyState.BROKE:
            # A broken dependency waits again first, whatever the parent has become meanwhile.
            state = DependencyState.VOID if self._is_key_taken(child) else DependencyState.WAITING
        else:
            state = verdict
        self._db.execute(SQL["mark_edge"], (state.value, child.seq, parent.seq))
        if state is DependencyState.VOID:
            return None
        is_last = verdict is DependencyState.MET and not self._db.value(SQL["is_waiting"], (child.seq,))
        event = child_event(was, verdict, is_last=is_last)
        if event is not None:
            if event is Event.REBLOCK:
                self._db.executemany(SQL["leave_undecided"], self._db.all(SQL["wait_again"], (child.seq,)))
            changed = change_child(event, child, parent, at)
            self._db.execute(SQL[STATEMENTS[event]], changed.values)
            transitions.add(child.queue, changed.was, changed.now)
        return event

    def _is_key_taken(self, child: Child) -> bool:
        """Whether another job waits or runs with its unique key: then it stays cancelled, and no parent decides about it."""
        if child.unique_key is None:
            return False
        return any(holder.is_open for holder in self._tx.holders([child.unique_key]).values())
