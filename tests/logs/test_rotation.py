"""Reading logs that have two segments, or whose beginning is gone: what is left is right, and what is gone is counted."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from queuectl.jobs.model import Run
from queuectl.jobs.outcome import Ending
from queuectl.logs.follow import Fetched, Follower, RemoteOutput
from queuectl.logs.markers import gone_line
from queuectl.logs.reader import BLOCK, Gone, Log, Span, last_bytes
from queuectl.logs.rotation import disk_size, header_line, rotate, rotated
from queuectl.logs.writer import LogWriter
from tests.logs.logs import WHEN, WrittenLog

LIMIT = 4096
GONE = b"--- %d bytes of earlier output are gone (log-limit 4KiB) ---\n"


START = b"--- START 2026-01-02T03:04:05.000Z run=%d worker=w1 ---\n"
END = b"--- END 2026-01-02T03:04:06.000Z rc=0 duration=1s ---\n"


class RotatedLog(WrittenLog):
    """Written as a supervisor does it."""

    def start(self) -> None:
        number = len(self.runs) + 1
        self.writer = LogWriter(str(self.path), lambda: START % number, is_first=number == 1, limit=LIMIT)
        self._is_recorded = False
        self.runs.append(Run(number, "w1", "h", 1, WHEN, None, None, None, None, None, Ending.RUNNING, None, None))

    def append(self, data: bytes) -> None:
        for start in range(0, len(data), 500):
            self.writer.append(data[start : start + 500])
        if self._is_recorded:
            self.record_start()

    def write_end_line(self) -> int:
        log_to = self.writer.end(lambda: END)
        self.writer.close()
        assert log_to is not None
        return log_to

    def record_end(self, log_to: int) -> None:
        self.record_start()
        super().record_end(log_to)

    def record_start(self) -> None:
        """As the store has it soon after the first output."""
        self._is_recorded = True
        self._from = self.writer.log_from or 0
        self.runs[-1] = replace(self.runs[-1], log_from=self.writer.log_from)


def numbers(first: int, last: int) -> bytes:
    return b"".join(b"%06d\n" % number for number in range(first, last))


@pytest.fixture
def written(tmp_path: Path) -> RotatedLog:
    return RotatedLog(tmp_path / "job.log")


class Reading:
    """A follower, and what it reports as missing."""

    def __init__(self, written: RotatedLog, remote: RemoteOutput | None = None, **view: int | bool):
        self.told: list[tuple[int, str]] = []
        self._written = written
        self._follower = Follower(remote, **view, tell=lambda count, limit: self.told.append((count, limit)))  # type: ignore[arg-type]

    def new(self) -> bytes:
        return b"".join(self._follower.new(str(self._written.path), self._written.runs))

    @property
    def missed(self) -> int:
        return sum(count for count, _ in self.told)


SEVERAL_HOSTS = RemoteOutput(is_local=lambda _: True, fetch=lambda _, __: Fetched([], is_all=True))


@pytest.fixture(params=[None, SEVERAL_HOSTS], ids=["one host", "several hosts"])
def remote(request: pytest.FixtureRequest) -> RemoteOutput | None:
    return request.param  # type: ignore[no-any-return]


def test_without_markers_exactly_what_is_left_and_the_rest_is_told(
    written: RotatedLog, remote: RemoteOutput | None
) -> None:
    output = numbers(0, 5000)
    written.run(output)
    reading = Reading(written, remote, markers=False)
    left = reading.new()
    assert output.endswith(left)
    assert len(left) > LIMIT / 3
    assert reading.told == [(len(output) - len(left), "log-limit 4KiB")]


def test_with_markers_a_line_says_how_much_output_is_gone(written: RotatedLog, remote: RemoteOutput | None) -> None:
    output = numbers(0, 5000)
    written.run(output)
    reading = Reading(written, remote)
    first, _, rest = reading.new().partition(b"\n")
    left = rest.removesuffix(b"--- END 2026-01-02T03:04:06.000Z rc=0 duration=1s ---\n")
    assert output.endswith(left)
    assert first + b"\n" == GONE % (len(output) - len(left))
    assert reading.told == []


def test_of_several_runs_each_has_what_is_left_of_it(written: RotatedLog, remote: RemoteOutput | None) -> None:
    outputs = [numbers(0, 100), numbers(1000, 1400), b"\n", numbers(2000, 2200)]
    for output in outputs:
        written.run(output)
    total = 0
    for number, output in enumerate(outputs, start=1):
        reading = Reading(written, remote, markers=False, run=number)
        left = reading.new()
        assert output.endswith(left)
        assert reading.missed == len(output) - len(left)
        total += reading.missed
    reading = Reading(written, remote, markers=False)
    assert b"".join(outputs).endswith(reading.new())
    assert reading.missed == total
    assert reading.told == [(total, "log-limit 4KiB")]
    assert Reading(written, remote, run=1).new() == GONE % len(outputs[0])
    assert Reading(written, remote, run=4).new().startswith(b"--- START ")


def test_markers_that_a_job_prints_have_no_effect_in_a_rotated_log(written: RotatedLog) -> None:
    fake = gone_line(10**12, b"1KiB") + b"--- END x ---\n--- START x run=1 worker=w1 ---\n"
    output = fake * 200
    written.run(output)
    reading = Reading(written, markers=False)
    assert output.endswith(left := reading.new())
    assert reading.missed == len(output) - len(left)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_running_run_is_read_though_its_start_marker_is_gone(written: RotatedLog, is_recorded: bool) -> None:
    written.run(numbers(0, 10))
    written.start()
    if is_recorded:
        written.record_start()
    output = numbers(1000, 3000)
    written.append(output)
    reading = Reading(written, markers=False, run=2)
    assert output.endswith(left := reading.new())
    # Where its output began is unknown: its START marker, and the END marker before it, may count as printed.
    assert reading.missed - (len(output) - len(left)) in ([0] if is_recorded else range(150))


def test_a_run_that_never_began_has_no_output_in_a_rotated_log(written: RotatedLog) -> None:
    written.run(numbers(0, 2000))
    written.runs.append(Run(2, "w1", "h", None, WHEN, WHEN, None, None, None, "x", Ending.RELEASED, None, None))
    written.start()
    written.append(numbers(2000, 4000))
    written.record_start()
    reading = Reading(written, markers=False, run=2)
    assert (reading.new(), reading.missed) == (b"", 0)


def test_a_tail_that_is_complete_reports_nothing_and_one_that_is_not_reports_what_is_gone(
    written: RotatedLog, remote: RemoteOutput | None
) -> None:
    output = numbers(0, 5000)
    written.run(output)
    short = Reading(written, remote, markers=False, tail=2)
    assert (short.new(), short.told) == (b"004998\n004999\n", [])
    long = Reading(written, remote, markers=False, tail=4000)
    left = long.new()
    assert output.endswith(left)
    assert long.missed == len(output) - len(left)


def test_a_follower_that_keeps_up_misses_nothing(written: RotatedLog, remote: RemoteOutput | None) -> None:
    reading = Reading(written, remote, markers=False)
    written.start()
    written.record_start()
    seen = b""
    for first in range(0, 3000, 100):
        written.append(numbers(first, first + 100))
        seen += reading.new()
    written.record_end(written.write_end_line())
    seen += reading.new()
    assert (seen, reading.told) == (numbers(0, 3000), [])


def test_a_slow_follower_is_told_how_much_it_has_missed_and_continues(
    written: RotatedLog, remote: RemoteOutput | None
) -> None:
    reading = Reading(written, remote, markers=False)
    written.start()
    written.record_start()
    written.append(numbers(0, 10))
    assert reading.new() == numbers(0, 10)
    output = numbers(10, 3000)
    written.append(output)
    left = reading.new()
    assert output.endswith(left)
    assert reading.missed == len(output) - len(left)
    written.append(b"more")
    written.record_end(written.write_end_line())
    assert reading.new() == b"more"


def test_a_line_about_what_was_missed_begins_a_line(written: RotatedLog) -> None:
    reading = Reading(written)
    written.start()
    written.record_start()
    written.append(b"half a li")
    reading.new()
    written.append(numbers(0, 3000))
    seen = reading.new()
    assert seen.startswith(b"\n--- ")
    assert b" bytes of earlier output are gone (log-limit 4KiB) ---\n" in seen.partition(b"ours")[0][:80]


def test_output_that_is_removed_while_it_is_read_is_reported_where_it_was(tmp_path: Path) -> None:
    path, limit = str(tmp_path / "job.log"), 8 * BLOCK
    lines = numbers(0, limit // 7 - 100)
    writer = LogWriter(path, lambda: START % 1, is_first=True, limit=limit)
    writer.append(lines)
    begin, size = writer.log_from or 0, len(lines)
    with Log(path) as reading:
        pieces = reading.pieces([Span(begin, reading.size)])
        assert next(pieces) == lines[:BLOCK]
        writer.append(b"x" * 3 * BLOCK)
        gone = next(pieces)
        assert isinstance(gone, Gone)
        assert gone.span == (begin + BLOCK, reading.first)
        rest = b"".join(piece for piece in pieces if not isinstance(piece, Gone))
    assert lines.endswith(rest)
    assert reading.first - begin + len(rest) == size


def test_the_end_of_the_output_is_shown_however_much_is_gone(written: RotatedLog) -> None:
    written.run(numbers(0, 5000))
    view = list(Follower(markers=False).stretches(str(written.path), written.runs))
    assert last_bytes(view, 14) == b"004998\n004999\n"
    assert numbers(0, 5000).endswith(last_bytes(view, 10**6))


def test_a_reader_continues_at_the_same_byte_after_a_rotation(written: RotatedLog) -> None:
    written.start()
    output = numbers(0, 250)
    written.append(output)
    written.record_start()
    begin = written.runs[0].log_from or 0
    with Log(str(written.path)) as log:
        assert log.at(Span(begin + 700, begin + 707)) == output[700:707]
        written.append(numbers(250, 500))
        assert log.at(Span(begin + 1400, begin + 1407)) == output[1400:1407]
        assert log.size == begin + 3500
        assert log.at(Span(begin + 1400, begin + 2107)) == numbers(200, 301)


def test_a_span_over_both_segments_is_read_as_one(written: RotatedLog) -> None:
    written.run(numbers(0, 500))
    assert rotated(str(written.path)) in map(str, written.path.parent.iterdir())
    assert Reading(written, markers=False).new() == numbers(0, 500)


def test_a_log_whose_writer_died_between_rename_and_create_is_read_whole(written: RotatedLog) -> None:
    written.start()
    written.append(numbers(0, 100))
    written.record_start()
    rotate(str(written.path), LIMIT)
    reading = Reading(written, markers=False)
    assert reading.new() == numbers(0, 100)
    written.append(numbers(100, 120))
    assert reading.new() == numbers(100, 120)
    assert reading.told == []


def test_a_new_segment_without_its_header_yet_is_read_as_the_end_of_the_log(written: RotatedLog) -> None:
    written.start()
    written.append(numbers(0, 100))
    written.record_start()
    rotate(str(written.path), LIMIT)
    written.path.touch()
    reading = Reading(written, markers=False)
    assert reading.new() == numbers(0, 100)
    written.append(numbers(100, 120))
    assert reading.new() == numbers(100, 120)


def test_an_older_segment_that_does_not_reach_to_the_newer_one_is_not_read(written: RotatedLog) -> None:
    written.start()
    written.append(numbers(0, 600))
    written.record_start()
    older = Path(rotated(str(written.path)))
    os.truncate(older, older.stat().st_size - 100)
    reading = Reading(written, markers=False)
    left = reading.new()
    assert numbers(0, 600).endswith(left)
    assert reading.missed == 4200 - len(left)


def test_a_removed_segment_uses_no_space_though_a_reader_has_it_open(written: RotatedLog) -> None:
    written.start()
    written.append(numbers(0, 600))
    with open(rotated(str(written.path)), "rb") as older:
        written.append(numbers(600, 1000))
        assert os.fstat(older.fileno()).st_size == 0
    assert disk_size(str(written.path)) <= LIMIT


def test_a_job_cannot_print_a_header(written: RotatedLog) -> None:
    written.run(header_line(10**6, LIMIT))
    with Log(str(written.path)) as log:
        assert log.first == 0


# ── runs that have printed nothing ──────────────────────────────────────────────────────────────────────────────────


def silent(number: int, ending: Ending = Ending.COMPLETED, error: str | None = None) -> Run:
    code = 0 if ending is Ending.COMPLETED else None
    return Run(number, "w1", "h", 1, WHEN, WHEN, 2000, code, None, error, ending, None, None)


SILENT_END = b"--- END 2026-01-02T03:04:05.000Z rc=0 duration=2.000s ---\n"


def test_the_markers_of_a_silent_run_come_from_the_history(written: RotatedLog) -> None:
    written.runs.append(silent(1))
    assert Reading(written).new() == START % 1 + SILENT_END
    assert Reading(written, markers=False).new() == b""
    assert not written.path.exists()


def test_a_run_that_could_not_start_says_why(written: RotatedLog) -> None:
    written.runs.append(silent(1, Ending.UNSTARTABLE, "could not start: no such directory"))
    assert b" could not start: no such directory duration=2.000s ---\n" in Reading(written).new()


def test_the_markers_of_silent_runs_are_between_those_in_the_log(
    written: RotatedLog, remote: RemoteOutput | None
) -> None:
    written.run(b"one\n")
    written.runs.append(silent(2))
    written.run(b"three\n")
    written.runs.append(silent(4))
    ours = [START % 1 + b"one\n" + END, START % 2 + SILENT_END, START % 3 + b"three\n" + END, START % 4 + SILENT_END]
    assert Reading(written, remote).new() == b"".join(ours)
    assert [Reading(written, remote, run=number).new() for number in range(1, 5)] == ours
    assert Reading(written, remote, tail=3).new() == END + ours[3]


def test_a_run_that_is_silent_at_first_is_followed_into_its_log(
    written: RotatedLog, remote: RemoteOutput | None
) -> None:
    written.start()
    reading = Reading(written, remote)
    assert reading.new() == START % 1
    assert reading.new() == b""
    written.append(b"late\n")
    written.record_start()
    assert reading.new() == b"late\n"
    written.record_end(written.write_end_line())
    assert reading.new() == END


def test_a_silent_run_is_followed_to_its_end(written: RotatedLog) -> None:
    written.start()
    reading = Reading(written)
    assert reading.new() == START % 1
    written.runs[-1] = silent(1)
    assert reading.new() == SILENT_END
    assert reading.new() == b""
