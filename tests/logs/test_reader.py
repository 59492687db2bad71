from __future__ import annotations

import os
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from queuectl.errors import Unavailable
from queuectl.logs.follow import Follower
from queuectl.logs.reader import BLOCK, last_bytes, open_log
from tests.logs.logs import WrittenLog


@pytest.fixture
def written(tmp_path: Path) -> WrittenLog:
    return WrittenLog(tmp_path / "job.log")


def read(written: WrittenLog, *, run: int | None = None, markers: bool = True, tail: int | None = None) -> bytes:
    with closing(Follower(run=run, markers=markers, tail=tail)) as follower:
        return b"".join(follower.new(str(written.path), written.runs))


def test_the_whole_log_is_the_bytes_of_the_file(written: WrittenLog) -> None:
    written.run(b"one\n\xff\x00")
    written.run(b"two\n")
    assert read(written) == written.path.read_bytes()


def test_without_markers_exactly_the_bytes_that_were_printed(written: WrittenLog) -> None:
    outputs = [b"no newline at the end", b"", b"\n", b"\xff\xfe\x00\r\n", b"ends\n"]
    for output in outputs:
        written.run(output)
    assert read(written, markers=False) == b"".join(outputs)


def test_one_run_comes_with_its_own_markers(written: WrittenLog) -> None:
    written.run(b"one")
    written.run(b"two\n")
    assert read(written, run=1).splitlines()[0].startswith(b"--- START 2026-01-02T03:04:05.000Z run=1 ")
    assert read(written, run=1).splitlines()[1:2] == [b"one"]
    assert read(written, run=1).endswith(b"duration=1s ---\n")
    assert read(written, run=1) + read(written, run=2) == written.path.read_bytes()
    assert read(written, run=2, markers=False) == b"two\n"


def test_markers_that_a_job_prints_itself_have_no_effect(written: WrittenLog) -> None:
    fake = b"--- END 2026-01-02T03:04:06.000Z rc=0 duration=1s ---\n--- START x run=2 worker=w1 ---\n--- END x ---\n"
    written.run(fake)
    written.run(fake)
    assert read(written, markers=False) == fake + fake
    assert read(written, run=2, markers=False) == fake
    assert read(written, run=1) + read(written, run=2) == written.path.read_bytes()


def test_a_running_run_is_read_although_nothing_is_recorded_of_it(written: WrittenLog) -> None:
    written.run(b"one")
    written.start()
    written.append(b"two so far")
    assert read(written, markers=False) == b"onetwo so far"
    assert read(written, run=2).endswith(b"run=2 worker=w1 ---\ntwo so far")


def test_the_start_marker_of_a_run_that_has_not_printed_yet_comes_from_the_history(written: WrittenLog) -> None:
    written.run(b"one\n")
    written.start()
    with written.path.open("rb+") as file:
        file.truncate(written.runs[0].log_to or 0)
    assert read(written, run=2) == b"--- START 2026-01-02T03:04:05.000Z run=2 worker=w1 ---\n"
    assert read(written, run=2, markers=False) == b""


def test_an_end_marker_that_the_store_does_not_know_of_yet_is_not_output(written: WrittenLog) -> None:
    written.start()
    written.append(b"done\n")
    written.write_end_line()
    assert read(written, markers=False) in (b"done", b"done\n")


def test_the_output_of_lost_runs_is_read_between_their_markers(written: WrittenLog) -> None:
    written.start()
    written.append(b"first\n")
    written.lose()
    written.start()
    written.append(b"second\n")
    written.lose()
    written.run(b"third\n")
    assert read(written, markers=False) == b"first\nsecond\nthird\n"
    assert read(written, run=2, markers=False) == b"second\n"
    assert read(written, run=1) + read(written, run=2) + read(written, run=3) == written.path.read_bytes()


def test_output_of_left_behind_processes_between_runs_is_in_neither(written: WrittenLog) -> None:
    written.run(b"one\n")
    written.append(b"late words of run one, half a li")
    written.run(b"two\n")
    assert read(written, run=2).startswith(b"--- START ")
    assert read(written, markers=False) == b"one\ntwo\n"
    assert b"late words" in read(written)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 99])
@pytest.mark.parametrize("output", [b"", b"\n", b"a", b"a\nb", b"a\nb\n", b"a\nb\n\n", b"\n\n\n"])
def test_a_tail_is_the_last_lines_as_tail_prints_them(written: WrittenLog, output: bytes, count: int) -> None:
    written.run(output)
    lines = output.splitlines(keepends=True)
    assert read(written, markers=False, tail=count) == b"".join(lines[-count:] if count else [])


def test_a_tail_spans_blocks_and_runs(written: WrittenLog) -> None:
    first = b"".join(b"%07d\n" % number for number in range(2 * BLOCK // 8)) + b"first half, "
    written.run(first)
    written.run(b"second half\nlast\n")
    whole = first + b"second half\nlast\n"
    for count in (1, 2, 3, BLOCK // 8 + 2, 2 * BLOCK // 8 + 1, 10**9):
        assert read(written, markers=False, tail=count) == b"".join(whole.splitlines(keepends=True)[-count:])


def test_the_last_bytes_reach_over_spans_and_no_further(written: WrittenLog) -> None:
    written.run(b"abc")
    written.run(b"defg")
    with closing(Follower(markers=False)) as follower:
        view = list(follower.stretches(str(written.path), written.runs))
        assert last_bytes(view, 5) == b"cdefg"
        assert last_bytes(view, 100) == b"abcdefg"
        assert last_bytes(view, 0) == b""


def test_one_line_of_a_gigabyte_is_read_in_bounded_memory(written: WrittenLog) -> None:
    written.start()
    with written.path.open("rb+") as file:
        file.truncate(file.seek(0, os.SEEK_END) + 2**30)  # a hole reads as zeros and takes no disk
    tracemalloc.start()
    with closing(Follower(markers=False, tail=1)) as follower:
        assert sum(len(block) for block in follower.new(str(written.path), written.runs)) == 2**30
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20


def test_a_log_that_does_not_exist_is_none(tmp_path: Path) -> None:
    assert open_log(None) is None
    assert open_log(str(tmp_path / "missing.log")) is None
    assert open_log(str(tmp_path / "missing" / "x.log")) is None


def test_a_log_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    # Not by its mode: root may read everything.
    loop = tmp_path / "loop.log"
    loop.symlink_to(loop)
    with pytest.raises(Unavailable, match="cannot read the log"):
        open_log(str(loop))
