"""What jobs print, on its way to other hosts: as much as is wanted, once, and never more in memory than that."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from queuectl.process.spawn import Child
from queuectl.store.types import End, OutputPiece
from queuectl.worker.running import Running
from queuectl.worker.streaming import AT_ONCE, EVERY, LEAST, MOST, PIECE, Streaming
from tests.clock import FakeClock
from tests.factories import settlement, unknown_claim

START = b"--- START x run=1 worker=w1 ---\n"
LIMIT = 100


@pytest.fixture
def streaming() -> Streaming:
    return Streaming(is_shared=True)


class Job:
    """A run under way and its log."""

    def __init__(self, folder: Path, name: str = "a") -> None:
        self.log = folder / f"{name}.log"
        self.log.write_bytes(START)
        claim = unknown_claim(name, token=f"token-{name}")._replace(log=str(self.log))
        self.run = Running(claim, 0, 0, Child(1, 1), 0.0, len(START), None)

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


def step(streaming: Streaming, *jobs: Job, now: float, limit: int = LIMIT) -> list[OutputPiece]:
    """A look that succeeds."""
    runs = [job.run for job in jobs]
    pieces = streaming.pieces(streaming.look(runs, now), [], limit=limit)
    streaming.note([run.claim.token for run in runs])
    return pieces


def told(pieces: list[OutputPiece]) -> list[tuple[int, bytes]]:
    return [(piece.at, piece.data) for piece in pieces]


def test_each_byte_is_sent_once_without_our_lines(streaming: Streaming, job: Job, clock: FakeClock) -> None:
    job.print(b"one\n")
    assert told(step(streaming, job, now=clock.monotonic())) == [(0, b"one\n")]
    job.print(b"two\n")
    clock.advance(EVERY)
    assert told(step(streaming, job, now=clock.monotonic())) == [(4, b"two\n")]


def test_it_looks_every_half_second_and_not_more_often(streaming: Streaming, job: Job, clock: FakeClock) -> None:
    job.print(b"one\n")
    step(streaming, job, now=clock.monotonic())
    job.print(b"two\n")
    clock.advance(EVERY / 2)
    assert streaming.look([job.run], clock.monotonic()) == []
    clock.advance(EVERY / 2)
    assert streaming.look([job.run], clock.monotonic()) == [job.run]


def test_a_job_that_prints_nothing_is_not_looked_into(streaming: Streaming, job: Job) -> None:
    assert streaming.look([job.run], 1) == []
    assert streaming.pieces([], [job.end()], limit=LIMIT) == []


def test_the_rest_comes_with_the_end(streaming: Streaming, job: Job) -> None:
    job.print(b"one\n")
    step(streaming, job, now=1)
    job.print(b"two")
    assert told(streaming.pieces([], [job.end()], limit=LIMIT)) == [(4, b"two")]


def test_what_could_not_be_sent_is_read_again(streaming: Streaming, job: Job) -> None:
    job.print(b"one\n")
    streaming.pieces(streaming.look([job.run], 1), [], limit=LIMIT)  # and no note that it was written
    job.print(b"two\n")
    assert told(step(streaming, job, now=1 + EVERY)) == [(0, b"one\ntwo\n")]


def test_only_the_last_bytes_matter(streaming: Streaming, job: Job) -> None:
    job.print(b"a" * 50)
    step(streaming, job, now=1)
    job.print(b"b" * 500)
    (piece,) = step(streaming, job, now=1 + EVERY)
    assert piece[1:] == (450, b"b" * LIMIT, 450)


def test_a_piece_has_no_more_than_64_kib(streaming: Streaming, job: Job) -> None:
    job.print(os.urandom(150 * 1024))
    pieces = step(streaming, job, now=1, limit=MOST)
    assert [(piece.at, len(piece.data)) for piece in pieces] == [(0, PIECE), (PIECE, PIECE), (2 * PIECE, 22 * 1024)]
    assert b"".join(piece.data for piece in pieces) == job.log.read_bytes()[len(START) :]


def test_of_a_gigabyte_no_more_is_read_than_is_sent(streaming: Streaming, job: Job) -> None:
    os.truncate(job.log, len(START) + 1024**3)
    pieces = step(streaming, job, now=1, limit=1024**3)
    assert sum(len(piece.data) for piece in pieces) == MOST
    assert {piece.keep_from for piece in pieces} == {1024**3 - MOST}


def test_many_jobs_share_what_is_sent_at_once(streaming: Streaming, tmp_path: Path) -> None:
    jobs = [Job(tmp_path, str(number)) for number in range(AT_ONCE // MOST * 2)]
    for job in jobs:
        os.truncate(job.log, len(START) + MOST)
    pieces = step(streaming, *jobs, now=1, limit=MOST)
    assert sum(len(piece.data) for piece in pieces) == AT_ONCE
    assert {piece.claim.id for piece in pieces} == {job.run.claim.id for job in jobs}
    assert AT_ONCE // LEAST >= 1000  # as many slots as a worker may have


def test_a_log_that_was_removed_or_cut_costs_only_itself(streaming: Streaming, job: Job, tmp_path: Path) -> None:
    job.print(b"one\n")
    other = Job(tmp_path, "b")
    other.print(b"here\n")
    looked = streaming.look([job.run, other.run], 1)
    job.log.unlink()
    assert told(streaming.pieces(looked, [], limit=LIMIT)) == [(0, b"here\n")]
    streaming.note([job.run.claim.token, other.run.claim.token])
    os.truncate(other.log, 0)
    assert step(streaming, job, other, now=1 + EVERY) == []
    other.log.unlink()
    other.log.mkdir()
    assert streaming.pieces([other.run], [], limit=LIMIT) == []


def test_nothing_is_said_of_a_run_that_belongs_to_somebody_else(streaming: Streaming, job: Job) -> None:
    job.print(b"one\n")
    job.run.is_lost = True
    assert streaming.look([job.run], 1) == []


def test_what_nobody_else_reads_is_not_sent(job: Job) -> None:
    streaming = Streaming(is_shared=False)
    job.print(b"one\n")
    assert streaming.look([job.run], 1e9) == []
    assert streaming.pieces([job.run], [job.end()], limit=LIMIT) == []
