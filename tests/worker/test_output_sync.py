"""What jobs print, on its way to other hosts: as much as is wanted, once, and never more in memory than that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queuectl.process.model import Child
from queuectl.store.types import End, OutputPiece
from queuectl.worker.output_sync import (
    MAX_OUTPUT_AT_ONCE,
    MAX_OUTPUT_PER_RUN,
    MIN_SHARE,
    PIECE_SIZE,
    SEND_EVERY,
    OutputSync,
)
from queuectl.worker.run import RunState, WorkerRun
from tests.clock import FakeClock
from tests.factories import settlement, unknown_claim

START = b"--- START x run=1 worker=w1 ---\n"
LIMIT = 100


@pytest.fixture
def sync() -> OutputSync:
    return OutputSync()


class Job:
    """A run under way and its log."""

    def __init__(self, folder: Path, name: str = "a") -> None:
        self.log = folder / f"{name}.log"
        self.log.write_bytes(START)
        claim = unknown_claim(name, token=f"token-{name}")._replace(log=str(self.log))
        self.run = WorkerRun(claim, 0, 0, 0.0, None, RunState.RUNNING, Child(1, 1), len(START))

    def print(self, data: bytes) -> None:
        with self.log.open("ab") as file:
            file.write(data)

    def end(self) -> End:
        claim, size = self.run.claim, self.log.stat().st_size
        self.print(b"--- END x ---\n")
        return End(claim, settlement(claim), 1, 0, 0, self.run.log_from, size)


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def step(sync: OutputSync, *jobs: Job, now: float, limit: int = LIMIT) -> list[OutputPiece]:
    """A look that succeeds."""
    runs = [job.run for job in jobs]
    pieces = sync.pieces(sync.printed(runs, now), [], limit=limit)
    sync.note([run.claim.token for run in runs])
    return pieces


def sent(pieces: list[OutputPiece]) -> list[tuple[int, bytes]]:
    return [(piece.at, piece.data) for piece in pieces]


def test_each_byte_is_sent_once_without_our_lines(sync: OutputSync, job: Job, clock: FakeClock) -> None:
    job.print(b"one\n")
    assert sent(step(sync, job, now=clock.monotonic())) == [(0, b"one\n")]
    job.print(b"two\n")
    clock.advance(SEND_EVERY)
    assert sent(step(sync, job, now=clock.monotonic())) == [(4, b"two\n")]


def test_it_looks_every_half_second_and_not_more_often(sync: OutputSync, job: Job, clock: FakeClock) -> None:
    job.print(b"one\n")
    step(sync, job, now=clock.monotonic())
    job.print(b"two\n")
    clock.advance(SEND_EVERY / 2)
    assert sync.printed([job.run], clock.monotonic()) == []
    clock.advance(SEND_EVERY / 2)
    assert sync.printed([job.run], clock.monotonic()) == [job.run]


def test_a_job_that_prints_nothing_is_not_looked_into(sync: OutputSync, job: Job) -> None:
    assert sync.printed([job.run], 1) == []
    assert sync.pieces([], [job.end()], limit=LIMIT) == []


def test_the_rest_comes_with_the_end(sync: OutputSync, job: Job) -> None:
    job.print(b"one\n")
    step(sync, job, now=1)
    job.print(b"two")
    assert sent(sync.pieces([], [job.end()], limit=LIMIT)) == [(4, b"two")]


def test_what_could_not_be_sent_is_read_again(sync: OutputSync, job: Job) -> None:
    job.print(b"one\n")
    sync.pieces(sync.printed([job.run], 1), [], limit=LIMIT)  # and no note that it was written
    job.print(b"two\n")
    assert sent(step(sync, job, now=1 + SEND_EVERY)) == [(0, b"one\ntwo\n")]


def test_only_the_last_bytes_matter(sync: OutputSync, job: Job) -> None:
    job.print(b"a" * 50)
    step(sync, job, now=1)
    job.print(b"b" * 500)
    (piece,) = step(sync, job, now=1 + SEND_EVERY)
    assert piece[1:] == (450, b"b" * LIMIT, 450)


def test_a_piece_has_no_more_than_64_kib(sync: OutputSync, job: Job) -> None:
    job.print(os.urandom(150 * 1024))
    pieces = step(sync, job, now=1, limit=MAX_OUTPUT_PER_RUN)
    assert [(piece.at, len(piece.data)) for piece in pieces] == [
        (0, PIECE_SIZE),
        (PIECE_SIZE, PIECE_SIZE),
        (2 * PIECE_SIZE, 22 * 1024),
    ]
    assert b"".join(piece.data for piece in pieces) == job.log.read_bytes()[len(START) :]


def test_of_a_gigabyte_no_more_is_read_than_is_sent(sync: OutputSync, job: Job) -> None:
    os.truncate(job.log, len(START) + 1024**3)
    pieces = step(sync, job, now=1, limit=1024**3)
    assert sum(len(piece.data) for piece in pieces) == MAX_OUTPUT_PER_RUN
    assert {piece.keep_from for piece in pieces} == {1024**3 - MAX_OUTPUT_PER_RUN}


def test_many_jobs_share_what_is_sent_at_once(sync: OutputSync, tmp_path: Path) -> None:
    jobs = [Job(tmp_path, str(number)) for number in range(MAX_OUTPUT_AT_ONCE // MAX_OUTPUT_PER_RUN * 2)]
    for job in jobs:
        os.truncate(job.log, len(START) + MAX_OUTPUT_PER_RUN)
    pieces = step(sync, *jobs, now=1, limit=MAX_OUTPUT_PER_RUN)
    assert sum(len(piece.data) for piece in pieces) == MAX_OUTPUT_AT_ONCE
    assert {piece.claim.id for piece in pieces} == {job.run.claim.id for job in jobs}
    assert MAX_OUTPUT_AT_ONCE // MIN_SHARE >= 1000  # as many slots as a worker may have


def test_a_log_that_was_removed_or_cut_costs_only_itself(sync: OutputSync, job: Job, tmp_path: Path) -> None:
    job.print(b"one\n")
    other = Job(tmp_path, "b")
    other.print(b"here\n")
    looked = sync.printed([job.run, other.run], 1)
    job.log.unlink()
    assert sent(sync.pieces(looked, [], limit=LIMIT)) == [(0, b"here\n")]
    sync.note([job.run.claim.token, other.run.claim.token])
    os.truncate(other.log, 0)
    assert step(sync, job, other, now=1 + SEND_EVERY) == []
    other.log.unlink()
    other.log.mkdir()
    assert sync.pieces([other.run], [], limit=LIMIT) == []


def test_nothing_is_sent_of_a_run_that_belongs_to_another_worker(sync: OutputSync, job: Job) -> None:
    job.print(b"one\n")
    job.run.is_lost = True
    assert sync.printed([job.run], 1) == []
