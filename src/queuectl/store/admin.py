"""Changes by users: cancel, retry, edit, move and purge jobs; settings, queue rules, stop requests; the audit log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from queuectl.jobs.audit import FORGET, Act, Actor, Entry
from queuectl.jobs.edit import JobEdit
from queuectl.jobs.priority import Ageing, ByTime, Standing, format_ageing, rank
from queuectl.jobs.queue_limits import QueueLoad, QueueSettings
from queuectl.jobs.states import WAITING, Event, State, is_final, states_that_take
from queuectl.store import audit
from queuectl.store.admission import change_rules, read_limit, read_rules, rules_row
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.dependencies import Resolver
from queuectl.store.rows import Subject, by_key
from queuectl.store.transactions import Transactions
from queuectl.store.types import CancelAnswer, Edited, Ids, Orders, Retried, StopMode
from queuectl.store.unique import cancel_waiting, free_to_retry, keys_of, subjects

AUDIT_PAGE_SIZE: Final = 500
MAX_SEQ: Final = 2**63 - 1


class JobAdmin:
    def __init__(self, tx: Transactions, resolver: Resolver) -> None:
        self._tx = tx
        self._resolver = resolver

    @retry_conflicts
    def cancel(self, ids: Ids) -> dict[str, CancelAnswer]:
        with self._tx.write("hold_ageing", notify=True) as transitions:
            now, found = self._tx.clock.now_ms(), subjects(self._tx, ids)
            waiting = [job for job in found if job.state in WAITING]
            ageing, last_seq = self._tx.ageing(), self._tx.last_seq()
            cancel_waiting(
                self._tx, waiting, transitions, now_ms=now, ageing=ageing, last_seq=last_seq, error="cancelled"
            )
            running = [job for job in found if job.state is State.PROCESSING]
            requests = [{"seq": job.seq, "token": job.token, "now": now} for job in running]
            self._tx.executemany("cancel_running", requests)
            self._tx.record(audit.state_change("cancel", (job for job in found if not is_final(job.state))))
        self._resolver.try_to_resolve_all()
        return {job.id: CancelAnswer(job.state, job.worker, job.token) for job in found}

    @retry_conflicts
    def retry(self, ids: Ids, *, states: frozenset[State]) -> Retried:
        able = states.intersection(states_that_take(Event.RETRY))
        with self._tx.write("hold_ageing", ("take_keys_of", {"ids": list(ids)}), notify=True) as transitions:
            ageing, now = self._tx.ageing(), self._tx.clock.now_ms()
            found = subjects(self._tx, ids)
            able_jobs = [job for job in found if job.state in able]
            chosen, taken = free_to_retry(able_jobs, self._tx.holders(keys_of(able_jobs)))
            # A job that one of them had cancelled as its child is blocked again when its parent is retried.
            seqs = self._tx.array([job.seq for job in chosen])
            children = {seq for (seq,) in self._tx.all("cancelled_children", {"seqs": seqs})}
            chosen = [job for job in chosen if job.seq not in children]
            for job in chosen:
                transitions.add(job.queue, job.state, State.PENDING)
            rows = [{"seq": job.seq, "rank": rank(ageing, job.standing)} for job in chosen]
            self._tx.write_each("retry", rows, now=now)
            self._tx.record(audit.state_change("retry", chosen))
        self._resolver.try_to_resolve_all()
        retried = Retried((job.id, job.state) for job in found)
        retried.taken = taken
        return retried

    @retry_conflicts
    def edit(
        self, ids: Ids, change: JobEdit, *, states: frozenset[State] = WAITING, as_of: int | None = None
    ) -> dict[str, Edited]:
        with self._tx.write("hold_ageing", notify=True) as transitions:
            ageing, now = self._tx.ageing(), self._tx.clock.now_ms()
            found = subjects(self._tx, ids)
            chosen = [
                job for job in found if job.state in WAITING and job.state in states and as_of in (None, job.updated_at)
            ]
            act = None
            if self._tx.actor is not None:
                before = self._tx.all("audit_before", {"ids": self._tx.array([job.id for job in chosen])})
                act = audit.changed(change, before)
            rows = [self._edited_row(job, change, rank_of=lambda at: rank(ageing, at), now_ms=now) for job in chosen]
            self._tx.write_each("edit", rows, **_edited_fields(change), now=now)
            for job in chosen:
                transitions.relocate(job.queue, change.queue, job.state)
            self._tx.admit(sorted({(job.queue, job.key) for job in chosen if job.key is not None}))
            self._tx.record(act)
        return {job.id: Edited(job.state, is_stale=as_of not in (None, job.updated_at)) for job in found}

    @staticmethod
    def _edited_row(job: Subject, change: JobEdit, *, rank_of: Any, now_ms: int) -> dict[str, Any]:
        """The position of a job after an edit, and when it runs."""
        priority = job.standing.priority if change.priority is None else change.priority
        wanted = change.run_at(now_ms)
        run_at = job.run_at if wanted is None else wanted
        eligible_at = job.standing.eligible_ms if wanted is None or job.runs else run_at
        held = job.held if change.held is None else change.held
        # A job that was promoted stays so, also if the clock was set back since.
        is_due = run_at <= now_ms or (job.ready and wanted is None)
        return {
            "seq": job.seq,
            "priority": priority,
            "rank": rank_of(Standing(priority, job.seq, eligible_at, job.standing.missed)),
            "eligible_at": eligible_at,
            "run_at": run_at,
            "ready": is_due and not held and job.state is not State.BLOCKED,
            "held": held,
        }

    @retry_conflicts
    def move(self, queue: str, to: str, *, ids: Sequence[str] | None = None) -> dict[str, State]:
        with self._tx.write(notify=True, seconds=self._tx.long_seconds) as transitions:
            chosen = None if ids is None else self._tx.array(ids)
            values = {"queue": queue, "to": to, "ids": chosen, "now": self._tx.clock.now_ms()}
            found = sorted(self._tx.all("move", values))
            for state, jobs in Counter(state for _, _, state, _ in found).items():
                transitions.relocate(queue, to, state, jobs=jobs)
            self._tx.admit(sorted({(name, key) for *_, key in found if key is not None for name in (queue, to)}))
            self._tx.record(audit.moved([id_ for _, id_, *_ in found], queue, to))
        return {id_: State(state) for _, id_, state, _ in found}


def _edited_fields(change: JobEdit) -> dict[str, Any]:
    """The parameters of `edit` that are the same for all jobs; null for a field that is not changed."""

    def packed(value: object) -> str | None:
        return None if value is None else json.dumps(value)

    return {
        "command": change.command,
        "argv": packed(change.argv),
        "queue": change.queue,
        "max_retries": change.max_retries,
        "first_is_free": change.first_is_free,
        "timeout_ms": change.timeout_ms,
        "secrets": packed(change.secrets),
        "hooks": packed(change.hooks),
        "limits": packed(change.limits),
    }


class QueueAdmin:
    """Settings and the rules of queues."""

    def __init__(self, tx: Transactions) -> None:
        self._tx = tx

    def rules(self) -> dict[str, QueueSettings]:
        return {name: read_rules(tuple(row)) for name, *row in self._tx.all("rules")}

    def brakes(self) -> dict[str, QueueLoad]:
        now = self._tx.clock.now_ms()
        return {limit.queue: limit.brake(now) for limit in map(read_limit, self._tx.all("limits", {"now": now}))}

    def running_keys(self) -> dict[tuple[str, str], list[str]]:
        return by_key(self._tx.all("running_keys"))

    def rates(self) -> dict[str, int]:
        return dict(self._tx.all("recent_starts", {"now": self._tx.clock.now_ms()}))

    @retry_conflicts
    def set_rules(self, queue: str, changes: Mapping[str, Any]) -> QueueSettings:
        # Exclusive: a concurrent claim has not seen the new rules, and its jobs are not visible here.
        with self._tx.write("change_ageing", notify=True):
            before = self.lock_rules(queue)
            rules = change_rules(before, changes)
            self.write_rules(queue, before, rules)
            if rules != before:
                self._tx.record(audit.ruled(queue, before, rules))
        return rules

    def lock_rules(self, queue: str) -> QueueSettings:
        """Within a transaction: the rules of a queue, which no other transaction changes or claims by until the end of this one."""
        row = self._tx.one("take_rules", {"name": queue})
        return QueueSettings() if row is None else read_rules(row)

    def write_rules(self, queue: str, before: QueueSettings, rules: QueueSettings) -> None:
        """Within a transaction that holds `change_ageing`, after `lock_rules`."""
        if rules == QueueSettings():
            self._tx.execute("unset_rules", {"name": queue})
        else:
            self._tx.execute("set_rules", rules_row(queue, rules))
        if rules.rate is None:
            self._tx.execute("forget_starts", {"queue": queue})
        if rules.per_key != before.per_key:
            self._tx.execute("mark_key_blocked", {"queue": queue, "per_key": rules.per_key})

    @retry_conflicts
    def set_config(self, changes: Mapping[str, str | None]) -> None:
        with self._tx.write("change_ageing", notify=True, seconds=self._tx.long_seconds, plan_freely=True):
            act = audit.configured(self._tx.config(), changes)
            self.write_config(changes)
            self._tx.record(act)

    def write_config(self, changes: Mapping[str, str | None]) -> None:
        """Within a transaction; one that holds `change_ageing` if that is among them."""
        before = self._tx.ageing()
        for key, value in sorted(changes.items()):
            if value is None:
                self._tx.execute("unset_config", {"key": key})
            else:
                self._tx.execute("set_config", {"key": key, "value": value})
        ageing = self._tx.ageing()
        # Compared as text: kinds without a value are empty tuples, which are all equal.
        if format_ageing(ageing) != format_ageing(before):
            self._tx.write_ageing(ageing)
            self._tx.execute("rerank", ageing_values(ageing))
            update_key_limits(self._tx)

    # ── requests to workers ─────────────────────────────────────────────────────────────────────────────────────────

    @retry_conflicts
    def request_stop(self, worker: str, mode: StopMode) -> bool:
        with self._tx.write(notify=True):
            found = self._tx.execute("request_stop", {"id": worker, "mode": mode.value})
            self._tx.record(Act("worker stop", [worker] if found else [], after={"mode": mode.value}))
        return found == 1

    def orders(self, worker: str) -> Orders:
        found, cancels = self._tx.each(("stop_order", {"id": worker}), ("cancel_orders", {"worker": worker}))
        stop = StopMode(found[0][0]) if found and found[0][0] is not None else None
        return Orders(known=bool(found), stop=stop, cancels=[token for (token,) in cancels])


def ageing_values(ageing: Ageing) -> dict[str, str | int]:
    """The parameters of `set_ageing` and `rerank`."""
    if isinstance(ageing, ByTime):
        return {"ageing": "time", "step_ms": ageing.step_ms}
    return {"ageing": format_ageing(ageing), "step_ms": 0}


def update_key_limits(tx: Transactions) -> None:
    """Within a transaction that has changed the rank of jobs: decide again which may be claimed, in all queues that limit keys."""
    per_key = dict.fromkeys((queue for (queue,) in tx.all("placed_queues")), None)
    per_key |= dict(tx.all("per_key"))
    for queue, limit in per_key.items():
        tx.execute("mark_key_blocked", {"queue": queue, "per_key": limit})


class AuditLog:
    def __init__(self, tx: Transactions) -> None:
        self._tx = tx

    def audit(
        self, *, since_ms: int = 0, has: str | None = None, newest: bool = False, behind: int | None = None
    ) -> Iterator[Entry]:
        if behind is None:
            behind = MAX_SEQ if newest else 0
        while True:
            values = {"behind": behind, "since": since_ms, "has": has, "limit": AUDIT_PAGE_SIZE}
            page = self._tx.all("audit_newest" if newest else "audit", values)
            yield from map(Entry._make, page)
            if len(page) < AUDIT_PAGE_SIZE:
                return
            behind = page[-1][0]

    @retry_conflicts
    def note(self, act: Act) -> None:
        with self._tx.write():
            self._tx.record(act)

    @retry_conflicts
    def forget_audit(self, *, before_ms: int, rows: int, by: Actor) -> int:
        with self._tx.write():
            forgotten = self._tx.execute("forget_audit", {"before": before_ms, "rows": rows})
            if forgotten:
                self._tx.record(Act(FORGET, ["audit"], before={"records": forgotten}), by)
            return forgotten
