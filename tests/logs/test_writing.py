"""Logs that are cut while they are written: what is left, what is said to be gone, and how much room it takes."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from queuectl.jobs.outcome import settle_lost
from queuectl.logs.bounds import BESIDE, LONGEST_HEAD, WHOLE, gone_line, moving_line, read_head
from queuectl.logs.files import end_log
from queuectl.logs.log import Log, Span
from queuectl.logs.writing import Writing
from tests.factories import unknown_claim

KIB = 1024
START = b"--- START x run=1 worker=w1 ---\n"


class Written:
    """A log, and all that was ever written into it."""

    def __init__(self, path: Path, *, limit: int) -> None:
        self.path = path
        self.limit = limit
        self.all = b""
        with Writing(str(path), limit=limit, create=True) as log:
            log.append_line(START)
        self.all += START

    def append(self, data: bytes) -> None:
        with Writing(str(self.path), limit=self.limit) as log:
            assert log.size == len(self.all)
            log.append(data)
            self.all += data
            assert log.size == len(self.all)

    @property
    def left(self) -> bytes:
        with Log(str(self.path)) as log:
            assert log.size == len(self.all)
            return b"".join(log.read([Span(0, log.size)]))

    @property
    def beside(self) -> Path:
        return Path(str(self.path) + BESIDE)


def lines(count: int, *, width: int = 8) -> bytes:
    return b"".join(b"%0*d\n" % (width - 1, number) for number in range(count))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path / "job.log", limit=64 * KIB)


def test_what_fits_into_the_limit_is_kept_byte_by_byte(written: Written) -> None:
    written.append(b"x" * (written.limit - len(START)))
    assert written.path.stat().st_size == written.limit
    assert written.left == written.all


def test_what_does_not_fit_costs_the_oldest_half(written: Written) -> None:
    written.append(lines(8000))
    written.append(lines(1000))
    left = written.left
    assert written.all.endswith(left)
    assert written.limit // 3 < len(left) <= written.limit
    assert written.path.read_bytes() == gone_line(len(written.all) - len(left), b"64KiB") + left
    assert not written.beside.exists()


def test_what_is_kept_begins_with_a_line_if_one_is_near(written: Written) -> None:
    for _ in range(40):
        written.append(lines(1000))
        assert len(written.all) == len(written.left) or written.left.index(b"\n") == 7
    written.append(b"x" * written.limit * 2)
    assert set(written.left) == set(b"x")


@pytest.mark.parametrize("limit", [KIB, 1500, 4 * KIB, 20 * KIB, 200 * KIB])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_written_the_end_of_it_is_left_and_the_rest_is_counted(
    tmp_path: Path, limit: int, seed: int
) -> None:
    chance = random.Random(seed)
    written = Written(tmp_path / "job.log", limit=limit)
    text = bytes(chance.choices(b"abc\n", k=4 * limit))
    for _ in range(200):
        begin, size = chance.randrange(limit), int(limit * chance.random() ** 4 * 3)
        written.append(text[begin : begin + size])
        left = written.left
        assert written.all.endswith(left)
        assert written.path.stat().st_size <= limit
        assert len(left) >= min(len(written.all), limit // 3)
        assert read_head(written.path.read_bytes()[:LONGEST_HEAD]).gone == len(written.all) - len(left)


def test_a_line_of_ours_begins_a_line_and_may_go_a_little_beyond(written: Written) -> None:
    written.append(b"x" * (written.limit - len(START)))
    with Writing(str(written.path), limit=written.limit) as log:
        log.append_line(b"--- END ---\n")
    assert written.path.read_bytes().endswith(b"x\n--- END ---\n")
    assert read_head(written.path.read_bytes()) == WHOLE


def test_both_files_together_never_take_more_than_the_limit_and_a_little(written: Written) -> None:
    written.limit = 1024 * KIB
    written.append(lines(131_000))
    peak = 0
    with Writing(str(written.path), limit=written.limit) as log:
        while not log.make_room(100_000, most=1):
            sizes = [path.stat() for path in (written.path, written.beside)]
            peak = max(peak, 512 * sum(status.st_blocks for status in sizes))
            assert written.left == written.all[-len(written.left) :]
    assert 0.9 * written.limit < peak <= 1.1 * written.limit


def test_who_is_killed_while_cutting_leaves_a_log_that_can_be_read_and_written(written: Written) -> None:
    written.append(lines(8000))
    for most in range(1, 40_000, 4000):
        with Writing(str(written.path), limit=written.limit) as log:
            log.make_room(20_000, most=most)
        before = written.left
        assert written.all.endswith(before)
        written.append(b"more\n")
        assert written.left == before + b"more\n"
        written.append(lines(2500))


def test_what_somebody_left_beside_a_log_does_not_get_into_it(written: Written) -> None:
    written.beside.write_bytes(b"y" * 100_000)
    written.append(lines(8000))
    written.append(lines(8000))
    assert b"y" not in written.left
    assert not written.beside.exists()


def test_who_reads_goes_on_at_the_same_byte_when_the_log_was_cut(written: Written) -> None:
    written.append(lines(8000))
    with Log(str(written.path)) as log:
        place = len(written.all) - 800
        assert log.at(Span(place, place + 8)) == written.all[place : place + 8]
        written.append(lines(1000))
        assert log.at(Span(place, place + 8)) == written.all[place : place + 8]
        assert log.first > 0
        assert log.at(Span(0, 8)) == b""


def test_a_file_that_was_replaced_takes_no_room_though_somebody_reads_it(written: Written) -> None:
    written.append(lines(8000))
    with written.path.open("rb") as reader:
        written.append(lines(1000))
        assert os.fstat(reader.fileno()).st_size == 0


def test_a_second_name_of_a_log_misleads_no_reader(written: Written, tmp_path: Path) -> None:
    written.append(lines(8000))
    os.link(written.path, tmp_path / "other.log")
    with Log(str(written.path)) as log:
        written.append(lines(1000))
        assert log.size == len(written.all)


@pytest.mark.parametrize(
    "line",
    [
        b"--- 12 bytes of earlier output are gone (log-limit 1KiB) ---",  # no end of line
        b"--- x bytes of earlier output are gone (log-limit 1KiB) ---\n",
        b"--- 12 bytes of earlier output are gone (log-limit 1KiB, moving 1-x) ---\n",
        b" --- 12 bytes of earlier output are gone (log-limit 1KiB) ---\n",
        b"--- START x run=1 worker=w1 ---\n--- 12 bytes of earlier output are gone (log-limit 1KiB) ---\n",
        b"",
    ],
)
def test_only_a_first_line_of_ours_says_that_something_is_gone(line: bytes) -> None:
    assert read_head(line) == WHOLE


def test_a_line_of_ours_is_never_longer_than_is_looked_at() -> None:
    longest = 10**19 - 1
    assert len(moving_line(longest, b"1099511627775", longest, longest)) <= LONGEST_HEAD


LOST = settle_lost(unknown_claim("a"), 3)
OUR_END = b"--- END 2026-01-02T03:04:05.000Z rc=3 duration=1.000s ---\n"


def end(written: Written, *, may_be_closed: bool) -> int:
    path, limit = str(written.path), written.limit
    return end_log(path, len(START), LOST, duration=None, now_ms=0, limit=limit, may_be_closed=may_be_closed)


@pytest.mark.parametrize("output", [b"", b"one\n", b"one\ntwo\n" * 5000])
def test_a_log_that_somebody_closed_who_could_not_say_so_is_closed_once(written: Written, output: bytes) -> None:
    written.append(output + OUR_END)
    before = written.left
    assert end(written, may_be_closed=True) == len(START + output)
    assert written.path.read_bytes() == before


@pytest.mark.parametrize(
    "output",
    [b"", b"one\n", OUR_END + b"one\n", b"--- END of it\n", OUR_END[:-1], b"x" * 9000],
    ids=["nothing", "a line", "one of ours before", "words", "half a line", "a long line"],
)
def test_one_that_nobody_closed_is_closed_behind_all_that_was_printed(written: Written, output: bytes) -> None:
    written.append(output)
    assert end(written, may_be_closed=True) == len(START + output)
    assert written.path.read_bytes().endswith(b" lost ---\n")


def test_a_line_like_ours_that_a_job_has_printed_last_is_output_where_nobody_can_have_closed_the_log(
    written: Written,
) -> None:
    written.append(OUR_END)
    assert end(written, may_be_closed=False) == len(START + OUR_END)
    assert written.path.read_bytes().endswith(b" lost ---\n")


def test_a_log_that_is_being_cut_is_closed_all_the_same(written: Written) -> None:
    written.append(lines(6000) + OUR_END)
    with Writing(str(written.path), limit=written.limit) as log:
        assert not log.make_room(20_000, most=1)
        assert log.last_line(1000) == b""
    end(written, may_be_closed=True)
    assert written.path.read_bytes().endswith(b" lost ---\n")
