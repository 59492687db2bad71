"""Resolve dependencies in PostgreSQL, some at a time. The rules are in jobs/dependencies.py."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from queuectl.errors import Unavailable
from queuectl.jobs.dependencies import DependencyState, Need, Otherwise, child_event, evaluate, needs_met_again_by
from queuectl.jobs.states import Event, State, is_final
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.dependencies import (
    MAX_CHILDREN_PER_STEP,
    MAX_CHILDREN_WITH_ENDS,
    MAX_PARENTS_PER_STEP,
    NOTHING_RESOLVED,
    STATEMENTS,
    Child,
    ChildChange,
    Moment,
    Parent,
    Resolution,
    Resolver,
    change_child,
)
from queuectl.store.postgres.connection import SQL
from queuectl.store.postgres.transactions import PostgresTransactions
from queuectl.store.types import Row

BLOCKED_DELAY: Final = 0.005  # seconds to wait if other transactions hold all that is left
DESCENDANTS_PER_CHILD: Final = 10  # that one transaction may resolve after a child whose transition they share
_PROPAGATED: Final = frozenset({State.CANCELLED, State.BLOCKED})


class _Held(NamedTuple):
    """A job whose row is locked."""

    parent: Parent
    child: Child

    @classmethod
    def of(cls, row: Row) -> _Held:
        seq, id_, state, *rest = row
        return cls(Parent(seq, id_, State(state)), Child._make((seq, *rest)))


class _Edge(NamedTuple):
    parent: int
    child: int
    need: Need
    otherwise: Otherwise
    state: DependencyState

    @classmethod
    def of(cls, row: Row) -> _Edge:
        parent, child, need, otherwise, state = row
        return cls(parent, child, Need(need), Otherwise(otherwise), DependencyState(state))


class _Decisions:
    """The transitions of children, decided in memory. Each child is decided once: its other parents are left to the next
    transaction."""

    def __init__(self, at: Moment) -> None:
        self.marks: list[dict[str, Any]] = []
        self.changes: list[tuple[str, ChildChange]] = []  # with the queue
        self.left: set[int] = set()  # parents of which some children could not be decided now
        self._at = at
        self._children: dict[int, _Held] = {}
        self._edges: dict[int, list[_Edge]] = {}  # by parent
        self._waiting: dict[int, set[int]] = {}  # by child: the parents that it waits for
        self._changed: dict[int, Parent] = {}
        self._keys: dict[str, bool] = {}

    def add(self, children: Mapping[int, _Held], edges: Sequence[_Edge], keys: Mapping[str, bool]) -> None:
        """Locked children, with their open dependencies. `keys`: see `PostgresResolver._lock_keys`."""
        self._children.update(children)
        self._waiting.update({seq: set() for seq in children})
        for edge in edges:
            self._edges.setdefault(edge.parent, []).append(edge)
            if edge.state is DependencyState.WAITING:
                self._waiting[edge.child].add(edge.parent)
        self._keys.update(keys)

    def decide(self, parents: Iterable[Parent]) -> list[Parent]:
        """Decide about the children of these, and about the children of those that change. Returns all that have changed, in their
        new state."""
        left = deque(parents)
        while left:
            parent = left.popleft()
            for edge in self._edges.get(parent.seq, ()):
                if edge.child not in self._changed and self._decide(parent, edge):
                    left.append(self._changed[edge.child])
        return list(self._changed.values())

    @property
    def changed(self) -> Mapping[int, Parent]:
        return self._changed

    def knows(self, seq: int) -> bool:
        return seq in self._children

    def _decide(self, parent: Parent, edge: _Edge) -> bool:
        """Whether the child has changed."""
        held = self._children[edge.child]
        verdict = evaluate(edge.need, edge.otherwise, parent.state)
        if edge.state is DependencyState.BROKE:
            if edge.need not in needs_met_again_by(parent.state):
                return False
        elif not is_final(parent.state):
            return False
        now = verdict
        if edge.state is DependencyState.BROKE:
            # A broken dependency waits again first, whatever the parent has become meanwhile.
            now = DependencyState.WAITING
            if (key := held.child.unique_key) is not None:
                if key not in self._keys:
                    self.left.add(parent.seq)  # another transaction has locked the key: next time
                    return False
                # If another job waits or runs with the key, this one stays cancelled, and no parent decides about it.
                now = DependencyState.VOID if self._keys[key] else DependencyState.WAITING
                self._keys[key] = True
        self.marks.append({"state": now.value, "child": edge.child, "parent": edge.parent})
        self._waiting[edge.child].discard(parent.seq)
        if now is DependencyState.VOID:
            return False
        event = child_event(edge.state, verdict, is_last=not self._waiting[edge.child])
        if event is None:
            return False
        changed = change_child(event, held.child, parent, self._at)
        self.changes.append((held.child.queue, changed))
        self._changed[edge.child] = held.parent._replace(state=changed.now)
        return True


class PostgresResolver(Resolver):
    _tx: PostgresTransactions

    def __init__(self, tx: PostgresTransactions) -> None:
        super().__init__(tx)
        self._db = tx.db

    def decide(self) -> bool:
        return self._decide().more

    def resolve_some(self, *, is_undecided: bool, with_ends: bool) -> Resolution:
        """After an exchange, in a transaction of its own, since it locks jobs of other workers. Its failure does not undo the
        exchange."""
        try:
            most = MAX_CHILDREN_WITH_ENDS if with_ends else MAX_CHILDREN_PER_STEP
            return self._decide(most) if is_undecided else NOTHING_RESOLVED
        except Unavailable:
            return Resolution(freed=False, more=True)

    @retry_conflicts
    def _decide(self, most: int = MAX_CHILDREN_PER_STEP) -> Resolution:
        """In a transaction that locks the parents, so that their states do not change meanwhile, and the children, so that of two
        parents one sees that it is the last."""
        with self._tx.write("hold_ageing") as transitions:
            noted = self._db.all(SQL["undecided"], {"limit": MAX_PARENTS_PER_STEP})
            if not noted:
                return NOTHING_RESOLVED
            named = sorted({parent for _, parent in noted})
            parents = self._hold_jobs(named)
            gone = set(named) - set(parents)
            if gone:
                gone -= {seq for (seq,) in self._db.all(SQL["present_jobs"], {"seqs": sorted(gone)})}
            pairs = self._db.all(SQL["decidable"], {"parents": sorted(parents), "limit": most})
            children = {child for _, child in pairs}
            held = {**parents, **self._hold_jobs(sorted(children - set(parents)))}
            # The state of a parent may be about to change because of its own parents: those first.
            settled = {seq: one for seq, one in parents.items() if seq not in children}
            decisions = self._judge(settled, {seq: held[seq] for seq in children if seq in held}, held, most)
            self._write(decisions)
            for queue, changed in decisions.changes:
                transitions.add(queue, changed.was, changed.now)
            events = {changed.event for _, changed in decisions.changes}
            is_all = len(pairs) < most and Event.REBLOCK not in events and children <= set(held) - set(parents)
            with_children = decisions.left if is_all else {parent for parent, _ in pairs}
            done = (set(parents) - with_children) | gone
            rows = [row for row, parent in noted if parent in done]
            self._db.execute(SQL["decided"], {"rows": rows})
            is_undecided = self.is_undecided()
        if is_undecided and not (decisions.marks or rows):
            self._tx.clock.sleep(BLOCKED_DELAY)  # other transactions hold what is left
        if (freed := Event.UNBLOCK in events) and (notification := self._tx.notification()):
            self._db.write(notification)
        return Resolution(freed, is_undecided)

    def _hold_jobs(self, seqs: Sequence[int]) -> dict[int, _Held]:
        return {row[0]: _Held.of(row) for row in self._db.all(SQL["hold_jobs"], {"seqs": seqs})} if seqs else {}

    def _judge(
        self, parents: Mapping[int, _Held], children: Mapping[int, _Held], held: Mapping[int, _Held], most: int
    ) -> _Decisions:
        """`held`: all jobs that are locked already. A transition of a child may cause those of its own children, and so on: a chain is
        followed here, since a transaction per link would take long."""
        at = Moment(self._tx.clock.now_ms(), self._tx.last_seq(), self._tx.ageing())
        decisions = _Decisions(at)
        if not children:
            return decisions
        self._load_edges(decisions, children)
        changed = [
            parent for parent in decisions.decide(one.parent for one in parents.values()) if parent.state in _PROPAGATED
        ]
        if not changed:
            return decisions
        values = {"seqs": [parent.seq for parent in changed], "fates": [parent.state.value for parent in changed]}
        limit = len(changed) + DESCENDANTS_PER_CHILD * most
        found = [seq for (seq,) in self._db.all(SQL["followers"], {**values, "limit": limit})]
        behind = [seq for seq in found if not decisions.knows(seq)]
        known = {**held, **self._hold_jobs([seq for seq in behind if seq not in held])}
        if behind := [seq for seq in behind if seq in known]:
            self._load_edges(decisions, {seq: known[seq] for seq in behind})
            decisions.decide(changed)
        return decisions

    def _load_edges(self, decisions: _Decisions, children: Mapping[int, _Held]) -> None:
        edges = [_Edge.of(row) for row in self._db.all(SQL["open_edges"], {"children": sorted(children)})]
        broken = {children[edge.child].child.unique_key for edge in edges if edge.state is DependencyState.BROKE}
        decisions.add(children, edges, self._lock_keys(sorted(key for key in broken if key is not None)))

    def _lock_keys(self, keys: Sequence[str]) -> dict[str, bool]:
        """Lock those of these unique keys that are not locked, without waiting; for each, whether a job has it."""
        if not keys:
            return {}
        free = [key for (key,) in self._db.all(SQL["try_each_key"], {"keys": list(keys)})]
        taken = {key for key, holder in self._tx.holders(free).items() if holder.is_open}
        return {key: key in taken for key in free}

    def _write(self, decisions: _Decisions) -> None:
        if not decisions.marks:
            return
        self._db.execute(SQL["mark_edge"], {"changes": json.dumps(decisions.marks)})
        for event in (Event.UNBLOCK, Event.ORPHAN, Event.REBLOCK):
            values = [changed.values for _, changed in decisions.changes if changed.event is event]
            if values and event is Event.REBLOCK:
                self._db.execute(SQL["wait_again"], {"children": [value["seq"] for value in values]})
            if values:
                self._db.execute(SQL[STATEMENTS[event]], {"changes": json.dumps(values), "now": values[0]["now"]})
        if any(parent.state in _PROPAGATED for parent in decisions.changed.values()):
            self._db.execute(SQL["clear_resolved"])
