"""Batches and their completion jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from queuectl.errors import BatchNotFound
from queuectl.jobs.spec import NewJob
from queuectl.jobs.states import FINAL, State
from queuectl.store.conflicts import retry_conflicts
from queuectl.store.counters import EVER
from queuectl.store.enqueue import EnqueueSteps, new_job_ids
from queuectl.store.transactions import Transactions
from queuectl.store.types import RECENT_MS, Batch, CompletedBatch, CompletionJob, Row

MAX_TIMED_JOBS: Final = 10_000  # of a batch of which `ended_at` is read


def batch_of(row: Row, states: Iterable[tuple[str, int]], *, recent: int = 0) -> Batch:
    """From a row of `batch` or `batches`."""
    name, added, created_at, completed_at, on_complete, job_id = row
    counts = {**dict.fromkeys(State, 0), **{State(state): jobs for state, jobs in states}}
    job = None if on_complete is None else unpack_job(on_complete)
    command = None if job is None else job.command or " ".join(job.argv or ())
    return Batch(name, added, created_at, completed_at, command, job_id, counts, recent)


def pack_job(job: NewJob) -> str:
    """As text, until its batch completes. Equal for equal jobs, to detect a different one. It depends on its batch only."""
    return json.dumps({name: value for name, value in job._asdict().items() if name != "depends_on"}, sort_keys=True)


def unpack_job(text: str) -> NewJob:
    fields = json.loads(text)
    argv = fields["argv"]
    of_lists = {name: tuple(fields.get(name, ())) for name in ("tags", "secrets")}
    return NewJob(**{**fields, **of_lists, "argv": None if argv is None else tuple(argv)})


def completion_job(text: str, states: Iterable[tuple[str, int]], *, batch: str) -> NewJob:
    """The job that runs when `batch` has ended. Its environment has the counts; it is not part of the batch."""
    job, counts = unpack_job(text), dict(states)
    env = {
        **(job.env or {}),
        "QUEUECTL_BATCH": batch,
        "QUEUECTL_BATCH_JOBS": str(sum(counts.values())),
        **{f"QUEUECTL_BATCH_{state.upper()}": str(counts.get(state, 0)) for state in sorted(FINAL)},
    }
    return job._replace(env=env, batch=None)


class Batches:
    def __init__(self, tx: Transactions, enqueuer: EnqueueSteps) -> None:
        self._tx = tx
        self._enqueuer = enqueuer

    def get(self, name: str) -> Batch:
        """Raises BatchNotFound. The cost depends on the size of this batch only."""
        of, since = {"name": name}, self._tx.clock.now_ms() - RECENT_MS
        found, states, recent = self._tx.each(
            ("batch", of), ("batch_states", of), ("batch_lately", {**of, "since": since})
        )
        if not found:
            raise BatchNotFound(name)
        return self._with_ends([batch_of(found[0], [(state, jobs) for state, jobs in states], recent=recent[0][0])])[0]

    def all(self) -> list[Batch]:
        """The newest first, without `ended_at`."""
        since = self._tx.clock.now_ms() - RECENT_MS
        found, counted, lately = self._tx.each(
            ("batches", ()), ("all_batch_states", ()), ("batches_lately", {"since": since}), plan_freely=True
        )
        states: dict[str, list[tuple[str, int]]] = {}
        for name, state, jobs in counted:
            states.setdefault(name, []).append((state, jobs))
        recent: dict[str, int] = dict(lately)
        return [batch_of(row, states.get(row[0], ()), recent=recent.get(row[0], 0)) for row in found]

    def page(self, *, limit: int, after: tuple[int, str] | None = None, match: str = "") -> list[Batch]:
        """Up to `limit` batches, the newest first, with `recent`; the cost depends on the size of these batches only. `after`: time
        and name of the last batch of the previous page. `match`: only those with this text in their name, in any case."""
        at, last = after or (EVER, "")
        escaped = re.sub("[!%_]", r"!\g<0>", match.lower())
        values = {"created_at": at, "name": last, "pattern": f"%{escaped}%", "limit": limit}
        with self._tx.snapshot():
            found = self._tx.all("batch_page", values)
            since = self._tx.clock.now_ms() - RECENT_MS
            of_each = [("batch_states", {"name": row[0]}) for row in found]
            lately, *counted = self._tx.each(("batches_lately", {"since": since}), *of_each)
        recent: dict[str, int] = dict(lately)
        return self._with_ends(
            [
                batch_of(row, [(state, jobs) for state, jobs in states], recent=recent.get(row[0], 0))
                for row, states in zip(found, counted, strict=True)
            ]
        )

    def _with_ends(self, batches: Sequence[Batch]) -> list[Batch]:
        """With `ended_at` of those that have ended."""
        ended = [one.name for one in batches if not one.open and one.added <= MAX_TIMED_JOBS]
        found = self._tx.each(*(("batch_ended_at", {"name": name}) for name in ended)) if ended else []
        ends = {name: rows[0][0] for name, rows in zip(ended, found, strict=True)}
        return [one._replace(ended_at=ends.get(one.name)) for one in batches]

    def names(self) -> list[str]:
        """The newest first."""
        return [str(row[0]) for row in self._tx.all("batches")]

    def completion_jobs(self) -> dict[str, CompletionJob]:
        """By batch, for those that have one."""
        return {
            name: CompletionJob(unpack_job(packed), completed_at is not None)
            for name, _, _, completed_at, packed, _ in self._tx.all("batches")
            if packed is not None
        }

    def complete_ended(self) -> list[CompletedBatch]:
        """Enqueue the completion jobs of batches of which all jobs have ended: once per batch. Cheap if there is none."""
        due = self._tx.all("batch_due")
        return [completed for (name,) in due if (completed := self._complete(name)) is not None]

    @retry_conflicts
    def _complete(self, name: str) -> CompletedBatch | None:
        with self._tx.write("hold_ageing", notify=True) as transitions:
            text = self._tx.value("take_batch", {"name": name})
            # Read again after the lock: jobs may have been added, or another worker has completed the batch.
            if text is None or name not in (due for (due,) in self._tx.all("batch_due")):
                return None
            states = [(state, jobs) for state, jobs in self._tx.all("batch_states", {"name": name})]
            (job_id,) = new_job_ids(1)
            self._enqueuer.add([completion_job(text, states, batch=name)], [job_id], transitions)
            self._tx.execute("complete_batch", {"name": name, "now": self._tx.clock.now_ms(), "job": job_id})
        return CompletedBatch(name, job_id)

    @retry_conflicts
    def forget(self, *, before_ms: int) -> int:
        """Remove batches that were created before then, have no jobs left and no completion job to come. Returns how many."""
        with self._tx.write():
            return self._tx.execute("forget_batches", {"before": before_ms})
