"""One job on one page, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from queuectl.cli.app import App
from queuectl.cli.jobs import attempts_text, command_text, joined, local_time, note, plural
from queuectl.cli.printable import printable
from queuectl.cli.result import Column
from queuectl.cli.style import STATE_STYLE, age, rough, took
from queuectl.cli.table import lay_out
from queuectl.job.duration import format_duration
from queuectl.job.graph import Dependency, Need, Otherwise
from queuectl.job.hooks import hidden
from queuectl.job.lifecycle import WAITING, State
from queuectl.job.model import Job, Run, to_ms
from queuectl.job.outcome import Ending
from queuectl.job.resources import told
from queuectl.job.used import used
from queuectl.queue.inspect import Shown

LINES_OF_OUTPUT: Final = 20
RUNS: Final = 10

_ENDING_STYLE: Final = {
    Ending.RUNNING: "cyan",
    Ending.COMPLETED: "green",
    Ending.CANCELLED: "dim",
    Ending.RELEASED: "dim",
    Ending.LOST: "magenta",
}


def job_sheet(app: App, shown: Shown, *, show_env: bool) -> Iterator[str]:
    job, now_ms = shown.job, app.open_reads().now_ms()
    yield _title(app, job, now_ms)
    yield ""
    where = shown.history[-1].host if shown.history else app.host
    elsewhere = "" if where == app.host else f" on {printable(where)}"
    facts = [(label, text) for label, text in _facts(job, now_ms, elsewhere, show_env=show_env) if text]
    width = max(len(label) for label, _ in facts)
    for label, text in facts:
        yield f"  {app.paint(label.rjust(width), 'dim')}  {text}"
    if shown.history:
        yield ""
        yield from _history(app, shown.history)
    if shown.output is not None:
        yield ""
        yield from _output(app, job, shown.output, shown.gone)
    elif shown.history and shown.history[-1].log_from is not None:
        yield ""
        yield app.paint(f"  the output of run {job.runs} is gone: its log was removed, or is not kept", "dim")


def _title(app: App, job: Job, now_ms: int) -> str:
    state = app.paint(job.state.value, f"bold {STATE_STYLE[job.state]}")
    words = note(job, now_ms)
    if job.state is State.PROCESSING and job.started_at is not None:
        words = f"for {rough(max(0, now_ms - to_ms(job.started_at)))} on {job.worker}"
    elif job.state is State.COMPLETED and job.duration_ms is not None:
        words = f"in {took(job.duration_ms)}"
    words = words.removeprefix(f"{job.state.value}: ")  # as an error says it, for whoever sees the error alone
    tail = f": {printable(words)}" if words else ""
    return f"{app.paint(printable(job.id), 'bold')}  {state}{tail}"


def _facts(job: Job, now_ms: int, elsewhere: str, *, show_env: bool) -> Iterator[tuple[str, str]]:
    yield ("Command" if job.command is not None else "Arguments"), printable(command_text(job))
    yield "Directory", printable(job.cwd)
    earned = f", now {job.effective_priority}" if job.effective_priority != job.priority else ""
    yield "Queue", f"{printable(job.queue)}, priority {job.priority}{earned}"
    yield "Tags", joined(job.tags)
    yield "After", joined(printable(_parent(parent)) for parent in job.depends_on)
    yield "Unique key", printable(job.unique_key or "")
    yield "Key", printable(job.key or "") + ("" if job.places is None else f", {job.places:,} at a time")
    yield "Batch", job.batch or ""
    yield "Schedule", printable(job.cron or "")
    yield "Calls", joined(f"{name}: {printable(url)}" for name, (url, _) in hidden(job.hooks or {}).items())
    if job.env:
        yield (
            "Environment",
            joined(f"{printable(name)}={printable(value) if show_env else '***'}" for name, value in job.env.items()),
        )
    yield "Secrets", joined(job.secrets)
    yield "Timeout", "" if job.timeout_ms is None else format_duration(job.timeout_ms)
    yield "Limits", told(job.limits)
    yield "Retries", _retries(job)
    yield "Enqueued", _moment(to_ms(job.created_at), now_ms, local_time(job.created_at))
    if job.state in WAITING and job.run_at > job.created_at:
        yield "Due", _moment(to_ms(job.run_at), now_ms, local_time(job.run_at))
    if job.started_at is not None:
        waited = f", after waiting {took(job.wait_ms)}" if job.wait_ms is not None else ""
        yield "Started", _moment(to_ms(job.started_at), now_ms, local_time(job.started_at)) + waited
    if job.finished_at is not None:
        lasted = f", after {took(job.duration_ms)}" if job.duration_ms is not None else ""
        yield "Finished", _moment(to_ms(job.finished_at), now_ms, local_time(job.finished_at)) + lasted
    yield "Ended with", _end(job)
    yield "Log", printable(job.log) + elsewhere if job.log else ""


def _parent(parent: Dependency) -> str:
    """`build`, or with what is special about it: `build (ended)`, `build (completed, else run)`."""
    words = [parent.when.value] if parent.when is not Need.COMPLETED else []
    words += ["else run"] if parent.otherwise is Otherwise.RUN else []
    return parent.id + (f" ({', '.join(words)})" if words else "")


def _retries(job: Job) -> str:
    failed = attempts_text(job)
    text = (
        f"{failed.replace('/', ' of ')} failed"
        if failed
        else f"dead after {plural(max(1, job.max_retries + job.first_is_free), 'failed run')}"
    )
    crashes = f", {plural(job.crashes, 'lost worker')}" if job.crashes else ""
    return f"{text}{crashes}, backoff {job.backoff_base:g} ** n s"


def _end(job: Job) -> str:
    if job.finished_at is None:
        return ""
    return printable(job.error or (f"exit code {job.exit_code}" if job.exit_code is not None else ""))


def _moment(moment_ms: int, now_ms: int, text: str) -> str:
    return f"{text} ({age(moment_ms, now_ms)})"


def _history(app: App, history: list[Run]) -> Iterator[str]:
    is_spread = app.open_reads().is_shared or any(run.host != app.host for run in history)
    columns: list[Column[Run]] = [
        Column("RUN", lambda run: str(run.number), right=True),
        Column("OUTCOME", lambda run: run.outcome.value, style=lambda run: _ENDING_STYLE.get(run.outcome, "red")),
        Column("STARTED", lambda run: "" if run.started_at is None else local_time(run.started_at), spare=3),
        Column("TOOK", lambda run: "" if run.duration_ms is None else took(run.duration_ms), right=True, spare=2),
        Column("WORKER", lambda run: run.worker, flexible=True, spare=4),
        Column("HOST", lambda run: run.host if is_spread else "", flexible=True, optional=True, spare=6),
        Column("PID", lambda run: "" if run.pid is None else str(run.pid), right=True, optional=True, spare=5),
        Column("CPU", lambda run: used(run.usage).cpu_time, right=True, optional=True, spare=7),
        Column("MEMORY", lambda run: used(run.usage).memory, right=True, optional=True, spare=8),
        Column("I/O", lambda run: used(run.usage).moved, right=True, optional=True, spare=9),
        Column("END", lambda run: run.error or "", flexible=True, optional=True, spare=1),
    ]
    if len(history) > RUNS:
        yield app.paint(f"  the last {RUNS} of {len(history):,} runs; all of them: --json", "dim")
    width = None if app.width is None else app.width - 2
    for line in lay_out(history[-RUNS:], columns, width=width, colour=app.colour_on(app.stdout)):
        yield f"  {line}"


def _output(app: App, job: Job, output: str, gone: int) -> Iterator[str]:
    lines = output.expandtabs().splitlines()
    if gone:
        yield app.paint(f"  {plural(gone, 'byte')} of earlier output of run {job.runs} are gone", "dim")
    if not lines:
        if not gone:
            yield app.paint("  no output", "dim")
        return
    whole = "all that is left" if gone else "all of it"
    cut = len(lines) > LINES_OF_OUTPUT
    more = f", the last {LINES_OF_OUTPUT} lines; {whole}: queuectl logs {job.id}" if cut else ""
    yield app.paint(f"  Output of run {job.runs}{more}", "dim")
    for line in lines[-LINES_OF_OUTPUT:]:
        yield f"  {app.paint('│', 'dim')} {printable(line)}"
