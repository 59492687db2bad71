"""How jobs look to people: the columns of a list, and the few words that say what a job is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from queuectl.cli.app import App
from queuectl.cli.printable import printable
from queuectl.cli.result import Column
from queuectl.cli.style import STATE_STYLE, age, rough, took
from queuectl.job.lifecycle import State
from queuectl.job.model import Job, to_ms
from queuectl.job.retry import allowed_failures

DEFAULT_QUEUE = "default"
# Said of every row of a long list, these would only take the room of the commands.
_BRIEFLY = {"no live worker serves its queue": "no worker", "waits for a free slot": ""}


def command_text(job: Job) -> str:
    """What it runs, as one could type it."""
    if job.command is not None:
        return job.command
    import shlex

    return shlex.join(job.argv or ())


def attempts_text(job: Job) -> str:
    """`1/3`: failed runs, and how many make it dead; empty while nothing has failed."""
    allowed = allowed_failures(job.max_retries, first_is_free=job.first_is_free)
    return f"{job.attempts}/{allowed}" if job.attempts else ""


def note(job: Job, now_ms: int) -> str:
    """Why it does not run yet, or how it ended; empty for what needs no words."""
    # Of one that is held, that it is: its time may come, and it does not run.
    until_ms = 0 if job.held else to_ms(job.run_at) - now_ms
    if job.state is State.FAILED and until_ms > 0:
        return f"{job.error}; again in {rough(until_ms + 999)}"
    if job.state is State.PENDING and until_ms > 0:
        return f"due in {rough(until_ms + 999)}"
    if job.state is State.CANCELLED and job.error == job.state.value:
        return ""  # the state says it
    reason = job.reason or job.error or ""
    return _BRIEFLY.get(reason, reason)


def columns(jobs: Sequence[Job], now_ms: int, *, width: int | None) -> list[Column[Job]]:
    """The columns for these jobs: those that would say the same of all of them are left out, and on a narrow terminal those
    that one can do without."""
    room = width or 1000
    has_queues = room >= 60 and any(job.queue != DEFAULT_QUEUE for job in jobs)
    has_priorities = room >= 60 and any(job.priority or job.effective_priority for job in jobs)
    wanted: list[Column[Job]] = [
        Column("ID", lambda job: job.id),
        Column("STATE", lambda job: job.state.value, style=lambda job: STATE_STYLE[job.state]),
        Column("QUEUE", lambda job: job.queue if has_queues else "", optional=True, spare=4),
        Column("PRIO", lambda job: _priority(job) if has_priorities else "", right=True, optional=True, spare=5),
        Column("FAILED", attempts_text, right=True, optional=True, spare=2),
        Column("ENQUEUED", lambda job: age(to_ms(job.created_at), now_ms), right=True, spare=1),
        Column("TOOK", lambda job: _took(job, now_ms), right=True, optional=True, spare=3),
        Column("COMMAND", command_text, flexible=True),
    ]
    if room >= 100:
        wanted.append(
            Column("TAGS", lambda job: ",".join(job.tags), style="dim", flexible=True, optional=True, spare=7)
        )
    if room >= 80:
        wanted.append(Column("NOTE", lambda job: note(job, now_ms), style="dim", flexible=True, optional=True, spare=6))
    return wanted


def end_line(app: App, job: Job) -> str:
    """`7f3a completed in 1.25s`, `7f3a dead: exit code 3`: how a job ended, on one line."""
    state = app.paint(job.state.value, STATE_STYLE[job.state])
    how = f": {printable(job.error)}" if job.error else ""
    lasted = f" in {took(job.duration_ms)}" if job.state is State.COMPLETED and job.duration_ms is not None else ""
    return f"{printable(job.id)} {state}{lasted}{how}"


def local_time(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def joined(words: Iterable[str]) -> str:
    return ", ".join(words)


def _priority(job: Job) -> str:
    if job.effective_priority == job.priority:
        return str(job.priority)
    return f"{job.priority}→{job.effective_priority}"


def _took(job: Job, now_ms: int) -> str:
    if job.duration_ms is not None:
        return took(job.duration_ms)
    if job.state is State.PROCESSING and job.started_at is not None:
        return rough(max(0, now_ms - to_ms(job.started_at)))
    return ""
