"""Jobs on a terminal: the columns of a list, the note beside a job, the page of a single job, the drawing of dependencies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from queuectl.cli.app import App
from queuectl.cli.render import field_lines, table_lines
from queuectl.cli.tables import STATE_STYLE, Column
from queuectl.jobs.dependencies import Dependency, Need, Otherwise
from queuectl.jobs.model import Job, Run
from queuectl.jobs.outcome import Ending, failure_text
from queuectl.jobs.resources import format_limits, usage_text
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import WAITING, State
from queuectl.operations.inspect import MAX_DEPENDENCIES, Graph, JobDetails
from queuectl.store.types import Link
from queuectl.text import command_line, escape_control, plural
from queuectl.units import format_duration, humanize_duration, humanize_elapsed, humanize_time, to_ms
from queuectl.webhooks.rules import redact_hooks

DEFAULT_QUEUE = "default"
_SHOW_LAST_OUTPUT = (State.FAILED, State.DEAD)  # beside the error
# Shorter in a list, where they would take the width of the commands.
_SHORT_REASONS = {"no live worker serves its queue": "no worker", "waits for a free slot": ""}


def attempts_text(job: Job) -> str:
    """`1/3`: failed runs, and how many make it dead; empty while nothing has failed."""
    allowed = allowed_failures(job.max_retries, first_is_free=job.first_is_free)
    return f"{job.attempts}/{allowed}" if job.attempts else ""


def note(job: Job, now_ms: int) -> str:
    """Why a job is not running yet, or how it ended; may be empty."""
    # The end of it may be cut off.
    return failure_text(_note(job, now_ms), job.last_output if job.state in _SHOW_LAST_OUTPUT else None)


def _note(job: Job, now_ms: int) -> str:
    # A held job does not run even when it is due.
    until_ms = 0 if job.held else to_ms(job.run_at) - now_ms
    if job.state is State.FAILED and until_ms > 0:
        return f"{job.error}; again in {humanize_duration(until_ms + 999)}"
    if job.state is State.PENDING and until_ms > 0:
        return f"due in {humanize_duration(until_ms + 999)}"
    if job.state is State.CANCELLED and job.error == job.state.value:
        return ""  # same as the state
    reason = job.reason or job.error or ""
    return _SHORT_REASONS.get(reason, reason)


def columns(jobs: Sequence[Job], now_ms: int, *, width: int | None) -> list[Column[Job]]:
    """The columns for these jobs, without those that would be the same in all rows."""
    available = width or 1000
    has_queues = available >= 60 and any(job.queue != DEFAULT_QUEUE for job in jobs)
    has_priorities = available >= 60 and any(job.priority or job.effective_priority for job in jobs)
    wanted: list[Column[Job]] = [
        Column("ID", lambda job: job.id),
        Column("STATE", lambda job: job.state.value, style=lambda job: STATE_STYLE[job.state]),
        Column("QUEUE", lambda job: job.queue if has_queues else "", optional=True, spare=4),
        Column("PRIO", lambda job: _priority(job) if has_priorities else "", right=True, optional=True, spare=5),
        Column("FAILED", attempts_text, right=True, optional=True, spare=2),
        Column("ENQUEUED", lambda job: humanize_time(to_ms(job.created_at), now_ms), right=True, spare=1),
        Column("TOOK", lambda job: _took(job, now_ms), right=True, optional=True, spare=3),
        Column("COMMAND", lambda job: command_line(job.command, job.argv), flexible=True),
    ]
    if available >= 100:
        wanted.append(
            Column("TAGS", lambda job: ",".join(job.tags), style="dim", flexible=True, optional=True, spare=7)
        )
    if available >= 80:
        wanted.append(Column("NOTE", lambda job: note(job, now_ms), style="dim", flexible=True, optional=True, spare=6))
    return wanted


def end_line(app: App, job: Job) -> str:
    """`7f3a completed in 1.25s`, `7f3a dead: exit code 3`: how a job ended, on one line."""
    state = app.paint(job.state.value, STATE_STYLE[job.state])
    how = f": {escape_control(job.error)}" if job.error else ""
    lasted = (
        f" in {humanize_elapsed(job.duration_ms)}"
        if job.state is State.COMPLETED and job.duration_ms is not None
        else ""
    )
    return f"{escape_control(job.id)} {state}{lasted}{how}"


def local_time(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _priority(job: Job) -> str:
    if job.effective_priority == job.priority:
        return str(job.priority)
    return f"{job.priority}→{job.effective_priority}"


def _took(job: Job, now_ms: int) -> str:
    if job.duration_ms is not None:
        return humanize_elapsed(job.duration_ms)
    if job.state is State.PROCESSING and job.started_at is not None:
        return humanize_duration(max(0, now_ms - to_ms(job.started_at)))
    return ""


MAX_OUTPUT_LINES: Final = 20
MAX_RUNS: Final = 10

_ENDING_STYLE: Final = {
    Ending.RUNNING: "cyan",
    Ending.COMPLETED: "green",
    Ending.CANCELLED: "dim",
    Ending.RELEASED: "dim",
    Ending.LOST: "magenta",
}


def job_lines(app: App, shown: JobDetails, *, show_env: bool) -> Iterator[str]:
    job, now_ms = shown.job, app.open_reads().now_ms()
    yield _title(app, job, now_ms)
    yield ""
    where = shown.history[-1].host if shown.history else app.host
    elsewhere = "" if where == app.host else f" on {escape_control(where)}"
    yield from field_lines(app, _fields(job, now_ms, elsewhere, show_env=show_env))
    if shown.history:
        yield ""
        yield from _history(app, shown.history)
    if shown.output is not None:
        yield ""
        yield from _output(app, job, shown.output, shown.gone)
    elif shown.history and shown.history[-1].log_from is not None:
        yield ""
        yield app.paint(f"  the output of run {job.runs} is not available: its log was removed, or is not kept", "dim")


def _title(app: App, job: Job, now_ms: int) -> str:
    state = app.paint(job.state.value, f"bold {STATE_STYLE[job.state]}")
    if job.state is State.PROCESSING and job.started_at is not None:
        tail = f" for {humanize_duration(max(0, now_ms - to_ms(job.started_at)))} on {escape_control(job.worker or '')}"
    elif job.state is State.COMPLETED and job.duration_ms is not None:
        tail = f" in {humanize_elapsed(job.duration_ms)}"
    else:
        text = note(job, now_ms).removeprefix(f"{job.state.value}: ")  # errors repeat the state
        tail = f": {escape_control(text)}" if text else ""
    return f"{app.paint(escape_control(job.id), 'bold')}  {state}{tail}"


def _fields(job: Job, now_ms: int, elsewhere: str, *, show_env: bool) -> Iterator[tuple[str, str]]:
    yield ("Command" if job.command is not None else "Arguments"), escape_control(command_line(job.command, job.argv))
    yield "Directory", escape_control(job.cwd)
    earned = f", now {job.effective_priority}" if job.effective_priority != job.priority else ""
    yield "Queue", f"{escape_control(job.queue)}, priority {job.priority}{earned}"
    yield "Tags", ", ".join(job.tags)
    yield "After", ", ".join(escape_control(_parent(parent)) for parent in job.depends_on)
    yield "Unique key", escape_control(job.unique_key or "")
    yield (
        "Concurrency key",
        escape_control(job.key or "") + ("" if job.places is None else f", {job.places:,} at a time"),
    )
    yield "Batch", job.batch or ""
    yield "Schedule", escape_control(job.cron or "")
    yield (
        "Webhooks",
        ", ".join(f"{name}: {escape_control(url)}" for name, (url, _) in redact_hooks(job.hooks or {}).items()),
    )
    if job.env:
        yield (
            "Environment",
            ", ".join(
                f"{escape_control(name)}={escape_control(value) if show_env else '***'}"
                for name, value in job.env.items()
            ),
        )
    yield "Secrets", ", ".join(job.secrets)
    yield "Timeout", "" if job.timeout_ms is None else format_duration(job.timeout_ms)
    yield "Limits", format_limits(job.limits)
    yield "Attempts", _attempts(job)
    yield "Enqueued", _moment(to_ms(job.created_at), now_ms, local_time(job.created_at))
    if job.state in WAITING and job.run_at > job.created_at:
        yield "Due", _moment(to_ms(job.run_at), now_ms, local_time(job.run_at))
    if job.started_at is not None:
        waited = f", after waiting {humanize_elapsed(job.wait_ms)}" if job.wait_ms is not None else ""
        yield "Started", _moment(to_ms(job.started_at), now_ms, local_time(job.started_at)) + waited
    if job.finished_at is not None:
        lasted = f", after {humanize_elapsed(job.duration_ms)}" if job.duration_ms is not None else ""
        yield "Finished", _moment(to_ms(job.finished_at), now_ms, local_time(job.finished_at)) + lasted
    yield "Ended with", _end(job)
    yield "Log", escape_control(job.log) + elsewhere if job.log else ""


def _parent(parent: Dependency) -> str:
    """`build`, or with conditions: `build (ended)`, `build (completed, else run)`."""
    conditions = [parent.when.value] if parent.when is not Need.COMPLETED else []
    conditions += ["else run"] if parent.otherwise is Otherwise.RUN else []
    return parent.id + (f" ({', '.join(conditions)})" if conditions else "")


def _attempts(job: Job) -> str:
    allowed = allowed_failures(job.max_retries, first_is_free=job.first_is_free)
    crashes = f", {plural(job.crashes, 'lost worker')}" if job.crashes else ""
    return f"{job.attempts} of {allowed} failed{crashes}; retry after {job.backoff_base:g} ** attempts seconds"


def _end(job: Job) -> str:
    if job.finished_at is None:
        return ""
    error = job.error or (f"exit code {job.exit_code}" if job.exit_code is not None else "")
    return escape_control(failure_text(error, job.last_output if job.error else None))


def _moment(moment_ms: int, now_ms: int, text: str) -> str:
    return f"{text} ({humanize_time(moment_ms, now_ms)})"


def _run_end(run: Run) -> str:
    return failure_text(run.error, run.last_output if run.error else None)


def _history(app: App, history: list[Run]) -> Iterator[str]:
    is_spread = app.open_reads().is_shared or any(run.host != app.host for run in history)
    columns: list[Column[Run]] = [
        Column("RUN", lambda run: str(run.number), right=True),
        Column("OUTCOME", lambda run: run.outcome.value, style=lambda run: _ENDING_STYLE.get(run.outcome, "red")),
        Column("STARTED", lambda run: "" if run.started_at is None else local_time(run.started_at), spare=3),
        Column(
            "TOOK",
            lambda run: "" if run.duration_ms is None else humanize_elapsed(run.duration_ms),
            right=True,
            spare=2,
        ),
        Column("WORKER", lambda run: run.worker, flexible=True, spare=4),
        Column("HOST", lambda run: run.host if is_spread else "", flexible=True, optional=True, spare=6),
        Column("PID", lambda run: "" if run.pid is None else str(run.pid), right=True, optional=True, spare=5),
        Column("CPU", lambda run: usage_text(run.usage).cpu_time, right=True, optional=True, spare=7),
        Column("MEMORY", lambda run: usage_text(run.usage).memory, right=True, optional=True, spare=8),
        Column("I/O", lambda run: usage_text(run.usage).moved, right=True, optional=True, spare=9),
        Column("END", _run_end, flexible=True, optional=True, spare=1),
    ]
    if len(history) > MAX_RUNS:
        yield app.paint(f"  the last {MAX_RUNS} of {len(history):,} runs; --json prints all of them", "dim")
    yield from table_lines(app, history[-MAX_RUNS:], columns, indent="  ")


def _output(app: App, job: Job, output: str, gone: int) -> Iterator[str]:
    lines = output.expandtabs().splitlines()
    if gone:
        yield app.paint(f"  {plural(gone, 'byte')} of earlier output of run {job.runs} are gone", "dim")
    if not lines:
        if not gone:
            yield app.paint("  no output", "dim")
        return
    whole = "all that is kept" if gone else "all of it"
    cut = len(lines) > MAX_OUTPUT_LINES
    more = f", the last {MAX_OUTPUT_LINES} lines; {whole}: queuectl logs {job.id}" if cut else ""
    yield app.paint(f"  Output of run {job.runs}{more}", "dim")
    for line in lines[-MAX_OUTPUT_LINES:]:
        yield f"  {app.paint('│', 'dim')} {escape_control(line)}"


# ── dependencies ────────────────────────────────────────────────────────────────────────────────────────────────────

MAX_SIBLINGS: Final = 10  # jobs drawn for one parent or child
MAX_DEPTH: Final = 30


class GraphDrawing:
    """The dependencies of a job above it, and the jobs that depend on it below."""

    def __init__(self, app: App, graph: Graph) -> None:
        self._app = app
        self._graph = graph
        self._drawn: set[str] = set()
        self._above: dict[str, list[Link]] = {}
        self._below: dict[str, list[Link]] = {}
        for link in graph.links:
            self._above.setdefault(link.child, []).append(link)
            self._below.setdefault(link.parent, []).append(link)

    def lines(self) -> Iterator[str]:
        root = self._graph.root
        yield from self._parents(root, "", MAX_DEPTH)
        yield self._node(root, "", None)
        yield from self._children(root, "", MAX_DEPTH)
        if self._graph.is_cut:
            yield self._app.paint(f"truncated: only {MAX_DEPENDENCIES:,} dependencies were followed", "dim")

    def _parents(self, job_id: str, margin: str, depth: int) -> Iterator[str]:
        """Top down: the parents of a parent are drawn above it."""
        links, rest = self._few(self._above.get(job_id, []), depth)
        if rest:
            yield self._rest(f"{margin}┌─ ", rest)
        for at, link in enumerate(links):
            is_first, mark = at == 0 and not rest, self._mark(link.parent)
            yield from self._once(link.parent, margin + ("   " if is_first else "│  "), depth, self._parents)
            yield self._node(link.parent, margin + ("┌─ " if is_first else "├─ "), link, mark)

    def _children(self, job_id: str, margin: str, depth: int) -> Iterator[str]:
        links, rest = self._few(self._below.get(job_id, []), depth)
        for at, link in enumerate(links):
            is_last = at == len(links) - 1 and not rest
            yield self._node(link.child, margin + ("└─ " if is_last else "├─ "), link, self._mark(link.child))
            yield from self._once(link.child, margin + ("   " if is_last else "│  "), depth, self._children)
        if rest:
            yield self._rest(f"{margin}└─ ", rest)

    def _once(
        self, job_id: str, margin: str, depth: int, draw: Callable[[str, str, int], Iterator[str]]
    ) -> Iterator[str]:
        if job_id not in self._drawn:
            self._drawn.add(job_id)
            yield from draw(job_id, margin, depth - 1)

    def _few(self, links: Sequence[Link], depth: int) -> tuple[Sequence[Link], int]:
        shown = links[: MAX_SIBLINGS if depth > 0 else 0]
        return shown, len(links) - len(shown)

    def _rest(self, branch: str, count: int) -> str:
        return branch + self._app.paint(f"… {count:,} more", "dim")

    def _mark(self, job_id: str) -> str:
        return " ^" if job_id in self._drawn else ""

    def _node(self, job_id: str, branch: str, link: Link | None, mark: str = "") -> str:
        app, job = self._app, self._graph.nodes[job_id]
        parts = [
            app.paint(escape_control(job_id), "bold" if link is None else None) + mark,
            app.paint(job.state.value, STATE_STYLE[job.state]),
        ]
        if link is not None and (condition := _condition(link)):
            parts.append(app.paint(condition, "dim"))
        parts.append(app.paint(_cut(escape_control(command_line(job.command, job.argv))), "dim"))
        return branch + "  ".join(parts)


def _condition(link: Link) -> str:
    """The condition of a dependency, if it is not the default."""
    when = {Need.COMPLETED: "", Need.ENDED: "any end", Need.FAILED: "if it fails"}[link.when]
    otherwise = "else runs anyway" if link.otherwise is Otherwise.RUN else ""
    text = ", ".join(filter(None, (when, otherwise)))
    return f"({text})" if text else ""


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"
