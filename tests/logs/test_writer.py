"""Writing logs: when a log is created, what is kept within its limit, and two writers of one log."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest

from queuectl.jobs.outcome import settle_lost
from queuectl.logs.reader import Log, Span
from queuectl.logs.rotation import MAX_HEADER_BYTES, Header, header_line, read_header, rotate, rotated
from queuectl.logs.writer import LogWriter, end_log
from tests.factories import unknown_claim

KIB = 1024
START = b"--- START x run=1 worker=w1 ---\n"
END = b"--- END x rc=0 duration=1.000s ---\n"


class Written:
    """A log, its writer, and all that was ever written into it."""

    def __init__(self, path: Path, *, limit: int) -> None:
        self.path = path
        self.older = Path(rotated(str(path)))
        self.writer = LogWriter(str(path), lambda: START, is_first=True, limit=limit)
        self.all = START

    def append(self, data: bytes) -> None:
        before = self.writer.written
        self.writer.append(data)
        assert self.writer.written - before == len(data)
        self.all += data

    @property
    def left(self) -> bytes:
        with Log(str(self.path)) as log:
            assert log.size == len(self.all)
            return b"".join(log.read([Span(0, log.size)]))

    @property
    def used(self) -> int:
        return sum(path.stat().st_size for path in (self.path, self.older) if path.exists())


def lines(count: int, *, width: int = 8) -> bytes:
    return b"".join(b"%0*d\n" % (width - 1, number) for number in range(count))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "job.log"


@pytest.fixture
def written(log: Path) -> Written:
    return Written(log, limit=64 * KIB)


# ── when there is a log ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_silent_run_creates_no_file(written: Written) -> None:
    assert written.writer.end(lambda: END) is None
    assert written.writer.log_from is None
    assert not written.path.parent.exists()


def test_the_first_byte_of_output_creates_the_log(written: Written) -> None:
    written.writer.append(b"x")
    assert written.path.read_bytes() == START + b"x"
    assert (written.writer.log_from, written.writer.written) == (len(START), 1)
    assert written.writer.end(lambda: END) == len(START) + 1
    assert written.path.read_bytes() == START + b"x\n" + END
    assert [path.stat().st_mode & 0o777 for path in (written.path, written.path.parent)] == [0o600, 0o700]


def test_a_silent_run_that_has_left_processes_behind_has_a_log_for_what_they_print(written: Written) -> None:
    assert written.writer.end(lambda: END, has_followers=True) == len(START)
    written.writer.append(b"late\n")
    assert written.path.read_bytes() == START + END + b"late\n"


def test_the_first_run_of_a_job_removes_the_log_of_a_removed_one(written: Written) -> None:
    written.path.parent.mkdir()
    for path in (written.path, written.older):
        path.write_bytes(b"of another job\n")
    written.writer.append(b"x")
    assert written.path.read_bytes() == START + b"x"
    assert not written.older.exists()


def test_a_silent_first_run_removes_the_log_of_a_removed_job(written: Written) -> None:
    written.path.parent.mkdir()
    written.path.write_bytes(b"of another job\n")
    written.writer.end(lambda: END)
    assert not written.path.exists()


def test_a_later_run_appends(written: Written) -> None:
    written.append(b"no newline")
    written.writer.end(lambda: END)
    second = LogWriter(str(written.path), lambda: START, is_first=False, limit=64 * KIB)
    second.append(b"two")
    assert written.path.read_bytes() == START + b"no newline\n" + END + START + b"two"
    assert second.log_from == len(START + b"no newline\n" + END + START)


def test_a_log_that_a_user_removes_or_truncates_keeps_its_offsets(written: Written) -> None:
    for change in (os.unlink, lambda path: os.truncate(path, 0)):
        written.append(b"before\n")
        change(written.path)
        written.append(b"after\n")
        with Log(str(written.path)) as log:
            assert (log.first, log.size) == (len(written.all) - 6, len(written.all))


def test_a_log_that_is_removed_after_the_end_of_the_run_is_not_created_again(written: Written) -> None:
    written.append(b"x\n")
    written.writer.end(lambda: END)
    written.path.unlink()
    written.append(b"late\n")
    assert not written.path.exists()
    written.path.write_bytes(b"--- START of a new job with this ID ---\n")
    written.append(b"late\n")
    assert b"late" not in written.path.read_bytes()


def test_something_else_in_place_of_the_log_is_not_touched(written: Written, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    written.path.parent.mkdir()
    written.path.symlink_to(precious)
    second = LogWriter(str(written.path), lambda: START, is_first=False, limit=KIB)
    with pytest.raises(OSError, check=lambda exc: exc.errno == errno.ELOOP):
        second.append(b"x")
    written.append(b"x")  # the first run of the job removes the link
    assert precious.read_bytes() == b"precious"


# ── within the limit ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_full_segment_is_renamed_and_the_next_one_begins_with_its_offset(written: Written) -> None:
    written.append(lines(3000))
    written.append(lines(3000))
    assert written.left == written.all
    assert written.older.read_bytes() + written.path.read_bytes().partition(b"\n")[2] == written.all
    header = written.path.read_bytes().partition(b"\n")[0]
    assert header == b"--- CONTINUED at byte %d of the log (log-limit 64KiB) ---" % written.older.stat().st_size


def test_offsets_stay_right_after_rotations(written: Written) -> None:
    for number in range(40):
        run = LogWriter(str(written.path), lambda: START, is_first=False, limit=64 * KIB) if number else written.writer
        run.append(lines(500))
        with Log(str(written.path)) as log:
            begin = run.log_from or 0
            assert log.at(Span(begin, begin + 4000)) == lines(500)
            assert log.at(Span(begin - len(START), begin)) == START
            assert run.end(lambda: END) == begin + 4000
            assert log.size == begin + 4000 + len(END)
            assert log.at(Span(begin + 4000, log.size)) == END
    assert written.used <= 64 * KIB


def test_segments_begin_with_a_line_if_one_is_near(written: Written) -> None:
    for _ in range(40):
        written.append(lines(1000))
        assert len(written.all) == len(written.left) or written.left.index(b"\n") == 7
    written.append(b"x" * written.writer.limit * 2)
    assert set(written.left) == set(b"x")


@pytest.mark.parametrize("limit", [KIB, 1500, 4 * KIB, 20 * KIB, 200 * KIB])
@pytest.mark.parametrize("seed", range(4))
def test_a_log_never_exceeds_its_limit_and_keeps_the_newest_output(log: Path, limit: int, seed: int) -> None:
    chance = random.Random(seed)
    written = Written(log, limit=limit)
    text = bytes(chance.choices(b"abc\n", k=4 * limit))
    for _ in range(200):
        begin, size = chance.randrange(limit), int(limit * chance.random() ** 4 * 3) + 1
        written.append(text[begin : begin + size])
        left = written.left
        assert written.all.endswith(left)
        assert written.used <= limit
        assert len(left) >= min(len(written.all), limit // 3)
    assert written.writer.end(lambda: END) == len(written.all)
    assert written.used <= limit


def test_a_lower_limit_holds_from_the_next_rotation_on(written: Written) -> None:
    written.append(lines(7000))
    written.writer.limit = 4 * KIB
    for _ in range(3):
        written.append(lines(300))
        assert written.used <= 4 * KIB
        assert written.all.endswith(written.left)
    assert b"(log-limit 4KiB)" in written.path.read_bytes()[:MAX_HEADER_BYTES]


@pytest.mark.parametrize("has_created", [False, True])
def test_a_writer_that_died_in_the_middle_of_a_rotation_costs_nothing(written: Written, has_created: bool) -> None:
    written.append(lines(3000))
    rotate(str(written.path), written.writer.limit)
    if has_created:
        written.path.touch()
    second = LogWriter(str(written.path), lambda: START, is_first=False, limit=64 * KIB)
    second.append(b"x\n")
    written.all += START + b"x\n"
    assert second.log_from == len(written.all) - 2
    assert written.left == written.all
    written.append(b"also the first\n")
    assert written.left == written.all


def test_a_full_disk_leaves_no_half_header(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    written.append(lines(4000))
    write, calls = os.write, [10, 0]

    def write_some(fd: int, data: bytes) -> int:
        if not calls:
            return write(fd, data)
        if (count := calls.pop(0)) == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, bytes(data)[:count])

    rotate(str(written.path), written.writer.limit)
    monkeypatch.setattr("queuectl.logs.writer.os.write", write_some)
    for _ in range(2):
        with pytest.raises(OSError, check=lambda exc: exc.errno == errno.ENOSPC):
            written.writer.append(b"lost\n")
    written.append(b"x\n")
    assert written.left == written.all


# ── two writers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_two_writers_of_one_log_count_each_others_bytes(written: Written) -> None:
    written.append(b"one\n")
    other = LogWriter(str(written.path), lambda: START, is_first=False, limit=64 * KIB)
    for number in range(60):
        other.append(b"other %03d\n" % number * 50)
        written.all += (START if not number else b"") + b"other %03d\n" % number * 50
        written.append(b"first %03d\n" % number * 50)
        assert written.all.endswith(written.left)
        assert written.used <= 64 * KIB
    assert other.end(lambda: END) == len(written.all)


def test_output_behind_a_rotation_by_another_writer_is_written_again(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    written.append(lines(3000))
    write = os.write

    def write_late(fd: int, data: bytes) -> int:
        """Another writer has rotated the log since this one has looked at it, and has measured it before this write."""
        monkeypatch.undo()
        rotate(str(written.path), written.writer.limit)
        written.path.write_bytes(header_line(len(written.all), written.writer.limit))
        return write(fd, data)

    monkeypatch.setattr("queuectl.logs.writer.os.write", write_late)
    written.append(b"x" * 100 + b"\n")
    assert written.left == written.all


@pytest.mark.parametrize("limit", [4 * KIB, 64 * KIB])
def test_processes_that_write_to_one_log_at_once_keep_its_limit_and_their_order(log: Path, limit: int) -> None:
    log.parent.mkdir()
    writers, rounds = 3, 2000
    pids = []
    for number in range(writers):
        pid = os.fork()
        if not pid:
            status = 1
            try:
                writer = LogWriter(str(log), lambda: START, is_first=False, limit=limit)
                for count in range(rounds):
                    writer.append(b"%d %05d %s\n" % (number, count, b"x" * 90))
                status = 0
            finally:
                os._exit(status)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * writers
    with Log(str(log)) as reading:
        left = b"".join(reading.read([Span(0, reading.size)]))
    found = [line.split() for line in left.splitlines()[1:] if line[:1].isdigit()]
    assert found
    for number in range(writers):
        counts = [int(line[1]) for line in found if int(line[0]) == number]
        assert sorted(set(counts)) == counts or not counts
    assert sum(path.stat().st_size for path in log.parent.iterdir()) <= limit + writers * 200


# ── headers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "line",
    [
        b"--- CONTINUED at byte 12 of the log (log-limit 1KiB) ---",  # no end of line
        b"--- CONTINUED at byte x of the log (log-limit 1KiB) ---\n",
        b" --- CONTINUED at byte 12 of the log (log-limit 1KiB) ---\n",
        START + b"--- CONTINUED at byte 12 of the log (log-limit 1KiB) ---\n",
        b"",
    ],
)
def test_only_a_first_line_of_ours_is_a_header(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(line)
    with path.open("rb") as file:
        assert read_header(file.fileno()) == Header()


def test_a_header_is_never_longer_than_what_is_read(tmp_path: Path) -> None:
    line = header_line(10**19 - 1, 1024**4 - 1)
    assert len(line) <= MAX_HEADER_BYTES
    path = tmp_path / "job.log"
    path.write_bytes(line)
    with path.open("rb") as file:
        assert read_header(file.fileno()) == Header(len(line), 10**19 - 1, b"1099511627775")


# ── after the death of the supervisor ───────────────────────────────────────────────────────────────────────────────

LOST = settle_lost(unknown_claim("a"), 3)


def end(written: Written) -> int | None:
    return end_log(str(written.path), len(START), LOST, duration=None, now_ms=0, limit=written.writer.limit)


@pytest.mark.parametrize("output", [b"one\n", b"one\ntwo\n" * 5000])
def test_an_end_marker_that_the_dead_supervisor_has_written_is_not_written_twice(
    written: Written, output: bytes
) -> None:
    written.append(output)
    log_to = written.writer.end(lambda: END)
    before = written.path.read_bytes()
    assert end(written) == log_to
    assert written.path.read_bytes() == before


@pytest.mark.parametrize(
    "output",
    [b"one\n", END + b"one\n", b"--- END of it\n", END[:-1], b"x" * 9000],
    ids=["a line", "an END marker before", "words", "half a marker", "a long line"],
)
def test_a_log_without_an_end_marker_gets_one_behind_all_output(written: Written, output: bytes) -> None:
    written.append(output)
    assert end(written) == len(START + output)
    assert written.path.read_bytes().endswith(b" lost ---\n")


def test_the_end_marker_of_a_removed_log_is_not_written(written: Written) -> None:
    assert end(written) is None
    assert not written.path.exists()
