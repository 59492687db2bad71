"""The columns and rows of the tables. Text of jobs, queues and errors is escaped here and never parsed as markup."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from rich.text import Text

from queuectl.cron.operations import ScheduleDetails
from queuectl.cron.schedule import Schedule
from queuectl.jobs.model import Job, Worker
from queuectl.jobs.queue_limits import rules_to_dict
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import WAITING, State
from queuectl.operations.queues import QueueView
from queuectl.operations.wait import Progress
from queuectl.text import command_line, escape_control
from queuectl.units import humanize_duration, humanize_time, to_ms


class Column(NamedTuple):
    label: str
    width: int  # including the gap after it


class Row(NamedTuple):
    key: str
    cells: tuple[Text, ...]


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
BAR_WIDTH: Final = 12
# Reasons contain absolute times, which are cut in a narrow column.
_TIME: Final = re.compile(r"(?P<before>retry|next|not due) (?:at|until) (?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z)")
_BEFORE: Final = {"not due": "due"}


def command(job: Job) -> str:
    return escape_control(command_line(job.command, job.argv))


def with_relative_times(text: str, now_ms: int) -> str:
    """`text` with `in 3m` for absolute times in the future."""

    def relative(found: re.Match[str]) -> str:
        before = _BEFORE.get(found["before"], found["before"])
        return f"{before} {until(to_ms(datetime.fromisoformat(found['time'])), now_ms)}"

    return _TIME.sub(relative, text)


def until(at_ms: int, now_ms: int) -> str:
    return f"in {humanize_duration(at_ms - now_ms)}" if at_ms >= now_ms + 1000 else "now"


def since(moment: datetime | None, now_ms: int) -> str:
    return "" if moment is None else humanize_time(min(now_ms, to_ms(moment)), now_ms)


def fill(columns: Sequence[Column], label: str, width: int, *, at: int, least: int = 6) -> list[Column]:
    """The columns with another one at this index, which gets the remaining width."""
    rest = max(least, width - sum(column.width for column in columns))
    return [*columns[:at], Column(label, rest), *columns[at:]]


def _row(key: str, texts: Mapping[str, str | Text], columns: Sequence[Column], styles: Mapping[str, str]) -> Row:
    def cell(label: str) -> Text:
        text = texts[label]
        return text if isinstance(text, Text) else Text(text, style=styles.get(label, ""))

    return Row(key, tuple(cell(column.label) for column in columns))


def _wide_enough(width: int, columns: Sequence[tuple[int, Column]]) -> list[Column]:
    """The columns for this width: each has the least width at which it is shown."""
    return [column for least, column in columns if width >= least]


# ── jobs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def job_columns(width: int) -> list[Column]:
    """The least important columns are dropped first in a narrow terminal; the command gets the remaining width."""
    shown = [
        (0, Column("ID", 12 if width >= 60 else 11 if width >= 40 else 9)),
        (0, Column("STATE", 11)),
        (70, Column("QUEUE", 12 if width >= 100 else 9)),
        (60, Column("PRI", 5)),
        (0, Column("WHEN", 9 if width >= 60 else 8)),
        (90, Column("FAILS", 6)),
    ]
    columns = _wide_enough(width, shown)
    rest = width - sum(column.width for column in columns)
    note = rest // 2 if width >= 84 else 0
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
        "FAILS": attempts(job),
        "COMMAND": command(job) if job.array_index is None else f"#{job.array_index} {command(job)}",
        "NOTE": note(job, now_ms),
    }
    return _row(job.id, texts, columns, {"STATE": STYLE[job.state], "QUEUE": "dim", "NOTE": "dim"})


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


def note(job: Job, now_ms: int) -> str:
    """The worker, the wait reason, or why the job failed. A narrow column cuts the end, so the most useful part comes first."""
    if job.state is State.PROCESSING:
        return escape_control(job.worker or "")
    reason = with_relative_times(job.reason or "", now_ms)
    if job.error is None or job.state in (State.PENDING, State.BLOCKED):
        return "" if reason.startswith("due in") else escape_control(reason)  # the column WHEN has it
    error = job.error if job.last_output is None else f"{job.last_output} ({job.error})"
    return escape_control("  ".join(filter(None, (error, reason.partition(", attempt")[0]))))


def attempts(job: Job) -> str:
    return (
        f"{job.attempts}/{allowed_failures(job.max_retries, first_is_free=job.first_is_free)}" if job.attempts else ""
    )


# ── queues ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def queue_columns(width: int, *, is_panel: bool) -> list[Column]:
    numbers = [Column("WAIT", 9), Column("RUN", 6)]
    if not is_panel:
        shown = [
            (52, Column("FAILED", 8)),
            (52, Column("DEAD", 8)),
            (64, Column("COMPLETED", 11)),
            (80, Column("LOAD", 14)),
        ]
        numbers += _wide_enough(width, shown)
    return fill([*numbers, Column("LIMIT", 14)], "QUEUE", width, at=0)


def queue_row(queue: QueueView, columns: Sequence[Column]) -> Row:
    waiting = sum(queue.states[state.value] for state in WAITING)
    running, most = queue.states["processing"], queue.rules.concurrency
    dead = queue.states["dead"]
    texts: dict[str, str | Text] = {
        "QUEUE": escape_control(queue.name),
        "WAIT": f"{waiting:,}",
        "RUN": f"{running:,}",
        "FAILED": f"{queue.states['failed']:,}",
        "DEAD": Text(f"{dead:,}", style=STYLE[State.DEAD] if dead else ""),
        "COMPLETED": f"{queue.states['completed']:,}",
        "LOAD": progress_bar(running, most) if most else "",
        "LIMIT": Text("paused", style="bold yellow") if queue.rules.paused else Text(_limit(queue), style="dim"),
    }
    return _row(queue.name, texts, columns, {})


def _limit(queue: QueueView) -> str:
    rules, parts = queue.rules, []
    if rules.concurrency is not None:
        parts.append(f"{rules.concurrency}")
    if rules.per_key is not None:
        parts.append(f"{rules.per_key}/key")
    if rules.rate is not None:
        parts.append(str(rules_to_dict(rules)["rate"]))
    return " ".join(parts)


# ── workers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def worker_columns(width: int, *, is_panel: bool) -> list[Column]:
    numbers = [Column("BUSY", 9), Column("SEEN", 9)]
    if not is_panel:
        shown = [
            (80, Column("LOAD", 14)),
            (50, Column("UP", 8)),
            (60, Column("JOBS", 9)),
            (70, Column("PID", 9)),
            (70, Column("HOST", 16)),
            (104, Column("QUEUES", 20)),
        ]
        numbers += _wide_enough(width, shown)
    return fill(numbers, "WORKER", width, at=0)


def worker_row(worker: Worker, now_ms: int, columns: Sequence[Column]) -> Row:
    if worker.state == "lost":
        seen = Text("lost", style="bold red")
    elif worker.state == "stopping":
        seen = Text("stopping", style="yellow")
    else:
        seen = Text(since(worker.heartbeat_at, now_ms), style="dim")
    texts: dict[str, str | Text] = {
        "WORKER": escape_control(worker.id),
        "BUSY": f"{worker.busy}/{worker.slots}",
        "LOAD": progress_bar(worker.busy, worker.slots),
        "SEEN": seen,
        "UP": humanize_duration(max(0, now_ms - to_ms(worker.started_at))),
        "JOBS": f"{worker.jobs_done:,}",
        "PID": str(worker.pid),
        "HOST": escape_control(worker.host),
        "QUEUES": "all" if worker.queues is None else escape_control(" ".join(worker.queues)),
    }
    return _row(worker.id, texts, columns, {"HOST": "dim", "QUEUES": "dim", "PID": "dim"})


# ── schedules ───────────────────────────────────────────────────────────────────────────────────────────────────────


def schedule_columns(width: int) -> list[Column]:
    shown = [
        (0, Column("NAME", 16 if width >= 60 else 12)),
        (56, Column("SCHEDULE", 18)),
        (0, Column("NEXT", 10)),
        (40, Column("LAST", 10)),
        (70, Column("RESULT", 11)),
        (80, Column("QUEUE", 10)),
    ]
    columns = _wide_enough(width, shown)
    return fill(columns, "COMMAND", width, at=len(columns), least=4)


def schedule_row(shown: ScheduleDetails, now_ms: int, columns: Sequence[Column]) -> Row:
    schedule, last = shown.schedule, shown.last
    if schedule.is_paused:
        following = Text("paused", style="bold yellow")
    else:
        following = Text("never" if schedule.tick_ms is None else until(schedule.tick_ms, now_ms))
    state = None if last is None else last.state
    texts: dict[str, str | Text] = {
        "NAME": escape_control(schedule.name),
        "SCHEDULE": escape_control(schedule.expression),
        "NEXT": following,
        "LAST": "" if last is None else humanize_time(min(now_ms, last.at_ms), now_ms),
        "RESULT": Text("removed" if last is not None else "", style="dim")
        if state is None
        else Text(state.value, style=STYLE[state]),
        "QUEUE": escape_control(str(schedule.fields.get("queue", "default"))),
        "COMMAND": schedule_command(schedule),
    }
    return _row(schedule.name, texts, columns, {"QUEUE": "dim", "LAST": "dim"})


def schedule_command(schedule: Schedule) -> str:
    argv = schedule.fields.get("argv")
    return escape_control(command_line(schedule.fields.get("command"), None if argv is None else tuple(argv)))


# ── batches ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def batch_columns(width: int) -> list[Column]:
    shown = [
        (56, Column("PROGRESS", BAR_WIDTH + 2)),
        (0, Column("DONE", 16 if width >= 60 else 12)),
        (0, Column("FAILED", 8)),
        (70, Column("RUN", 6)),
        (70, Column("WAIT", 9)),
        (80, Column("RATE", 9)),
        (40, Column("LEFT", 8)),
    ]
    return fill(_wide_enough(width, shown), "BATCH", width, at=0)


def batch_row(progress: Progress, columns: Sequence[Column]) -> Row:
    batch = progress.batch
    left = "ended" if not batch.open else "" if progress.left_ms is None else humanize_duration(progress.left_ms)
    texts: dict[str, str | Text] = {
        "BATCH": escape_control(batch.name),
        "PROGRESS": progress_bar(batch.added - batch.open, batch.added, failed=progress.failed),
        "DONE": f"{progress.done:,}/{batch.added:,}",
        "FAILED": Text(f"{progress.failed:,}", style=STYLE[State.DEAD] if progress.failed else ""),
        "RUN": f"{progress.running:,}",
        "WAIT": f"{progress.waiting:,}",
        "RATE": "" if progress.rate is None else format_rate(progress.rate),
        "LEFT": left,
    }
    return _row(batch.name, texts, columns, {"LEFT": "dim"})


def format_rate(per_second: float) -> str:
    if per_second >= 10:
        return f"{per_second:,.0f}/s"
    return f"{per_second:.1f}/s" if per_second >= 1 else f"{per_second * 60:.0f}/min"


def progress_bar(done: int, of: int, *, failed: int = 0) -> Text:
    """The part of `done` that failed is drawn at the end, in red."""
    full = min(BAR_WIDTH, done * BAR_WIDTH // of) if of else 0
    bad = min(full, max(1, failed * BAR_WIDTH // of)) if failed and of else 0
    return Text.assemble(("█" * (full - bad), "green"), ("▒" * bad, "red"), ("░" * (BAR_WIDTH - full), "dim"))
