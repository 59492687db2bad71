"""The data and texts of the view. Text of jobs, queues and errors is escaped here and never parsed as markup."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from rich.text import Text

from queuectl.jobs.model import Job, Worker
from queuectl.jobs.queue_limits import rules_to_dict
from queuectl.jobs.resources import format_limits, format_usage
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import WAITING, State
from queuectl.operations.queues import QueueView
from queuectl.store.types import Filter
from queuectl.text import command_line, escape_control, plural
from queuectl.tui.session import Detail, JobFilter, Page, Snapshot
from queuectl.units import humanize_duration, humanize_elapsed, humanize_time, to_ms


class Column(NamedTuple):
    label: str
    width: int  # including the gap after it


class Row(NamedTuple):
    key: str
    cells: tuple[Text, ...]


WINDOW_SECONDS: Final = 60.0
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

    def __str__(self) -> str:
        rate = self.per_second
        if rate is None:
            return "…"
        if rate >= 10:
            return f"{rate:,.0f}/s"
        return f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.0f}/min"


# Every state needs a color. From the palette of the terminal: readable on light and dark backgrounds.
STYLE: Final = {
    State.BLOCKED: "magenta",
    State.PENDING: "yellow",
    State.PROCESSING: "bold cyan",
    State.FAILED: "bright_red",
    State.COMPLETED: "green",
    State.DEAD: "bold red",
    State.CANCELLED: "dim",
}
MAX_RUNS_SHOWN: Final = 5
_GAP: Final = "  "


def command(job: Job) -> str:
    return escape_control(command_line(job.command, job.argv))


# ── header ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def head(snapshot: Snapshot, rate: str, width: int) -> Text:
    live, slots, busy = snapshot.status.workers
    if live:
        right = Text(f"{plural(live, 'worker')}{_GAP}{busy:,}/{slots:,} busy{_GAP}{rate}", style="bold")
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


def states(snapshot: Snapshot, width: int) -> Text:
    """All counts if there is space, else those that are not zero."""
    counts = snapshot.status.states
    every = [_state(state, counts[state.value]) for state in State]
    some = [_state(state, counts[state.value]) for state in State if counts[state.value]]
    line = Text(_GAP).join(every)
    if line.cell_len > width:
        line = Text(" ").join(some)
    oldest = snapshot.status.oldest_waiting_ms
    waited = Text(f"{_GAP}oldest {humanize_duration(oldest)}" if oldest is not None else "", style="dim")
    return Text.assemble(line, waited if line.cell_len + waited.cell_len <= width else "")


def _state(state: State, number: int) -> Text:
    # Dim zeros, so that other counts stand out.
    return Text(f"{state.value} {number:,}", style=STYLE[state] if number else "dim")


def title(page: Page, snapshot: Snapshot | None) -> Text:
    job_filter, shown = page.filter, len(page.jobs)
    line = Text.assemble(("JOBS", "bold"), _GAP, f"{shown:,}")
    if snapshot is not None and not job_filter.text:
        where = Filter(
            queues=frozenset(() if job_filter.queue is None else (job_filter.queue,)), includes_webhooks=False
        )  # as in the list
        counted = [queue.states for queue in snapshot.queues if where.has_queue(queue.name)]
        of = sum(states[state] for states in counted for state in states if job_filter.state in (None, state))
        line.append(f" of {of:,}" if of > shown else "")
    for name, value in (("state", job_filter.state), ("queue", job_filter.queue), ("text", job_filter.text)):
        if value:
            line.append(f"{_GAP}{name}: {escape_control(str(value))}", style="bold")
    if job_filter != JobFilter():
        line.append(f"{_GAP}(esc: clear)", style="dim")
    return line


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def job_columns(width: int) -> list[Column]:
    """The least important columns are dropped first in a narrow terminal; the command gets the remaining width."""
    columns = [Column("ID", 12 if width >= 60 else 9), Column("STATE", 11)]
    if width >= 70:
        columns.append(Column("QUEUE", 12 if width >= 100 else 9))
    if width >= 60:
        columns.append(Column("PRI", 5))
    columns.append(Column("WHEN", 9 if width >= 60 else 8))
    if width >= 90:
        columns.append(Column("FAILS", 6))
    rest = width - sum(column.width for column in columns)
    note = rest * 2 // 5 if width >= 100 else 0
    columns.append(Column("COMMAND", max(4, rest - note)))
    if note:
        columns.append(Column("NOTE", note))
    return columns


def job_row(job: Job, now_ms: int, columns: Sequence[Column]) -> Row:
    texts = {
        "ID": escape_control(job.id),
        "STATE": "held" if job.held and job.state in WAITING else job.state.value,
        "QUEUE": escape_control(job.queue),
        "PRI": str(job.priority) if job.priority else "",
        "WHEN": when(job, now_ms),
        "FAILS": _attempts(job),
        "COMMAND": command(job),
        "NOTE": note(job),
    }
    styles = {"STATE": STYLE[job.state], "QUEUE": "dim", "NOTE": "dim"}
    return Row(job.id, tuple(Text(texts[one.label], style=styles.get(one.label, "")) for one in columns))


def when(job: Job, now_ms: int) -> str:
    """The run time, the waiting time or the time until it is due, or when it ended."""
    if job.state is State.PROCESSING:
        return humanize_duration(max(0, now_ms - to_ms(job.started_at))) if job.started_at else "starts"
    if job.state in WAITING:
        due = to_ms(job.run_at)
        return (
            f"in {humanize_duration(due - now_ms)}"
            if due >= now_ms + 1000
            else humanize_duration(max(0, now_ms - to_ms(job.created_at)))
        )
    return humanize_time(min(now_ms, to_ms(job.finished_at or job.updated_at)), now_ms)


def note(job: Job) -> str:
    """The worker, the wait reason or the error."""
    if job.state is State.PROCESSING:
        return escape_control(job.worker or "")
    return escape_control(job.reason or job.error or "")


def _attempts(job: Job) -> str:
    return (
        f"{job.attempts}/{allowed_failures(job.max_retries, first_is_free=job.first_is_free)}" if job.attempts else ""
    )


def queue_columns(width: int) -> list[Column]:
    numbers = [Column("WAIT", 9), Column("RUN", 6), Column("LIMIT", 14)]
    return [Column("QUEUE", max(6, width - sum(column.width for column in numbers))), *numbers]


def queue_row(queue: QueueView) -> Row:
    waiting = sum(queue.states[state.value] for state in WAITING)
    cells = (
        Text(escape_control(queue.name)),
        Text(f"{waiting:,}"),
        Text(f"{queue.states['processing']:,}"),
        Text("paused", style="bold yellow") if queue.rules.paused else Text(_limit(queue), style="dim"),
    )
    return Row(queue.name, cells)


def _limit(queue: QueueView) -> str:
    rules, parts = queue.rules, []
    if rules.concurrency is not None:
        parts.append(f"{rules.concurrency}")
    if rules.per_key is not None:
        parts.append(f"{rules.per_key}/key")
    if rules.rate is not None:
        parts.append(str(rules_to_dict(rules)["rate"]))
    return " ".join(parts)


def worker_columns(width: int) -> list[Column]:
    numbers = [Column("BUSY", 9), Column("SEEN", 8)]
    return [Column("WORKER", max(6, width - sum(column.width for column in numbers))), *numbers]


def worker_row(worker: Worker, now_ms: int) -> Row:
    if worker.state == "lost":
        seen = Text("lost", style="bold red")
    elif worker.state == "stopping":
        seen = Text("stopping", style="yellow")
    else:
        seen = Text(humanize_time(min(now_ms, to_ms(worker.heartbeat_at)), now_ms), style="dim")
    return Row(worker.id, (Text(escape_control(worker.id)), Text(f"{worker.busy}/{worker.slots}"), seen))


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
        yield Text(escape_control(why), style="yellow" if job.reason else "red")
    facts = [f"queue {job.queue}", f"priority {job.priority}", f"added {_moment(job.created_at, now)}"]
    if tries := _attempts(job):
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
        parts = [f"run {run.number}", run.outcome.value, _moment(run.started_at, now), lasted]
        parts += [run.error or "", format_usage(run.usage)]
        yield Text(escape_control(_GAP.join(filter(None, parts))), style="dim")


def _moment(moment: datetime | None, now_ms: int) -> str:
    return "" if moment is None else humanize_time(min(now_ms, to_ms(moment)), now_ms)
