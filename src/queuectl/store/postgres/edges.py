"""Telling children what became of their parents, some at a time. See job/graph.py for the rules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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


class _Held(NamedTuple):
    """A job whose row is locked."""

    parent: Parent
    child: Child

    @classmethod
    def of(cls, row: Row) -> _Held:
        seq, id_, state, *rest = row
        return cls(Parent(seq, id_, State(state)), Child._make((seq, *rest)))


class _Verdicts(NamedTuple):
    marks: list[dict[str, Any]]
    changes: list[tuple[str, Change]]  # with the queue
    left: set[int]  # parents of which some children could not be told now


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
            verdicts = self._judge(settled, {seq: held[seq].child for seq in children if seq in held})
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

    def _judge(self, parents: Mapping[int, _Held], children: Mapping[int, Child]) -> _Verdicts:
        verdicts = _Verdicts([], [], set())
        if not children:
            return verdicts
        edges, stored, ((last_seq,),) = self._db.ask(
            Question(SQL["open_edges"], {"children": sorted(children)}),
            Question(SQL["ageing"]),
            Question(SQL["last_seq"]),
        )
        at = Moment(self._clock.now_ms(), last_seq, read_ageing(stored[0][0] if stored else None))
        waiting: dict[int, set[int]] = {seq: set() for seq in children}
        for parent, child, _, _, state in edges:
            if state == EdgeState.WAITING:
                waiting[child].add(parent)
        ended: set[int] = set()  # children about which another parent has decided just now
        broken = [children[child] for _, child, _, _, state in edges if state == EdgeState.BROKE]
        keys = self._take_keys(sorted({child.unique_key for child in broken if child.unique_key is not None}))
        for parent, child, need, otherwise, state in edges:
            if parent not in parents or child in ended:
                continue
            told, was = parents[parent].parent, EdgeState(state)
            verdict = judge(Need(need), Otherwise(otherwise), told.state)
            if was is EdgeState.BROKE:
                if need not in mended_by(told.state):
                    continue
            elif not is_final(told.state):
                continue
            now = verdict
            if was is EdgeState.BROKE:
                # What broke waits again first, whatever its parent has become meanwhile.
                now = EdgeState.WAITING
                if (key := children[child].unique_key) is not None:
                    if key not in keys:
                        verdicts.left.add(parent)  # somebody is deciding about the key: the next time
                        continue
                    # Another job has come to wait or run in its place: then it stays called off, and is in nobody's hands.
                    now = EdgeState.VOID if keys[key] else EdgeState.WAITING
                    keys[key] = True
            verdicts.marks.append({"state": now.value, "child": child, "parent": parent})
            waiting[child].discard(parent)
            if now is EdgeState.VOID:
                continue
            event = decide(was, verdict, is_last=not waiting[child])
            if event is not None:
                verdicts.changes.append((children[child].queue, change(event, children[child], told, at)))
                ended.add(child)
        return verdicts

    def _take_keys(self, keys: Sequence[str]) -> dict[str, bool]:
        """Those of these keys that nobody else is deciding about, each with whether a job has it. Nobody is waited for."""
        if not keys or not self._db.value(SQL["try_keys"]):
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


def _statement(event: Event) -> str:
    return SQL[{Event.UNBLOCK: "unblock", Event.ORPHAN: "orphan", Event.REBLOCK: "reblock"}[event]]
