"""Reading logs whose beginning is gone: what is left is right, and what is gone is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from queuectl.jobs.model import Run
from queuectl.jobs.outcome import Ending
from queuectl.logs.bounds import gone_line
from queuectl.logs.follow import Follower
from queuectl.logs.log import BLOCK, Gone, Log, Span
from queuectl.logs.read import last_bytes, output_of
from queuectl.logs.spread import Elsewhere, SpreadFollower
from queuectl.logs.stored import Fetched
from queuectl.logs.writing import Writing
from tests.logs.logs import WHEN, WrittenLog

LIMIT = 4096
GONE = b"--- %d bytes of earlier output are gone (log-limit 4KiB) ---\n"


class CutLog(WrittenLog):
    """Written as a keeper does it."""

    def start(self) -> None:
        number = len(self.runs) + 1
        with Writing(str(self.path), limit=LIMIT, create=True) as log:
            log.append_line(b"--- START 2026-01-02T03:04:05.000Z run=%d worker=w1 ---\n" % number)
            self._from = log.size
        self.runs.append(Run(number, "w1", "h", 1, WHEN, None, None, None, None, None, Ending.RUNNING, None, None))

    def append(self, data: bytes) -> None:
        with Writing(str(self.path), limit=LIMIT) as log:
            for start in range(0, len(data), 500):
                log.append(data[start : start + 500])

    def write_end_line(self) -> int:
        with Writing(str(self.path), limit=LIMIT) as log:
            size = log.size
            log.append_line(b"--- END 2026-01-02T03:04:06.000Z rc=0 duration=1s ---\n")
        return size

    def record_start(self) -> None:
        """As the store has it soon after the start."""
        self.runs[-1] = replace(self.runs[-1], log_from=self._from)


def numbers(first: int, last: int) -> bytes:
    return b"".join(b"%06d\n" % number for number in range(first, last))


@pytest.fixture
def written(tmp_path: Path) -> CutLog:
    return CutLog(tmp_path / "job.log")


class Reading:
    """One who reads, and is told what is gone."""

    def __init__(self, written: CutLog, make: Callable[..., Follower | SpreadFollower] = Follower, **how: int | bool):
        self.told: list[tuple[int, str]] = []
        self._written = written
        self._follower = make(**how, tell=lambda count, limit: self.told.append((count, limit)))

    def new(self) -> bytes:
        return b"".join(self._follower.new(str(self._written.path), self._written.runs))

    @property
    def missed(self) -> int:
        return sum(count for count, _ in self.told)


def spread(**how: int | bool) -> SpreadFollower:
    elsewhere = Elsewhere(is_here=lambda _: True, fetch=lambda _, __: Fetched([], is_all=True))
    return SpreadFollower(elsewhere, **how)  # type: ignore[arg-type]


@pytest.fixture(params=[Follower, spread], ids=["one host", "several hosts"])
def make(request: pytest.FixtureRequest) -> Callable[..., Follower | SpreadFollower]:
    return request.param  # type: ignore[no-any-return]


def test_without_markers_exactly_what_is_left_and_the_rest_is_told(
    written: CutLog, make: Callable[..., Follower | SpreadFollower]
) -> None:
    output = numbers(0, 5000)
    written.run(output)
    reading = Reading(written, make, markers=False)
    left = reading.new()
    assert output.endswith(left)
    assert len(left) > LIMIT / 3
    assert reading.told == [(len(output) - len(left), "log-limit 4KiB")]


def test_with_markers_a_line_says_how_much_output_is_gone(
    written: CutLog, make: Callable[..., Follower | SpreadFollower]
) -> None:
    output = numbers(0, 5000)
    written.run(output)
    reading = Reading(written, make)
    first, _, rest = reading.new().partition(b"\n")
    left = rest.removesuffix(b"--- END 2026-01-02T03:04:06.000Z rc=0 duration=1s ---\n")
    assert output.endswith(left)
    assert first + b"\n" == GONE % (len(output) - len(left))
    assert reading.told == []


def test_of_several_runs_each_has_what_is_left_of_it(
    written: CutLog, make: Callable[..., Follower | SpreadFollower]
) -> None:
    outputs = [numbers(0, 100), numbers(1000, 1400), b"", numbers(2000, 2300)]
    for output in outputs:
        written.run(output)
    total = 0
    for number, output in enumerate(outputs, start=1):
        reading = Reading(written, make, markers=False, run=number)
        left = reading.new()
        assert output.endswith(left)
        assert reading.missed == len(output) - len(left)
        total += reading.missed
    reading = Reading(written, make, markers=False)
    assert b"".join(outputs).endswith(reading.new())
    assert reading.missed == total
    assert reading.told in ([], [(total, "log-limit 4KiB")]) or make is spread
    assert Reading(written, make, run=1).new() == GONE % len(outputs[0])
    assert Reading(written, make, run=4).new().startswith(b"--- START ")


def test_lines_of_ours_that_a_job_prints_deceive_nobody_though_a_log_is_cut(written: CutLog) -> None:
    fake = gone_line(10**12, b"1KiB") + b"--- END x ---\n--- START x run=1 worker=w1 ---\n"
    output = fake * 200
    written.run(output)
    reading = Reading(written, markers=False)
    assert output.endswith(left := reading.new())
    assert reading.missed == len(output) - len(left)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_the_run_under_way_is_read_though_its_first_line_is_gone(written: CutLog, is_recorded: bool) -> None:
    written.run(numbers(0, 10))
    written.start()
    if is_recorded:
        written.record_start()
    output = numbers(1000, 3000)
    written.append(output)
    reading = Reading(written, markers=False, run=2)
    assert output.endswith(left := reading.new())
    # Where its output began nobody knows: its START line, and the END line before it, may count as printed.
    assert reading.missed - (len(output) - len(left)) in ([0] if is_recorded else range(150))


def test_a_run_that_never_began_has_nothing_though_the_log_was_cut(written: CutLog) -> None:
    written.run(numbers(0, 2000))
    written.runs.append(Run(2, "w1", "h", None, WHEN, WHEN, None, None, None, "x", Ending.RELEASED, None, None))
    written.start()
    written.append(numbers(2000, 4000))
    written.record_start()
    reading = Reading(written, markers=False, run=2)
    assert (reading.new(), reading.missed) == (b"", 0)


def test_a_tail_that_is_all_there_says_nothing_and_one_that_is_not_says_what_is_gone(
    written: CutLog, make: Callable[..., Follower | SpreadFollower]
) -> None:
    output = numbers(0, 5000)
    written.run(output)
    short = Reading(written, make, markers=False, tail=2)
    assert (short.new(), short.told) == (b"004998\n004999\n", [])
    long = Reading(written, make, markers=False, tail=4000)
    left = long.new()
    assert output.endswith(left)
    if make is Follower:
        assert long.missed == len(output) - len(left)


def test_who_follows_misses_nothing_as_long_as_it_keeps_up(
    written: CutLog, make: Callable[..., Follower | SpreadFollower]
) -> None:
    reading = Reading(written, make, markers=False)
    written.start()
    written.record_start()
    seen = b""
    for first in range(0, 3000, 100):
        written.append(numbers(first, first + 100))
        seen += reading.new()
    written.record_end(written.write_end_line())
    seen += reading.new()
    assert (seen, reading.told) == (numbers(0, 3000), [])


def test_who_is_overtaken_is_told_how_much_was_missed_and_goes_on(
    written: CutLog, make: Callable[..., Follower | SpreadFollower]
) -> None:
    reading = Reading(written, make, markers=False)
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


def test_a_line_about_what_was_missed_begins_a_line(written: CutLog) -> None:
    reading = Reading(written)
    written.start()
    written.record_start()
    written.append(b"half a li")
    reading.new()
    written.append(numbers(0, 3000))
    seen = reading.new()
    assert seen.startswith(b"\n--- ")
    assert b" bytes of earlier output are gone (log-limit 4KiB) ---\n" in seen.partition(b"ours")[0][:80]


def test_what_goes_while_it_is_read_is_said_where_it_was(tmp_path: Path) -> None:
    path, limit = str(tmp_path / "job.log"), 4 * BLOCK
    lines = numbers(0, limit // 7)
    with Writing(path, limit=limit, create=True) as log:
        log.append_line(b"--- START x run=1 worker=w1 ---\n")
        log.append(lines[: limit - 100])
    with Log(path) as reading:
        pieces = reading.pieces([Span(32, reading.size)])
        assert next(pieces) == lines[:BLOCK]
        with Writing(path, limit=limit) as log:
            log.append(b"x" * 200)
        gone = next(pieces)
        assert isinstance(gone, Gone)
        assert gone.span == (32 + BLOCK, reading.first)
        rest = b"".join(piece for piece in pieces if not isinstance(piece, Gone))
    assert lines[: limit - 100].endswith(rest)
    assert 32 + BLOCK + sum(gone.span[::-1]) - 2 * gone.span.start + len(rest) == 32 + limit - 100


def test_the_end_of_the_output_is_shown_however_much_is_gone(written: CutLog) -> None:
    written.run(numbers(0, 5000))
    with Log(str(written.path)) as log:
        view = [output_of(log, written.runs, 0)]
        assert last_bytes(log, view, 14) == b"004998\n004999\n"
        assert numbers(0, 5000).endswith(last_bytes(log, view, 10**6))
