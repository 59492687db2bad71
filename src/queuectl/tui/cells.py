"""The words of the view. Whatever a job, a queue or an error holds is made safe here, and never read as markup."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from rich.text import Text

from queuectl.job.ages import age, rough, took
from queuectl.job.lifecycle import WAITING, State
from queuectl.job.limits import rules_to_dict
from queuectl.job.model import Job, Worker, to_ms
from queuectl.job.printable import printable
from queuectl.job.resources import told
from queuectl.job.retry import allowed_failures
from queuectl.job.used import used_words
from queuectl.queue.queues import QueueView
from queuectl.store.protocol import Filter
from queuectl.tui.glance import Detail, Glance, Page, Wish
from queuectl.tui.table import Column, Row

# New state? It needs its colour here, too. By the terminal's own palette: readable on light and dark.
STYLE: Final = {
    State.BLOCKED: "magenta",
    State.PENDING: "yellow",
    State.PROCESSING: "bold cyan",
    State.FAILED: "bright_red",
    State.COMPLETED: "green",
    State.DEAD: "bold red",
    State.CANCELLED: "dim",
}
RUNS: Final = 5  # of the history, the last ones
_GAP: Final = "  "


def command(job: Job) -> str:
    return printable(job.command if job.command is not None else shlex.join(job.argv or ()))


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# ── above ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def head(glance: Glance, rate: str, width: int) -> Text:
    live, slots, busy = glance.status.workers
    if live:
        right = Text(f"{count(live, 'worker')}{_GAP}{busy:,}/{slots:,} busy{_GAP}{rate}", style="bold")
    else:
        right = Text("no workers: queuectl worker start", style="bold yellow")
    if glance.status.lost:
        right = Text.assemble((f"{glance.status.lost} lost", "bold red"), _GAP, right)
    room = width - right.cell_len - 2
    left = Text("queuectl", style="bold")
    if room > 24:
        left.append(_GAP + printable(glance.store), style="dim")
    left.truncate(max(room, 0), overflow="ellipsis")
    return Text.assemble(left, " " * max(2, width - left.cell_len - right.cell_len) if left else "", right)


def states(glance: Glance, width: int) -> Text:
    """All of them if there is room, else those that there are any of."""
    counts = glance.status.states
    every = [_state(state, counts[state.value]) for state in State]
    some = [_state(state, counts[state.value]) for state in State if counts[state.value]]
    line = Text(_GAP).join(every)
    if line.cell_len > width:
        line = Text(" ").join(some)
    oldest = glance.status.oldest_waiting_ms
    waited = Text(f"{_GAP}oldest {rough(oldest)}" if oldest is not None else "", style="dim")
    return Text.assemble(line, waited if line.cell_len + waited.cell_len <= width else "")


def _state(state: State, number: int) -> Text:
    # What is not there recedes: the eye finds what is.
    return Text(f"{state.value} {number:,}", style=STYLE[state] if number else "dim")


def title(page: Page, glance: Glance | None) -> Text:
    wish, shown = page.wish, len(page.jobs)
    line = Text.assemble(("JOBS", "bold"), _GAP, f"{shown:,}")
    if glance is not None and not wish.text:
        where = Filter(
            queues=frozenset(() if wish.queue is None else (wish.queue,)), calls=False
        )  # as the list has them
        counted = [queue.states for queue in glance.queues if where.has_queue(queue.name)]
        of = sum(states[state] for states in counted for state in states if wish.state in (None, state))
        line.append(f" of {of:,}" if of > shown else "")
    for name, value in (("state", wish.state), ("queue", wish.queue), ("text", wish.text)):
        if value:
            line.append(f"{_GAP}{name}: {printable(str(value))}", style="bold")
    if wish != Wish():
        line.append(f"{_GAP}(esc: all)", style="dim")
    return line


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def job_columns(width: int) -> list[Column]:
    """What one looks for last is left out first, where there is no room for all; the command has the rest."""
    columns = [Column("ID", 12 if width >= 60 else 9), Column("STATE", 11)]
    if width >= 70:
        columns.append(Column("QUEUE", 12 if width >= 100 else 9))
    if width >= 60:
        columns.append(Column("PRI", 5))
    columns.append(Column("WHEN", 9 if width >= 60 else 8))
    if width >= 90:
        columns.append(Column("TRY", 5))
    rest = width - sum(column.width for column in columns)
    note = rest * 2 // 5 if width >= 100 else 0
    columns.append(Column("COMMAND", max(4, rest - note)))
    if note:
        columns.append(Column("NOTE", note))
    return columns


def job_row(job: Job, now_ms: int, columns: Sequence[Column]) -> Row:
    texts = {
        "ID": printable(job.id),
        "STATE": "held" if job.held and job.state in WAITING else job.state.value,
        "QUEUE": printable(job.queue),
        "PRI": str(job.priority) if job.priority else "",
        "WHEN": when(job, now_ms),
        "TRY": _tries(job),
        "COMMAND": command(job),
        "NOTE": note(job),
    }
    styles = {"STATE": STYLE[job.state], "QUEUE": "dim", "NOTE": "dim"}
    return Row(job.id, tuple(Text(texts[one.label], style=styles.get(one.label, "")) for one in columns))


def when(job: Job, now_ms: int) -> str:
    """How long it runs, how long it waits or when it will not have to any more, when it ended."""
    if job.state is State.PROCESSING:
        return rough(max(0, now_ms - to_ms(job.started_at))) if job.started_at else "starts"
    if job.state in WAITING:
        due = to_ms(job.run_at)
        return f"in {rough(due - now_ms)}" if due >= now_ms + 1000 else rough(max(0, now_ms - to_ms(job.created_at)))
    return age(min(now_ms, to_ms(job.finished_at or job.updated_at)), now_ms)


def note(job: Job) -> str:
    """Who runs it, why it does not run yet, or how it failed."""
    if job.state is State.PROCESSING:
        return printable(job.worker or "")
    return printable(job.reason or job.error or "")


def _tries(job: Job) -> str:
    return (
        f"{job.attempts}/{allowed_failures(job.max_retries, first_is_free=job.first_is_free)}" if job.attempts else ""
    )


def queue_columns(width: int) -> list[Column]:
    numbers = [Column("WAIT", 9), Column("RUN", 6), Column("LIMIT", 14)]
    return [Column("QUEUE", max(6, width - sum(column.width for column in numbers))), *numbers]


def queue_row(queue: QueueView) -> Row:
    waiting = sum(queue.states[state.value] for state in WAITING)
    cells = (
        Text(printable(queue.name)),
        Text(f"{waiting:,}"),
        Text(f"{queue.states['processing']:,}"),
        Text("paused", style="bold yellow") if queue.rules.paused else Text(_limit(queue), style="dim"),
    )
    return Row(queue.name, cells)


def _limit(queue: QueueView) -> str:
    rules, words = queue.rules, []
    if rules.concurrency is not None:
        words.append(f"{rules.concurrency}")
    if rules.per_key is not None:
        words.append(f"{rules.per_key}/key")
    if rules.rate is not None:
        words.append(str(rules_to_dict(rules)["rate"]))
    return " ".join(words)


def worker_columns(width: int) -> list[Column]:
    numbers = [Column("BUSY", 9), Column("SEEN", 8)]
    return [Column("WORKER", max(6, width - sum(column.width for column in numbers))), *numbers]


def worker_row(worker: Worker, now_ms: int, *, lives: bool) -> Row:
    if not lives:
        seen = Text("lost", style="bold red")
    elif worker.state == "stopping":
        seen = Text("stopping", style="yellow")
    else:
        seen = Text(age(min(now_ms, to_ms(worker.heartbeat_at)), now_ms), style="dim")
    return Row(worker.id, (Text(printable(worker.id)), Text(f"{worker.busy}/{worker.slots}"), seen))


# ── one job ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def detail_lines(seen: Detail) -> Text:
    return Text("\n").join(_details(seen))


def _details(seen: Detail) -> Iterator[Text]:
    job, now = seen.job, seen.now_ms
    yield Text.assemble((printable(job.id), "bold"), _GAP, (job.state.value, STYLE[job.state]), _GAP, when(job, now))
    yield Text(command(job))
    why = job.reason or job.error
    if why:
        yield Text(printable(why), style="yellow" if job.reason else "red")
    facts = [f"queue {job.queue}", f"priority {job.priority}", f"added {_moment(job.created_at, now)}"]
    if tries := _tries(job):
        facts.append(f"failed {tries}")
    if job.timeout_ms:
        facts.append(f"timeout {took(job.timeout_ms)}")
    if job.worker:
        facts.append(f"worker {job.worker}")
    if job.tags:
        facts.append(f"tags {' '.join(job.tags)}")
    if job.batch:
        facts.append(f"batch {job.batch}")
    yield Text(printable(_GAP.join(facts)), style="dim")
    if job.limits:
        yield Text(f"limits {told(job.limits)}", style="dim")
    yield Text(f"in {printable(job.cwd)}", style="dim")
    for run in reversed(seen.history[-RUNS:]):  # on a low terminal the end of it is out of sight
        lasted = took(run.duration_ms) if run.duration_ms is not None else ""
        words = [f"run {run.number}", run.outcome.value, _moment(run.started_at, now), lasted]
        words += [run.error or "", used_words(run.usage)]
        yield Text(printable(_GAP.join(filter(None, words))), style="dim")


def _moment(moment: datetime | None, now_ms: int) -> str:
    return "" if moment is None else age(min(now_ms, to_ms(moment)), now_ms)
