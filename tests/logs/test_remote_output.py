"""The output of runs on other hosts, from its pieces in the store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from queuectl.jobs.model import Run
from queuectl.jobs.outcome import Ending
from queuectl.logs.follow import Fetched, Follower, RemoteOutput, StoredOutput
from queuectl.logs.reader import Span
from tests.logs.logs import WrittenLog

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
START = b"--- START 2026-01-02T03:04:05.000Z run=1 worker=w1 ---\n"
END = b"--- END 2026-01-02T03:04:07.000Z rc=0 duration=2.000s ---\n"
RUNNING = Run(1, "w1", "there", 1, WHEN, None, None, None, None, None, Ending.RUNNING, 60, None)


class Pieces:
    """A store that returns two pieces at a time."""

    def __init__(self) -> None:
        self.of: dict[int, list[tuple[int, bytes]]] = {}
        self.asked = 0

    def add(self, data: bytes, *, run: int = 1, at: int | None = None) -> None:
        pieces = self.of.setdefault(run, [])
        end = pieces[-1][0] + len(pieces[-1][1]) if pieces else 0
        pieces.append((end if at is None else at, data))

    def fetch(self, run: int, start: int) -> Fetched:
        self.asked += 1
        found = [piece for piece in self.of.get(run, []) if piece[0] + len(piece[1]) > start]
        return Fetched(found[:2], is_all=len(found) < 2)


@pytest.fixture
def pieces() -> Pieces:
    return Pieces()


@pytest.fixture
def remote(pieces: Pieces) -> RemoteOutput:
    return RemoteOutput(is_local=lambda run: run.host == "h", fetch=pieces.fetch)


def ended(run: Run, printed: int) -> Run:
    return replace(
        run,
        outcome=Ending.COMPLETED,
        exit_code=0,
        finished_at=WHEN + timedelta(seconds=2),
        duration_ms=2000,
        log_to=60 + printed,
    )


def news(follower: Follower, *runs: Run, path: Path | None = None) -> bytes:
    return b"".join(follower.new(None if path is None else str(path), runs))


@pytest.mark.parametrize("start", range(8))
@pytest.mark.parametrize("stop", range(9))
def test_any_part_of_overlapping_pieces_can_be_read(pieces: Pieces, start: int, stop: int) -> None:
    for at, data in ((0, b"abc"), (2, b"cde"), (5, b"f"), (6, b"gh")):
        pieces.add(data, at=at)
    stored = StoredOutput(lambda start: pieces.fetch(1, start), 0)
    assert stored.kept == (0, 8)
    assert stored.at(Span(start, stop)) == b"abcdefgh"[start:stop]


def test_a_line_says_what_is_missing_at_the_beginning(pieces: Pieces, remote: RemoteOutput) -> None:
    pieces.add(b"tail\n", at=1000)
    run = ended(RUNNING, 1005)
    assert news(Follower(remote), run) == START + b"--- 1000 bytes not kept ---\ntail\n" + END
    assert news(Follower(remote, markers=False), run) == b"tail\n"


@pytest.mark.parametrize("tail, told", [(None, [1000]), (9, [1000]), (2, [1000]), (1, [])])
def test_missing_output_is_reported_if_no_line_says_so_and_it_would_be_shown(
    pieces: Pieces, remote: RemoteOutput, tail: int | None, told: list[int]
) -> None:
    pieces.add(b"one\ntwo\n", at=1000)
    heard: list[int] = []
    follower = Follower(remote, markers=False, tail=tail, tell=lambda count, _: heard.append(count))
    assert news(follower, ended(RUNNING, 1008)) == (b"two\n" if tail == 1 else b"one\ntwo\n")
    assert heard == told


def test_a_line_says_what_was_never_sent(pieces: Pieces, remote: RemoteOutput) -> None:
    pieces.add(b"some")
    assert news(Follower(remote), ended(RUNNING, 10)) == START + b"some\n--- 6 bytes not kept ---\n" + END


def test_a_run_is_followed_byte_by_byte(pieces: Pieces, remote: RemoteOutput) -> None:
    follower = Follower(remote)
    assert news(follower, replace(RUNNING, log_from=None, started_at=None)) == b""
    assert news(follower, RUNNING) == START
    for letter in (b"a", b"b", b"c"):
        pieces.add(letter)
    assert news(follower, RUNNING) == b"abc"
    assert news(follower, RUNNING) == b""
    pieces.add(b"d")
    assert news(follower, ended(RUNNING, 4)) == b"d\n" + END
    assert news(follower, ended(RUNNING, 4)) == b""


def test_a_slow_reader_is_told_how_much_it_has_missed(pieces: Pieces, remote: RemoteOutput) -> None:
    follower = Follower(remote)
    pieces.add(b"first")
    assert news(follower, RUNNING) == START + b"first"
    pieces.of[1] = [(100, b"last\n")]
    assert news(follower, RUNNING) == b"\n--- 95 bytes not kept ---\nlast\n"


def test_the_store_is_not_asked_when_nothing_has_changed(pieces: Pieces, remote: RemoteOutput) -> None:
    follower = Follower(remote)
    news(follower, RUNNING)
    asked = pieces.asked
    assert list(follower.new(None, [RUNNING], ask=False)) == []
    assert pieces.asked == asked


@pytest.mark.parametrize(
    "count, text",
    [
        (0, b""),
        (1, END),
        (2, b"three" + b"\n" + END),
        (4, b"one\ntwo\nthree\n" + END),
        (99, START + b"one\ntwo\nthree\n" + END),
    ],
)
def test_the_last_lines_may_be_many_pieces(pieces: Pieces, remote: RemoteOutput, count: int, text: bytes) -> None:
    for part in (b"on", b"e\nt", b"wo", b"\n", b"three"):
        pieces.add(part)
    assert news(Follower(remote, tail=count), ended(RUNNING, 13)) == text


def test_local_and_remote_runs_are_read_where_they_are(pieces: Pieces, remote: RemoteOutput, tmp_path: Path) -> None:
    log = WrittenLog(tmp_path / "a.log")
    log.run(b"here\n")
    pieces.add(b"there\n", run=2)
    away = ended(replace(RUNNING, number=2), 6)
    both = [*log.runs, away]
    assert news(Follower(remote, markers=False), *both, path=log.path) == b"here\nthere\n"
    assert news(Follower(remote), *both, path=log.path) == (
        log.path.read_bytes() + START.replace(b"run=1", b"run=2") + b"there\n" + END
    )
    assert news(Follower(remote, markers=False, tail=2), *both, path=log.path) == b"here\nthere\n"


def test_the_log_of_another_run_with_the_same_path_is_not_read(
    pieces: Pieces, remote: RemoteOutput, tmp_path: Path
) -> None:
    """Two data directories of one host: the path is that of the latest run."""
    first = WrittenLog(tmp_path / "first.log")
    first.run(b"in the first home\n")
    other = tmp_path / "second.log"
    other.write_bytes(b"--- START x run=2 worker=w1 ---\nin the second home\n")
    pieces.add(b"in the first home\n", run=1)
    assert news(Follower(remote, markers=False), *first.runs, path=other) == b"in the first home\n"
