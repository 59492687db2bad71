from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from queuectl.logs.follow import Follower
from tests.logs.logs import WrittenLog


@pytest.fixture
def written(tmp_path: Path) -> WrittenLog:
    return WrittenLog(tmp_path / "job.log")


def reader(written: WrittenLog, follower: Follower) -> Callable[[], bytes]:
    return lambda: b"".join(follower.new(str(written.path), written.runs))


def test_following_begins_before_the_job_does(written: WrittenLog) -> None:
    follower = Follower(markers=False)
    new = reader(written, follower)
    assert b"".join(follower.new(None, [])) == b""
    assert new() == b""
    written.start()
    assert new() == b""
    written.append(b"hello")
    assert new() == b"hello"
    assert new() == b""
    follower.close()


def test_with_markers_all_that_is_appended_is_new(written: WrittenLog) -> None:
    follower = Follower()
    new = reader(written, follower)
    seen = b""
    for output in (b"one", b"two\n", b""):
        written.start()
        seen += new()
        written.append(output)
        seen += new()
        written.record_end(written.write_end_line())
        seen += new()
    assert seen == written.path.read_bytes()


@pytest.mark.parametrize("output", [b"done", b"done\n", b"", b"\n", b"--- END x ---\n", b"a\n--- END x ---\n"])
def test_without_markers_exactly_the_output_however_the_end_line_comes(written: WrittenLog, output: bytes) -> None:
    new = reader(written, Follower(markers=False))
    seen = b""
    for _ in range(2):
        written.start()
        seen += new()
        written.append(output)
        seen += new()
        end = written.write_end_line()
        seen += new()  # the store does not know of the end yet
        written.record_end(end)
        seen += new()
    assert seen == output * 2


def test_a_line_like_ours_is_held_back_until_something_follows(written: WrittenLog) -> None:
    new = reader(written, Follower(markers=False))
    written.start()
    written.append(b"a\n--- END of the world ---\n")
    first = new()
    written.append(b"b\n")
    assert first + new() == b"a\n--- END of the world ---\nb\n"


def test_following_one_run_ignores_the_others(written: WrittenLog) -> None:
    new = reader(written, Follower(markers=False, run=2))
    written.run(b"one\n")
    assert new() == b""
    written.start()
    written.append(b"two\n")
    assert new() == b"two\n"
    written.record_end(written.write_end_line())
    written.run(b"three\n")
    assert new() == b""


def test_a_tail_is_taken_once_and_then_everything_follows(written: WrittenLog) -> None:
    new = reader(written, Follower(markers=False, tail=2))
    written.start()
    written.append(b"1\n2\n3\n")
    assert new() == b"2\n3\n"
    written.append(b"4\n5\n6\n7\n")
    assert new() == b"4\n5\n6\n7\n"


@pytest.mark.parametrize(
    "view, line, printed",
    [
        ({"from_line": 3}, 3, b"2\n3\n"),
        ({"from_line": 1}, 1, b"--- START 2026-01-02T03:04:05.000Z run=1 worker=w1 ---\n1\n2\n3\n"),
        ({"from_line": 2, "tail": 2}, 3, b"2\n3\n"),
        ({"from_line": 99}, 4, b"3\n"),
    ],
)
def test_following_from_a_line_reports_its_number_once(
    written: WrittenLog, view: dict[str, int], line: int, printed: bytes
) -> None:
    follower = Follower(**view)  # type: ignore[arg-type]
    new = reader(written, follower)
    written.start()
    written.append(b"1\n2\n3\n")
    assert (new(), follower.take_first_line()) == (printed, line)
    written.append(b"4\n")
    assert (new(), follower.take_first_line()) == (b"4\n", None)
