"""The head of the view, the details of a job, and what the preview shows. Text of jobs and errors is escaped here and never parsed as markup."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from rich.text import Text

from queuectl.jobs.resources import format_limits, format_usage
from queuectl.jobs.states import State
from queuectl.text import escape_control, plural
from queuectl.tui.log_pane import LineSplitter, safe
from queuectl.tui.session import Detail, Snapshot
from queuectl.tui.tables import STYLE, attempts, command, format_rate, since, when, with_relative_times
from queuectl.units import humanize_duration, humanize_elapsed

WINDOW_SECONDS: Final = 60.0
SPARK_BARS: Final = 20
LEAST_BARS: Final = 4  # fewer are not shown
_BARS: Final = "▁▂▃▄▅▆▇█"
MIN_SECONDS: Final = 1.0  # before that, no rate is shown


class Rate:
    """Throughput in the last minute, or since the start. Keeps at most two samples per second."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque(maxlen=2 * int(WINDOW_SECONDS) + 2)
        self._last: tuple[float, int] | None = None

    def see(self, at: float, count: int) -> None:
        """`at`: by the monotonic clock."""
        if self._last is not None and count < self._last[1]:
            self._seen.clear()  # another database, or one that was reset
        self._last = (at, count)
        if not self._seen or at - self._seen[-1][0] >= 0.5:
            self._seen.append(self._last)
        while len(self._seen) > 1 and at - self._seen[1][0] >= WINDOW_SECONDS:
            self._seen.popleft()

    @property
    def per_second(self) -> float | None:
        if self._last is None or not self._seen:
            return None
        (began, first), (at, count) = self._seen[0], self._last
        return (count - first) / (at - began) if at - began >= MIN_SECONDS else None

    def bars(self) -> list[float]:
        """How many were completed in each complete part of the last minute, from the first sample on."""
        seen, part = list(self._seen), WINDOW_SECONDS / SPARK_BARS
        if not seen:
            return []
        edges = [part * number for number in range(math.ceil(seen[0][0] / part), int(seen[-1][0] / part) + 1)]
        totals = [_interpolate(seen, edge) for edge in edges[-SPARK_BARS - 1 :]]
        return [after - before for before, after in pairwise(totals)]

    def __str__(self) -> str:
        rate = self.per_second
        return "…" if rate is None else format_rate(rate)


def _interpolate(seen: Sequence[tuple[float, int]], at: float) -> float:
    """The count at this time, between two samples: a part of the minute may have none."""
    index = bisect_right(seen, at, key=lambda sample: sample[0])
    (begin, before), (end, after) = seen[index - 1], seen[min(index, len(seen) - 1)]
    return before + (after - before) * (at - begin) / (end - begin) if end > begin else float(before)


class Trend:
    """A value in the last minute, as bars. Keeps one sample for each bar."""

    def __init__(self) -> None:
        self._bars: deque[tuple[int, float]] = deque(maxlen=SPARK_BARS)

    def see(self, at: float, value: float) -> None:
        """`at`: by the monotonic clock. A bar has the last value within its time."""
        bar = int(at / WINDOW_SECONDS * SPARK_BARS)
        if self._bars and self._bars[-1][0] == bar:
            self._bars.pop()
        self._bars.append((bar, value))

    def values(self) -> list[float]:
        """From the first sample on; a bar without a sample has the value of the one before."""
        if not self._bars:
            return []
        found, last = dict(self._bars), self._bars[-1][0]
        values, value = [], 0.0
        for bar in range(max(self._bars[0][0], last - SPARK_BARS + 1), last + 1):
            value = found.get(bar, value)
            values.append(value)
        return values


def sparkline(values: Sequence[float]) -> str:
    most = max(values, default=0)
    if not most:
        return _BARS[0] * len(values)
    return "".join(_BARS[max(int(value > 0), round(value / most * (len(_BARS) - 1)))] for value in values)


MAX_RUNS_SHOWN: Final = 5
_GAP: Final = "  "


# ── header ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def head(snapshot: Snapshot, rate: str, rates: Sequence[float], width: int) -> Text:
    """`rates`: the throughput in the last minute, for a sparkline if there is space."""
    live, slots, busy = snapshot.status.workers
    if live:
        right = Text(f"{plural(live, 'worker')}{_GAP}{busy:,}/{slots:,} busy{_GAP}{rate}", style="bold")
        if len(rates) >= LEAST_BARS and width >= 90:
            right.append(f" {sparkline(rates)}", style="green")
    else:
        right = Text("no workers: queuectl worker start", style="bold yellow")
    if snapshot.status.lost:
        right = Text.assemble((f"{snapshot.status.lost} lost", "bold red"), _GAP, right)
    space = width - right.cell_len - 2
    left = Text("queuectl", style="bold")
    if space > 24:
        left.append(_GAP + escape_control(snapshot.store), style="dim")
    left.truncate(max(space, 0), overflow="ellipsis")
    return Text.assemble(left, " " * max(2, width - left.cell_len - right.cell_len) if left else "", right)


