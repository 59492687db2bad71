"""The store: every operation on the database.

`Store` itself has the jobs: queries (reads.py), changes by users, and removal. Other tables are its parts: `store.schedules.add(…)`. The
docstring of a method is its contract. Every write is one transaction and durable when the call returns. Both dialects pass the same
conformance suite (tests/store).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from queuectl.jobs.edit import JobEdit
from queuectl.jobs.priority import Standing, format_ageing, rank
from queuectl.jobs.states import WAITING, Event, State, is_final, states_that_take
from queuectl.store import audit
from queuectl.store.alerts import Alerts
from queuectl.store.audit import AuditLog
from queuectl.store.batches import Batches
from queuectl.store.claims import Claims
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.counters import Samples
from queuectl.store.dependencies import Resolver
from queuectl.store.enqueue import EnqueueSteps, EnqueueStore
from queuectl.store.queues import Queues, ageing_values, update_key_limits
from queuectl.store.reads import Reads
from queuectl.store.rows import Subject
from queuectl.store.schedules import Schedules
from queuectl.store.transactions import Transactions
from queuectl.store.transfer import Transfers
from queuectl.store.types import CancelAnswer, Edited, Ids, Retried
from queuectl.store.unique import cancel_waiting, free_to_retry, keys_of, subjects
from queuectl.store.webhook_outbox import WebhookOutbox

FORGET_AT_ONCE: Final = 1000  # rows in one transaction: SQLite has one writer at a time


class Store(EnqueueStore, Reads):
    """Base of the two dialects, which create `claims` and `transfers`."""

    claims: Claims
    transfers: Transfers

    def __init__(self, tx: Transactions, enqueuer: EnqueueSteps, resolver: Resolver) -> None:
        super().__init__(tx, enqueuer)
        self.dependencies = resolver
        self.queues = Queues(tx)
        self.schedules = Schedules(tx, enqueuer, resolver)
        self.alerts = Alerts(tx, enqueuer)
        self.batches = Batches(tx, enqueuer)
        self.webhooks = WebhookOutbox(tx, enqueuer)
        self.samples = Samples(tx)
        self.audit = AuditLog(tx)

    # ── changes by users ────────────────────────────────────────────────────────────────────────────────────────────

    @retry_conflicts
    def cancel(self, ids: Ids) -> dict[str, CancelAnswer]:
        """Cancel waiting jobs, and record a cancel for running ones; all in one transaction. Jobs in other states stay as they
        are. Returns an answer for each job that exists."""
        with self.tx.write("hold_ageing", notify=True) as transitions:
            now, found = self.tx.clock.now_ms(), subjects(self.tx, ids)
            waiting = [job for job in found if job.state in WAITING]
            ageing, last_seq = self.tx.ageing(), self.tx.last_seq()
            cancel_waiting(
                self.tx, waiting, transitions, now_ms=now, ageing=ageing, last_seq=last_seq, error="cancelled"
            )
            running = [job for job in found if job.state is State.PROCESSING]
            requests = [{"seq": job.seq, "token": job.token, "now": now} for job in running]
            self.tx.executemany("cancel_running", requests)
            self.tx.record(audit.state_change("cancel", (job for job in found if not is_final(job.state))))
        self.dependencies.try_to_resolve_all()
        return {job.id: CancelAnswer(job.state, job.worker, job.token) for job in found}

    @retry_conflicts
    def retry(self, ids: Ids, *, states: frozenset[State]) -> Retried:
        """Requeue those in one of `states`, due now, at their old position; all in one transaction. Returns the state before, of
        each job that exists.

        A dead or cancelled job starts with no attempts and no crashes; its history stays. A job whose unique key another
        job has taken stays as it is, see `Retried.taken`.
        """
        able = states.intersection(states_that_take(Event.RETRY))
        with self.tx.write("hold_ageing", ("take_keys_of", {"ids": list(ids)}), notify=True) as transitions:
            ageing, now = self.tx.ageing(), self.tx.clock.now_ms()
            found = subjects(self.tx, ids)
            able_jobs = [job for job in found if job.state in able]
            chosen, taken = free_to_retry(able_jobs, self.tx.holders(keys_of(able_jobs)))
            # A job that one of them had cancelled as its child is blocked again when its parent is retried.
            seqs = self.tx.array([job.seq for job in chosen])
            children = {seq for (seq,) in self.tx.all("cancelled_children", {"seqs": seqs})}
            chosen = [job for job in chosen if job.seq not in children]
            for job in chosen:
                transitions.add(job.queue, job.state, State.PENDING)
            rows = [{"seq": job.seq, "rank": rank(ageing, job.standing)} for job in chosen]
            self.tx.write_each("retry", rows, now=now)
            self.tx.record(audit.state_change("retry", chosen))
        self.dependencies.try_to_resolve_all()
        retried = Retried((job.id, job.state) for job in found)
        retried.taken = taken
        return retried

    @retry_conflicts
    def edit(
        self, ids: Ids, change: JobEdit, *, states: frozenset[State] = WAITING, as_of: int | None = None
    ) -> dict[str, Edited]:
        """Change jobs that wait in one of `states`, in one transaction. Returns an answer for each job that exists; one that is
        stale, or in another state, stays as it is.

        Their position in the queue is the one they would have, had they been enqueued like this. A new time to run also changes
        when a job without runs became eligible. With `as_of`, only jobs that were last updated at exactly that time.
        """
        with self.tx.write("hold_ageing", notify=True) as transitions:
            ageing, now = self.tx.ageing(), self.tx.clock.now_ms()
            found = subjects(self.tx, ids)
            chosen = [
                job for job in found if job.state in WAITING and job.state in states and as_of in (None, job.updated_at)
            ]
            act = None
            if self.tx.actor is not None:
                before = self.tx.all("audit_before", {"ids": self.tx.array([job.id for job in chosen])})
                act = audit.changed(change, before)
            rows = [self._edited_row(job, change, rank_of=lambda at: rank(ageing, at), now_ms=now) for job in chosen]
            self.tx.write_each("edit", rows, **_edited_fields(change), now=now)
            for job in chosen:
                transitions.relocate(job.queue, change.queue, job.state)
            self.tx.admit(sorted({(job.queue, job.key) for job in chosen if job.key is not None}))
            self.tx.record(act)
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
        """Move the waiting jobs of a queue (with `ids`: those of them) to another one, where each keeps its rank, in one
        transaction. Returns the state of each job that was moved."""
        with self.tx.write(notify=True, seconds=self.tx.long_seconds) as transitions:
            chosen = None if ids is None else self.tx.array(ids)
            values = {"queue": queue, "to": to, "ids": chosen, "now": self.tx.clock.now_ms()}
            found = sorted(self.tx.all("move", values))
            for state, jobs in Counter(state for _, _, state, _ in found).items():
                transitions.relocate(queue, to, state, jobs=jobs)
            self.tx.admit(sorted({(name, key) for *_, key in found if key is not None for name in (queue, to)}))
            self.tx.record(audit.moved([id_ for _, id_, *_ in found], queue, to))
        return {id_: State(state) for _, id_, state, _ in found}

    @retry_conflicts
    def set_config(self, changes: Mapping[str, str | None]) -> None:
        """Store settings; None removes one. A change of `ageing` updates the rank of waiting jobs in the same transaction."""
        with self.tx.write("change_ageing", notify=True, seconds=self.tx.long_seconds, plan_freely=True):
            act = audit.configured(self.tx.config(), changes)
            self.write_config(changes)
            self.tx.record(act)

    def write_config(self, changes: Mapping[str, str | None]) -> None:
        """Within a transaction; one that holds `change_ageing` if that is among them."""
        before = self.tx.ageing()
        for key, value in sorted(changes.items()):
            if value is None:
                self.tx.execute("unset_config", {"key": key})
            else:
                self.tx.execute("set_config", {"key": key, "value": value})
        ageing = self.tx.ageing()
        # Compared as text: kinds without a value are empty tuples, which are all equal.
        if format_ageing(ageing) != format_ageing(before):
            self.tx.write_ageing(ageing)
            self.tx.execute("rerank", ageing_values(ageing))
            update_key_limits(self.tx)

    # ── removal ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def purge(self, ids: Ids) -> dict[str, tuple[State, str | None]]:
        """Remove dead jobs and their history, in one transaction. Returns for each job that exists its state and its log."""

    @abstractmethod
    def reset(self) -> int:
        """Remove all jobs and their history, keep the settings. Returns how many jobs there were."""

    @abstractmethod
    def prune(self, ids: Sequence[str], *, before_ms: int) -> dict[str, str | None]:
        """Remove jobs that ended by then, with history, output, tags and dependencies, after the dependencies on them were resolved.
        Returns the log of each removed job. A job that was retried or ended again since stays. So may the last ones, if
        removing all would block other writers for long; but never all."""

    @abstractmethod
    def trim(self, job_id: str, *, before_ms: int, rows: int) -> int:
        """Remove at most `rows` of the oldest runs, and of the oldest output pieces, of a job that ended by then; returns how many in
        all. For a job with more rows than one transaction should delete."""

    @abstractmethod
    def shrink(self) -> bool:
        """Return some of the free space to the file system. Whether there is more."""

    @retry_conflicts
    def forget_requests(self, *, before_ms: int, limit: int = FORGET_AT_ONCE) -> int:
        """Remove idempotency keys that were used then or before, the oldest first. Returns how many: fewer than `limit` means
        that no more are left."""
        with self.tx.write():
            return self.tx.execute("forget_requests", {"before": before_ms, "limit": limit})


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
