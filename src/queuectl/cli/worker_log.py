"""The log of a worker on its standard output: a line of text or a JSON object an event, and a bar while it drains.

The fields of the JSON objects are documented in docs/reference/json.md."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, assert_never

from queuectl import events
from queuectl.cli.app import App, paint
from queuectl.cli.tables import STATE_STYLE, bar_text
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Settlement, failure_text
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import State
from queuectl.text import command_line, escape_control, plural
from queuectl.units import from_ms, humanize_elapsed, iso

REDRAW_SECONDS: Final = 0.1
CLEAR_LINE: Final = "\r\x1b[K"
MAX_COMMAND_LENGTH: Final = 200
_INFO, _WARNING, _ERROR = "info", "warning", "error"
_LEVELS: Final = {State.DEAD: _ERROR, State.FAILED: _WARNING}


class WorkerLog:
    """Prints events. A terminal that is closed or paused (Ctrl-S) does not stop the worker: lines are lost instead."""

    def __init__(self, app: App, *, remaining: Callable[[], int] | None = None, json_for: str | None = None) -> None:
        """`json_for`: print JSON objects, with this worker name."""
        self._app = app
        self._json_for = json_for
        self._store = app.store_line
        self._color = app.color_on(app.stdout) and json_for is None
        self._silent = app.flags.quiet or app.flags.json
        self._remaining = remaining if app.stdout_is_terminal and not self._silent and json_for is None else None
        self._done = 0
        self._began = app.clock.monotonic()
        self._drawn_at = 0.0
        self._is_drawn = False
        self._is_lost = False  # the last line could not be written
        self._poll = select.poll()
        self._poll.register(app.stdout, select.POLLOUT)
        self._second = -1
        self._second_text = ""
        self._lines: list[str] = []

    def __call__(self, event: events.Event) -> None:
        """Record an event; `flush` prints it."""
        if isinstance(event, events.JobEnded):
            self._done += 1
        if self._silent:
            return
        line = describe(event, store=self._store)
        if self._json_for is None:
            head = self._paint(f"{line.head:<9}", line.style)
            self._lines.append(f"{self._moment()} {head} {line.message}\n")
        else:
            self._lines.append(self._object(line, self._json_for))

    def _object(self, line: _Line, worker: str) -> str:
        import json

        shown = {
            "time": iso(from_ms(self._app.clock.now_ms())),
            "level": line.level,
            "event": line.head,
            "worker": worker,
            "message": " ".join(line.message.split()),
            **line.fields,
        }
        return json.dumps(shown, separators=(",", ":")) + "\n"

    def flush(self) -> None:
        """Print the recorded events with one write, before the worker sleeps."""
        if self._lines:
            self._clear_bar()
            self._write("".join(self._lines))
            self._lines.clear()
            self._draw_bar(force=False)

    def close(self) -> None:
        self.flush()
        self._clear_bar()
        if self._is_lost:
            # A later flush of stdout must not fail and change the exit status.
            self._app.discard_output()

    def _moment(self) -> str:
        second = self._app.clock.now_ms() // 1000
        if second != self._second:  # cached: local time is the most expensive part of a line
            self._second = second
            text = from_ms(second * 1000).astimezone().strftime("%H:%M:%S")
            self._second_text = self._paint(text, "dim")
        return self._second_text

    # ── the bar ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _draw_bar(self, *, force: bool) -> None:
        if self._remaining is None:
            return
        now = self._app.clock.monotonic()
        if not force and now - self._drawn_at < REDRAW_SECONDS:
            return
        self._drawn_at = now
        total = self._done + self._remaining()
        rate = self._done / max(now - self._began, 0.001)
        bar = bar_text(self._done, 0, total, color=self._color)
        self._write(f"{bar} {self._done}/{total}  {rate:.0f}/s")
        self._is_drawn = True

    def _clear_bar(self) -> None:
        if self._is_drawn:
            self._write(CLEAR_LINE)
            self._is_drawn = False

    def _paint(self, text: str, style: str | None) -> str:
        return paint(text, style, color=True) if self._color else text

    def _write(self, text: str) -> None:
        try:
            # A paused terminal (Ctrl-S) or a full pipe loses lines and does not block the worker.
            if self._poll.poll(0):
                # Unbuffered: what cannot be written now must not be written later.
                os.write(self._app.stdout.fileno(), text.encode(errors="backslashreplace"))
            self._is_lost = False
        except OSError:
            self._is_lost = True  # until the next write succeeds: a full disk may be freed
            self._remaining = None


class _Line(NamedTuple):
    """An event in the log: as text, and the level and the fields of its JSON object."""

    head: str
    message: str
    style: str | None = "bold"
    level: str = _INFO
    fields: Mapping[str, Any] = {}


def describe(event: events.Event, *, store: str | None = None) -> _Line:
    """`store`: the line that names the database, for the start of a worker."""
    match event:
        case events.JobStarted(claim, pid):
            again = f" (run {claim.run})" if claim.run > 1 else ""
            style = STATE_STYLE[State.PROCESSING]
            return _Line("started", f"{claim.id}{again}  {_command(claim)}", style, fields={**_job(claim), "pid": pid})
        case events.JobEnded(claim, settlement, duration, last_output):
            state, duration_ms = settlement.state, round(duration * 1000)
            return _Line(
                "released" if state is State.PENDING else state.value,
                f"{claim.id}  in {humanize_elapsed(duration_ms)}{_consequence(claim, settlement, last_output)}",
                STATE_STYLE[state],
                _LEVELS.get(state, _INFO),
                {**_job(claim), **_end(settlement), "last_output": last_output, "duration_ms": duration_ms},
            )
        case events.JobAdopted(claim, worker):
            message = f"{claim.id}  from {worker}, which died; the job continues"
            return _Line("adopted", message, STATE_STYLE[State.PROCESSING], fields={**_job(claim), "from": worker})
        case events.JobRescued(claim, settlement, worker):
            message = f"{claim.id}  from {worker}, which died{_consequence(claim, settlement)}"
            fields = {**_job(claim), **_end(settlement), "from": worker}
            return _Line("rescued", message, STATE_STYLE[settlement.state], _WARNING, fields)
        case events.JobLost(claim):
            message = f"{claim.id}  the lease was lost; the result of this run is discarded"
            return _Line("lost", message, "red", _WARNING, _job(claim))
        case events.WorkerStarted(worker, pid, slots, queues):
            serves = "all queues" if queues is None else f"queues {', '.join(queues)}"
            message = f"{worker} (pid {pid}) serves {serves} with {plural(slots, 'slot')}"
            fields = {"pid": pid, "slots": slots, "queues": None if queues is None else list(queues)}
            return _Line("worker", message if store is None else f"{message}; {store}", fields=fields)
        case events.WorkerStopping(running, now, unwritten):
            how = "ending" if now else "finishing"
            more = "" if now or not running else "; repeat the signal to end them now"
            if unwritten:
                more += f"; {plural(unwritten, 'result')} to be written yet, when the database answers"
            return _Line("stopping", f"{how} {plural(running, 'job')}{more}", fields=event._asdict())
        case events.WorkerRestarting(running):
            on = "" if not running else f"; {plural(running, 'job')} {'continues' if running == 1 else 'continue'}"
            return _Line("restart", f"restarting{on}", fields=event._asdict())
        case events.WorkerStopped(jobs_done, unwritten):
            lost = f"; {plural(unwritten, 'result')} not written: these jobs run again" if unwritten else ""
            message = f"after {plural(jobs_done, 'job')}{lost}"
            return _Line("stopped", message, level=_WARNING if unwritten else _INFO, fields=event._asdict())
        case events.WorkerResized(slots):
            return _Line("resized", f"now {plural(slots, 'slot')}", fields=event._asdict())
        case events.DeclaredLost(runs):
            lost = f"no heartbeat for longer than the lease: other workers took over {plural(runs, 'job')}; restarting"
            return _Line("lost", lost, "red", _ERROR, {"running": runs})
        case events.ScheduleFired(schedule, str(job), _):
            return _Line("fired", f"{schedule}  job {job}", STATE_STYLE[State.PENDING], fields=event._asdict())
        case events.ScheduleFired(schedule, _, reason):
            return _Line("skipped", f"{schedule}  {escape_control(reason or '')}", "dim", fields=event._asdict())
        case events.AlertTold(alert, word, text):
            style, level = ("green", _INFO) if word == "over" else ("bold red", _WARNING)
            return _Line("alert", f"{alert} {word}: {escape_control(text)}", style, level, event._asdict())
        case events.WakeUpSilent(why):
            return _Line("polling", escape_control(why), "yellow", _WARNING, {"error": why})
        case events.PolicyInForce(path):
            return _Line("policy", f"{escape_control(path)} is active", fields={"policy": path})
        case events.StoreTrouble(problem, is_retried):
            message = escape_control(problem) + ("; trying again" if is_retried else "")
            return _Line("trouble", message, "red", _ERROR, {"error": problem})
        case events.StoreRecovered():
            return _Line("recovered", "the database answers again", "green")
        case events.StoppedProcessKilled(pid, message):
            return _Line("unlocked", escape_control(message), "red", _WARNING, {"pid": pid})
        case events.SupervisorLost(problem, runs):
            terminated = f"; terminating {plural(runs, 'job')}" if runs else ""
            message = f"the supervisor died: {escape_control(problem)}{terminated}"
            return _Line("supervisor", message, "red", _ERROR, {"error": problem, "running": runs})
        case events.SupervisorRestarted():
            return _Line("supervisor", "restarted", "green")
        case unreachable:
            assert_never(unreachable)


def _consequence(claim: Claim, settlement: Settlement, last_output: str | None = None) -> str:
    error = f": {escape_control(failure_text(settlement.error, last_output))}" if settlement.error else ""
    match settlement.state:
        case State.FAILED:
            allowed = allowed_failures(claim.max_retries, first_is_free=claim.first_is_free)
            again = f"; attempt {settlement.attempts} of {allowed}, again in {humanize_elapsed(settlement.retry_in_ms)}"
            return error + again
        case State.DEAD:
            return f"{error}; queuectl dlq retry {claim.id}"
        case State.PENDING:
            return f"{error}; back to pending"
        case State.CANCELLED:
            return ""
        case _:
            return error


def _command(claim: Claim) -> str:
    text = escape_control(command_line(claim.command, claim.argv)[: MAX_COMMAND_LENGTH + 1])
    return text if len(text) <= MAX_COMMAND_LENGTH else text[: MAX_COMMAND_LENGTH - 1] + "…"


def _job(claim: Claim) -> dict[str, Any]:
    return {"job": claim.id, "queue": claim.queue, "run": claim.run}


def _end(settlement: Settlement) -> dict[str, Any]:
    return {
        "state": settlement.state.value,
        "attempts": settlement.attempts,
        "exit_code": settlement.exit_code,
        "signal": settlement.signal,
        "error": settlement.error,
    }
