"""Telling children what became of their parents, some at a time. See job/graph.py for the rules."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from queuectl.errors import Unavailable
from queuectl.job.graph import EdgeState, Need, Otherwise, decide, judge, mended_by
from queuectl.job.lifecycle import Event, State, is_final
from queuectl.store.postgres.base import PostgresBase, read_ageing
from queuectl.store.postgres.connection import SQL, Question
from queuectl.store.postgres.session import Row
from queuectl.store.postgres.trouble import run_again
from queuectl.store.postgres.unique import holders_of
from queuectl.store.telling import (
    AT_ONCE,
    BESIDE_ENDS,
    NOTHING_TOLD,
    PARENTS_AT_ONCE,
    Change,
    Child,
    Moment,
    Parent,
    Told,
    change,
)

PAUSE: Final = 0.005
FOLLOWERS: Final = 10  # for each child that a transaction may tell: how many behind it that meet the same fate
_FOLLOWED: Final = frozenset({State.CANCELLED, State.BLOCKED})


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
    state: EdgeState

    @classmethod
    def of(cls, row: Row) -> _Edge:
        parent, child, need, otherwise, state = row
        return cls(parent, child, Need(need), Otherwise(otherwise), EdgeState(state))


class _Verdicts:
    """What becomes of children, decided in memory. Each is decided about once: what follows from that for its other parents is
    left to the next transaction."""

    def __init__(self, at: Moment) -> None:
        self.marks: list[dict[str, Any]] = []
        self.changes: list[tuple[str, Change]] = []  # with the queue
        self.left: set[int] = set()  # parents of which some children could not be told now
        self._at = at
        self._children: dict[int, _Held] = {}
        self._edges: dict[int, list[_Edge]] = {}  # by parent
        self._waiting: dict[int, set[int]] = {}  # by child: the parents that it waits for
        self._changed: dict[int, Parent] = {}
        self._keys: dict[str, bool] = {}

    def add(self, children: Mapping[int, _Held], edges: Sequence[_Edge], keys: Mapping[str, bool]) -> None:
        """Children that are locked, with their open edges. `keys`: see `PostgresEdges._take_keys`."""
        self._children.update(children)
        self._waiting.update({seq: set() for seq in children})
        for edge in edges:
            self._edges.setdefault(edge.parent, []).append(edge)
            if edge.state is EdgeState.WAITING:
                self._waiting[edge.child].add(edge.parent)
        self._keys.update(keys)

    def tell(self, parents: Iterable[Parent]) -> list[Parent]:
        """Decide about the children of these, and about the children of those that change by it. Returns all that have changed, as
        they are now."""
        left = deque(parents)
        while left:
            parent = left.popleft()
            for edge in self._edges.get(parent.seq, ()):
                if edge.child not in self._changed and self._tell(parent, edge):
                    left.append(self._changed[edge.child])
        return list(self._changed.values())

    @property
    def changed(self) -> Mapping[int, Parent]:
        return self._changed

    def knows(self, seq: int) -> bool:
        return seq in self._children

    def _tell(self, parent: Parent, edge: _Edge) -> bool:
        """Whether the child has changed."""
        held = self._children[edge.child]
        verdict = judge(edge.need, edge.otherwise, parent.state)
        if edge.state is EdgeState.BROKE:
            if edge.need not in mended_by(parent.state):
                return False
        elif not is_final(parent.state):
            return False
        now = verdict
        if edge.state is EdgeState.BROKE:
            # What broke waits again first, whatever its parent has become meanwhile.
            now = EdgeState.WAITING
            if (key := held.child.unique_key) is not None:
                if key not in self._keys:
                    self.left.add(parent.seq)  # another transaction decides about the key: the next time
                    return False
                # Another job has come to wait or run in its place: then it stays cancelled, and no parent decides about it.
                now = EdgeState.VOID if self._keys[key] else EdgeState.WAITING
                self._keys[key] = True
        self.marks.append({"state": now.value, "child": edge.child, "parent": edge.parent})
        self._waiting[edge.child].discard(parent.seq)
        if now is EdgeState.VOID:
            return False
        event = decide(edge.state, verdict, is_last=not self._waiting[edge.child])
        if event is None:
            return False
        changed = change(event, held.child, parent, self._at)
        self.changes.append((held.child.queue, changed))
        self._changed[edge.child] = held.parent._replace(state=changed.now)
        return True


class PostgresEdges(PostgresBase):
    def decide(self) -> bool:
        return self._decide().more

    def try_to_settle_children(self) -> None:
        """After a transaction that has ended jobs: there may be no worker to do it. What was written is written: a store that
        cannot serve now is no reason to say otherwise, and whoever comes next tells them."""
        with suppress(Unavailable):
            self._settle_children()

    def _tell_some(self, *, is_undecided: bool, beside_ends: bool) -> Told:
        """In a transaction of its own, that locks jobs which are none of the worker's. What was traded is traded, whatever
        becomes of this."""
        try:
            return self._decide(BESIDE_ENDS if beside_ends else AT_ONCE) if is_undecided else NOTHING_TOLD
        except Unavailable:
            return Told(freed=False, more=True)

    def _settle_children(self) -> None:
        ((is_undecided,),) = self._db.ask(Question(SQL["is_undecided"]))[0]
        if is_undecided:
            while self.decide():
                pass

    @run_again
    def _decide(self, most: int = AT_ONCE) -> Told:
        """A transaction of its own. It holds the parents, so that none of them meets another fate meanwhile, and the children,
        so that two parents of one child do not each take the other for the last."""
        with self._moving(Question(SQL["hold_ageing"])) as moves:
            noted = self._db.all(SQL["undecided"], {"limit": PARENTS_AT_ONCE})
            if not noted:
                return NOTHING_TOLD
            named = sorted({parent for _, parent in noted})
            parents = self._hold_jobs(named)
            gone = set(named) - set(parents)
            if gone:
                gone -= {seq for (seq,) in self._db.all(SQL["present_jobs"], {"seqs": sorted(gone)})}
            pairs = self._db.all(SQL["decidable"], {"parents": sorted(parents), "limit": most})
            children = {child for _, child in pairs}
            held = {**parents, **self._hold_jobs(sorted(children - set(parents)))}
            # What a parent is may be about to change by what its own parents are: those first.
            settled = {seq: one for seq, one in parents.items() if seq not in children}
            verdicts = self._judge(settled, {seq: held[seq] for seq in children if seq in held}, held, most)
            self._write(verdicts)
            for queue, changed in verdicts.changes:
                moves.add(queue, changed.was, changed.now)
            events = {changed.event for _, changed in verdicts.changes}
            is_all = len(pairs) < most and Event.REBLOCK not in events and children <= set(held) - set(parents)
            with_children = verdicts.left if is_all else {parent for parent, _ in pairs}
            done = (set(parents) - with_children) | gone
            rows = [row for row, parent in noted if parent in done]
            self._db.execute(SQL["decided"], {"rows": rows})
            is_undecided = bool(self._db.value(SQL["is_undecided"]))
        if is_undecided and not (verdicts.marks or rows):
            self._clock.sleep(PAUSE)  # others hold what is left: whoever comes back at once would only keep asking
        if (freed := Event.UNBLOCK in events) and (ring := self._ring()):
            self._db.transact(ring)
        return Told(freed, is_undecided)

    def _hold_jobs(self, seqs: Sequence[int]) -> dict[int, _Held]:
        return {row[0]: _Held.of(row) for row in self._db.all(SQL["hold_jobs"], {"seqs": seqs})} if seqs else {}

    def _judge(
        self, parents: Mapping[int, _Held], children: Mapping[int, _Held], held: Mapping[int, _Held], most: int
    ) -> _Verdicts:
        """`held`: all that are locked already. What is decided about a child may decide about its own children, too, and so on: a
        chain is followed here, or each of its links would take a transaction."""
        stored, ((last_seq,),) = self._db.ask(Question(SQL["ageing"]), Question(SQL["last_seq"]))
        at = Moment(self._clock.now_ms(), last_seq, read_ageing(stored[0][0] if stored else None))
        verdicts = _Verdicts(at)
        if not children:
            return verdicts
        self._load_edges(verdicts, children)
        changed = [
            parent for parent in verdicts.tell(one.parent for one in parents.values()) if parent.state in _FOLLOWED
        ]
        if not changed:
            return verdicts
        values = {"seqs": [parent.seq for parent in changed], "fates": [parent.state.value for parent in changed]}
        limit = len(changed) + FOLLOWERS * most
        found = [seq for (seq,) in self._db.all(SQL["followers"], {**values, "limit": limit})]
        behind = [seq for seq in found if not verdicts.knows(seq)]
        known = {**held, **self._hold_jobs([seq for seq in behind if seq not in held])}
        if behind := [seq for seq in behind if seq in known]:
            self._load_edges(verdicts, {seq: known[seq] for seq in behind})
            verdicts.tell(changed)
        return verdicts

    def _load_edges(self, verdicts: _Verdicts, children: Mapping[int, _Held]) -> None:
        edges = [_Edge.of(row) for row in self._db.all(SQL["open_edges"], {"children": sorted(children)})]
        broken = {children[edge.child].child.unique_key for edge in edges if edge.state is EdgeState.BROKE}
        verdicts.add(children, edges, self._take_keys(sorted(key for key in broken if key is not None)))

    def _take_keys(self, keys: Sequence[str]) -> dict[str, bool]:
        """Those of these keys that nobody else is deciding about, each with whether a job has it. Nobody is waited for."""
        if not keys:
            return {}
        free = [key for (key,) in self._db.all(SQL["try_each_key"], {"keys": list(keys)})]
        taken = {key for key, holder in holders_of(self._db, free).items() if holder.is_open}
        return {key: key in taken for key in free}

    def _write(self, verdicts: _Verdicts) -> None:
        if not verdicts.marks:
            return
        self._db.execute(SQL["mark_edge"], {"told": json.dumps(verdicts.marks)})
        for event in (Event.UNBLOCK, Event.ORPHAN, Event.REBLOCK):
            values = [changed.values for _, changed in verdicts.changes if changed.event is event]
            if values and event is Event.REBLOCK:
                self._db.execute(SQL["wait_again"], {"children": [value["seq"] for value in values]})
            if values:
                self._db.execute(_statement(event), {"told": json.dumps(values), "now": values[0]["now"]})
        if any(parent.state in _FOLLOWED for parent in verdicts.changed.values()):
            self._db.execute(SQL["told"])


def _statement(event: Event) -> str:
    return SQL[{Event.UNBLOCK: "unblock", Event.ORPHAN: "orphan", Event.REBLOCK: "reblock"}[event]]