def states(snapshot: Snapshot, depths: Sequence[float], width: int) -> Text:
    """All counts if there is space, else those that are not zero. `depths`: how many jobs waited in the last minute."""
    counts = snapshot.status.states
    every = [_state(state, counts[state.value]) for state in State]
    some = [_state(state, counts[state.value]) for state in State if counts[state.value]]
    line = Text(_GAP).join(every)
    if line.cell_len > width:
        line = Text(" ").join(some)
    oldest = snapshot.status.oldest_waiting_ms
    waited = Text(f"{_GAP}oldest {humanize_duration(oldest)}" if oldest is not None else "", style="dim")
    if line.cell_len + waited.cell_len <= width:
        line.append_text(waited)
    chart = Text.assemble((f"{_GAP}waiting ", "dim"), (sparkline(depths), "yellow"))
    if len(depths) >= LEAST_BARS and line.cell_len + chart.cell_len <= width:
        line.append_text(chart)
    return line


def _state(state: State, number: int) -> Text:
    # Dim zeros, so that other counts stand out.
    return Text(f"{state.value} {number:,}", style=STYLE[state] if number else "dim")


def tabs(
    names: Mapping[str, tuple[str, str]], current: str, counts: Mapping[str, int], *, more: Text, width: int
) -> Text:
    """The line of tabs: long and short names by tab. A narrow terminal has the short names, a very narrow one only the current tab."""
    line = Text()
    for is_short, shown in ((False, names), (True, names), (True, {current})):
        line = Text()
        for number, (tab, (name, short)) in enumerate(names.items(), 1):
            if tab not in shown:
                continue
            count = f" {counts[tab]:,}" if not is_short and counts.get(tab) else ""
            label = Text(
                f" {number} {short if is_short else name}{count} ", style="reverse bold" if tab == current else ""
            )
            label.apply_meta({"@click": f"app.tab('{tab}')"})
            line.append_text(label)
        if line.cell_len <= width:
            break
    if more and line.cell_len + more.cell_len + 2 <= width:
        line = Text.assemble(line, _GAP, more)
    return line


# ── one job ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def detail_lines(seen: Detail) -> Text:
    return Text("\n").join(_details(seen))


def _details(seen: Detail) -> Iterator[Text]:
    job, now = seen.job, seen.now_ms
    yield Text.assemble(
        (escape_control(job.id), "bold"), _GAP, (job.state.value, STYLE[job.state]), _GAP, when(job, now)
    )
    yield Text(command(job))
    why = job.reason or job.error
    if why:
        yield Text(escape_control(with_relative_times(why, now)), style="yellow" if job.reason else "red")
    if job.last_output and job.error:
        yield Text(escape_control(job.last_output), style="red")
    facts = [f"queue {job.queue}", f"priority {job.priority}", f"added {since(job.created_at, now)}"]
    if tries := attempts(job):
        facts.append(f"failed attempts {tries}")
    if job.timeout_ms:
        facts.append(f"timeout {humanize_elapsed(job.timeout_ms)}")
    if job.worker:
        facts.append(f"worker {job.worker}")
    if job.tags:
        facts.append(f"tags {' '.join(job.tags)}")
    if job.batch:
        facts.append(f"batch {job.batch}")
    yield Text(escape_control(_GAP.join(facts)), style="dim")
    if job.limits:
        yield Text(f"limits {format_limits(job.limits)}", style="dim")
    yield Text(f"in {escape_control(job.cwd)}", style="dim")
    for run in reversed(seen.history[-MAX_RUNS_SHOWN:]):  # newest first
        lasted = humanize_elapsed(run.duration_ms) if run.duration_ms is not None else ""
        parts = [f"run {run.number}", run.outcome.value, since(run.started_at, now), lasted]
        parts += [run.error or "", format_usage(run.usage)]
        yield Text(escape_control(_GAP.join(filter(None, parts))), style="dim")


def log_end(seen: Detail, height: int) -> Text:
    """The last lines of the output of the last run, for a pane of this height."""
    if seen.output is None:
        return Text("the output is not available on this host", style="dim")
    splitter = LineSplitter()
    lines = [*splitter.feed(seen.output.encode()), *splitter.feed(b"", final=True)]
    return Text("\n").join(safe(line) for line in lines[-height:]) if lines else Text("no output", style="dim")
