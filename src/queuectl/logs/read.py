"""Reading a job's log: one file with all its runs, each framed by a START and an END line of ours.

What to read is said in spans of bytes, so that a log of any size is read in bounded memory. Where the output of a run
lies is recorded in its history. Only where nothing is recorded yet (the run under way) or any more (its worker died) are
frames looked for, and then only in the part of the log that no other run has claimed: a job that prints such lines
deceives nobody. Spans may begin before what is left of a log: offsets count what is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from queuectl.jobs.model import Run
from queuectl.jobs.outcome import Ending
from queuectl.logs.frames import LONGEST_FRAME
from queuectl.logs.log import BLOCK, Joined, Log, Source, Span, Stretch

_START: Final = b"--- START "
_END_AT_TAIL: Final = re.compile(rb"(?:\A|(\n))--- END [^\n]*\n\Z")


def spans(log: Log, runs: Sequence[Run], *, run: int | None = None, markers: bool = True) -> list[Span]:
    """What to read: all runs or the one numbered `run`, with the lines of ours around the output or without."""
    if run is None and markers:
        return [Span(0, log.size)]
    place = frame if markers else output_of
    return [place(log, runs, index) for index, known in enumerate(runs) if run in (None, known.number)]


def left_of(log: Source, view: Sequence[Span]) -> list[Span]:
    """`view` without what is gone."""
    return [Span(max(start, log.first), stop) for start, stop in view if stop > log.first]


def left_stretches(view: Iterable[Stretch]) -> list[Stretch]:
    """As `left_of`, of several sources in a row."""
    return [Stretch(source, span) for source, whole in view for span in left_of(source, [whole])]


def printed_within(log: Log, runs: Sequence[Run], span: Span, *, run: int | None = None) -> int:
    """How many bytes of a span are output, of all runs or the one numbered `run`; the others are lines of ours."""
    total = 0
    for index, known in enumerate(runs):
        if run in (None, known.number):
            start, stop = output_of(log, runs, index)
            total += max(0, min(stop, span.stop) - max(start, span.start))
    return total


def last_lines(log: Source, view: Sequence[Span], count: int) -> list[Span]:
    """The end of `view` that holds its last `count` lines; the newline that ends the last one begins no other."""
    wanted, at_the_end = count, True
    for index in range(len(view) - 1, -1, -1):
        span, stop = view[index], view[index].stop
        while stop > span.start and wanted:
            start = max(span.start, stop - BLOCK)
            block = log.at(Span(start, stop))
            upto = len(block) - (at_the_end and block.endswith(b"\n"))
            at_the_end = False
            here = block.count(b"\n", 0, upto)
            if here >= wanted:
                for _ in range(wanted):
                    upto = block.rfind(b"\n", 0, upto)
                return [Span(start + upto + 1, span.stop), *view[index + 1 :]]
            wanted -= here
            stop = start
    return list(view) if count else []


def last_bytes(log: Source, view: Sequence[Span], limit: int) -> bytes:
    """The last `limit` bytes of `view`."""
    parts: list[bytes] = []
    for start, stop in reversed(view):
        part = b"".join(log.read([Span(max(start, stop - limit), stop)]))
        parts.append(part)
        limit -= len(part)
    return b"".join(reversed(parts))


def last_stretches(view: Sequence[Stretch], count: int) -> list[Stretch]:
    """As `last_lines`, of several sources in a row."""
    joined = Joined(view)
    wanted = last_lines(joined, [Span(0, joined.size)], count)
    return joined.cut(wanted[0].start) if wanted else []


def holds(log: Log, runs: Sequence[Run]) -> bool:
    """Whether the last of `runs` is in this log, as the others are: the latest run of a job may have been in another home,
    and its log is not the log of this one."""
    run = runs[-1]
    if run.log_from is None:
        found = _find_start(log, runs, len(runs) - 1)
        return found.stop > found.start
    if run.log_from <= log.first:  # its START line is gone, with all that could contradict us
        return run.log_from <= log.size
    before = log.at(Span(max(log.first, run.log_from - LONGEST_FRAME), run.log_from))
    return re.search(rb"--- START [^\n]* run=%d [^\n]*\n\Z" % run.number, before) is not None


def output_of(log: Log, runs: Sequence[Run], index: int) -> Span:
    """The output of `runs[index]`, without our lines."""
    run = runs[index]
    start = run.log_from
    if start is None:
        start = _find_start(log, runs, index).stop
    if run.log_to is not None:
        return Span(start, max(start, run.log_to))
    ceiling = _ceiling(log, runs, index)
    if start >= ceiling:  # it never began: there was no room for its first line
        return Span(ceiling, ceiling)
    return Span(start, max(start, _before_end_line(log, Span(start, ceiling), run)))


def frame(log: Log, runs: Sequence[Run], index: int) -> Span:
    """The output of `runs[index]` with the lines of ours before and behind it."""
    run = runs[index]
    start = _find_start(log, runs, index).start if run.log_from is None else _start_line(log, run.log_from)
    stop = _ceiling(log, runs, index) if run.log_to is None else _behind_end_line(log, run.log_to)
    return Span(start, max(start, stop))


def reach(log: Log, runs: Sequence[Run], index: int) -> Span:
    """As `frame`, with all that comes before the next run: children that a run left behind may print behind its end."""
    return Span(frame(log, runs, index).start, _ceiling(log, runs, index))


def _start_line(log: Log, log_from: int) -> int:
    """Where the START line begins that ends at `log_from`."""
    begin = max(log.first, log_from - LONGEST_FRAME)
    before = log.at(Span(begin, max(begin, log_from)))
    # A child that a former run left behind may have printed half a line before it: look for the words, not the line.
    found = before.rfind(_START)
    return log_from if found < 0 else begin + found


def _behind_end_line(log: Log, log_to: int) -> int:
    behind = log.at(Span(log_to, log_to + LONGEST_FRAME))
    found = re.match(rb"\n?--- END [^\n]*\n", behind)
    return log_to + (found.end() if found else 0)


def _find_start(log: Log, runs: Sequence[Run], index: int) -> Span:
    """The START line of a run that nothing is recorded of; an empty span at the end of the log if there is none yet."""
    known = [run.log_to for run in runs[:index] if run.log_to is not None]
    earliest = _behind_end_line(log, known[-1]) if known else 0
    begin = max(earliest, log.first)
    wanted = re.compile(rb"--- START [^\n]* run=%d [^\n]*\n" % runs[index].number)
    size = log.size
    while begin < size:
        block = log.at(Span(begin, begin + BLOCK))
        if found := wanted.search(block):
            return Span(begin + found.start(), begin + found.end())
        if len(block) < BLOCK:
            break
        begin += BLOCK - LONGEST_FRAME
    # Where its place is gone, it was there, unless there never was a process that could print.
    has_begun = runs[index].pid is not None or runs[index].outcome is Ending.RUNNING
    return Span(earliest, earliest) if earliest < log.first and has_begun else Span(size, size)


def _ceiling(log: Log, runs: Sequence[Run], index: int) -> int:
    """Where a run of unknown end ends at the latest: where the next one begins."""
    if index + 1 == len(runs):
        return log.size
    following = runs[index + 1]
    if following.log_from is not None:
        return _start_line(log, following.log_from)
    return _find_start(log, runs, index + 1).start


def _before_end_line(log: Log, span: Span, run: Run) -> int:
    """The end of `span` without an END line at its very end.

    A run under way may have got its END line while the store does not know of it yet. If the job itself printed that
    line, it is only held back: it counts as soon as something follows, or the end is recorded.
    """
    begin = max(span.start, span.stop - LONGEST_FRAME, log.first)
    found = _END_AT_TAIL.search(log.at(Span(begin, span.stop)))
    if found is None:
        return span.stop
    # The newline before it may be ours or the job's. Of a run under way we shall know; of a lost one, most likely the job's.
    held_back = bool(found[1]) and run.outcome is not Ending.RUNNING
    return begin + found.start() + held_back
