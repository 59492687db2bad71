"""The seam for batches: jobs under one name, what has become of them, and what runs when all of them have ended."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from queuectl.job.lifecycle import FINAL, State
from queuectl.job.newjob import NewJob

Row = tuple[Any, ...]

LATELY_MS: Final = 60_000  # the time that a rate is taken from


class Batch(NamedTuple):
    name: str
    added: int  # jobs that ever came to it, also those that were removed since
    created_at: int
    completed_at: int | None  # when what runs then was queued; None also if nothing does
    on_complete: str | None  # the command
    on_complete_job: str | None  # the job that was made of it
    states: Mapping[State, int]
    lately: int  # how many were completed within LATELY_MS

    @property
    def open(self) -> int:
        """How many have not ended."""
        return sum(jobs for state, jobs in self.states.items() if state not in FINAL)


class Completed(NamedTuple):
    batch: str
    job_id: str


class LastJob(NamedTuple):
    """What runs when all of a batch has ended."""

    job: NewJob
    is_queued: bool  # all of it has


class BatchReads(Protocol):
    def batch(self, name: str) -> Batch:
        """Raises BatchNotFound. Costs what the batch is long, of an index, however many other jobs there are."""
        ...

    def batches(self) -> list[Batch]:
        """The newest first; `lately` is left at 0."""
        ...

    def last_jobs(self) -> dict[str, LastJob]:
        """By batch, of those that have one."""
        ...


class Batching(Protocol):
    def complete_batches(self) -> list[Completed]:
        """Queue what is to run for batches of which all jobs have ended: for each batch once, whoever else does the same at
        the same time, and all of it or nothing. Cheap if there is none."""
        ...

    def forget_batches(self, *, before_ms: int) -> int:
        """Remove batches made before a moment that have no job any more, and for which nothing is to run. Returns how many."""
        ...


def batch_of(row: Row, states: Iterable[tuple[str, int]], *, lately: int = 0) -> Batch:
    """From a row of `batch` or `batches`."""
    name, added, created_at, completed_at, on_complete, job_id = row
    counts = {**dict.fromkeys(State, 0), **{State(state): jobs for state, jobs in states}}
    command = None if on_complete is None else _said(unpack_job(on_complete))
    return Batch(name, added, created_at, completed_at, command, job_id, counts, lately)


def last_jobs_of(rows: Iterable[Row]) -> dict[str, LastJob]:
    """From rows of `batches`."""
    return {
        name: LastJob(unpack_job(packed), completed_at is not None)
        for name, _, _, completed_at, packed, _ in rows
        if packed is not None
    }


def pack_job(job: NewJob) -> str:
    """As text, for as long as it waits for its batch. The same for the same job: by it another one is told. It waits for
    its batch, and for no other job."""
    return json.dumps({name: value for name, value in job._asdict().items() if name != "depends_on"}, sort_keys=True)


def unpack_job(text: str) -> NewJob:
    fields = json.loads(text)
    argv = fields["argv"]
    of_lists = {name: tuple(fields.get(name, ())) for name in ("tags", "secrets")}
    return NewJob(**{**fields, **of_lists, "argv": None if argv is None else tuple(argv)})


def completing(text: str, states: Iterable[tuple[str, int]], *, batch: str) -> NewJob:
    """The job that runs when `batch` has ended so: it finds that in its environment, and is no part of the batch."""
    job, counts = unpack_job(text), dict(states)
    env = {
        **(job.env or {}),
        "QUEUECTL_BATCH": batch,
        "QUEUECTL_BATCH_JOBS": str(sum(counts.values())),
        **{f"QUEUECTL_BATCH_{state.upper()}": str(counts.get(state, 0)) for state in sorted(FINAL)},
    }
    return job._replace(env=env, batch=None)


def _said(job: NewJob) -> str:
    return job.command if job.command is not None else " ".join(job.argv or ())
