"""What the witness keeps of a job and of a run."""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.sim.worker import Worker

COLUMNS: Final = (
    "seq, id, state, queue, ready, priority, eligible_at, missed, run_at, held, attempts, runs, crashes, token, worker,"
    " host, cancel_requested, exit_code, signal, ending, max_retries, first_is_free, pid, timeout_ms, key"
)


class Row(NamedTuple):
    seq: int
    id: str
    state: str
    queue: str
    ready: int
    priority: int
    eligible_at: int
    missed: int
    run_at: int
    held: int
    attempts: int
    runs: int
    crashes: int
    token: str | None
    worker: str | None
    host: str | None
    cancel_requested: int
    exit_code: int | None
    signal: int | None
    ending: str | None
    max_retries: int
    first_is_free: int
    pid: int | None
    timeout_ms: int | None
    key: str | None


class Taken(NamedTuple):
    """A run, from its claim on."""

    job: str
    run: int
    worker: str
    process: Worker | None  # the one that claimed it
