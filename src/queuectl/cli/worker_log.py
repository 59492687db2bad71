"""The log of a worker on its standard output: a line of text or a JSON object an event, and a bar while it drains.

The fields of the JSON objects are documented in docs/reference/json.md."""

from __future__ import annotations

import os
import select
import shlex
from collections.abc import Callable
from typing import Any, Final, assert_never

from queuectl import events
from queuectl.cli.app import App
from queuectl.cli.tables import STATE_STYLE, paint
from queuectl.cli.worker_status import store_line
from queuectl.jobs.model import Claim
from queuectl.jobs.outcome import Settlement
from queuectl.jobs.retry import allowed_failures
from queuectl.jobs.states import State
from queuectl.text import escape_control
from queuectl.units import from_ms, humanize_elapsed, iso

REDRAW_SECONDS: Final = 0.1
BAR_WIDTH: Final = 24
CLEAR_LINE: Final = "\r\x1b[K"
MAX_COMMAND_LENGTH: Final = 200


class WorkerLog:
    """Prints events. A terminal that is closed or paused (Ctrl-S) does not stop the worker: lines are lost instead."""

    def __init__(self, app: App, *, remaining: Callable[[], int] | None = None, json_for: str | None = None) -> None:
        """`json_for`: print JSON objects, with this worker name."""
        self._app = app
        self._json_for = json_for
        self._store = store_line(app)
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
        if not self._silent:
            style, head, message = self._describe(event)
            if self._json_for is not None:
                self._lines.append(self._object(event, self._json_for, head, message))
                return
            self._lines.append(f"{self._moment()} {self._paint(f'{head:<9}', style)} {message}\n")

    def _object(self, event: events.Event, worker: str, head: str, message: str) -> str:
        import json

        level, facts = event_fields(event)
        time = iso(from_ms(self._app.clock.now_ms()))
        shown = {
            "time": time,
            "level": level,
            "event": head,
            "worker": worker,
            "message": " ".join(message.split()),
            **facts,
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
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._app.stdout.fileno())
            os.close(nowhere)

    def _moment(self) -> str:
        second = self._app.clock.now_ms() // 1000
        if second != self._second:  # cached: local time is the most expensive part of a line
            self._second = second
            text = from_ms(second * 1000).astimezone().strftime("%H:%M:%S")
            self._second_text = self._paint(text, "dim")
        return self._second_text

    def _describe(self, event: events.Event) -> tuple[str | None, str, str]:
        match event:
            case events.JobStarted(claim, _):
                again = f" (run {claim.run})" if claim.run > 1 else ""
                return STATE_STYLE[State.PROCESSING], "started", f"{claim.id}{again}  {_command(claim)}"
            case events.JobEnded(claim, settlement, duration):
                message = f"{claim.id}  in {humanize_elapsed(round(duration * 1000))}{_consequence(claim, settlement)}"
                return STATE_STYLE[settlement.state], _verb(settlement), message
            case events.JobAdopted(claim, worker):
                return (
                    STATE_STYLE[State.PROCESSING],
                    "adopted",
                    f"{claim.id}  from {worker}, which is gone; the job continues",
                )
            case events.JobRescued(claim, settlement, worker):
                message = f"{claim.id}  from {worker}, which is gone{_consequence(claim, settlement)}"
                return STATE_STYLE[settlement.state], "rescued", message
            case events.JobLost(claim):
                return "red", "lost", f"{claim.id}  it was taken from us: our result does not count"
            case events.WorkerStarted(worker, pid, slots, queues):
                serves = "all queues" if queues is None else f"queues {', '.join(queues)}"
                message = f"{worker} (pid {pid}) serves {serves} with {_count(slots, 'slot')}"
                return "bold", "worker", message if self._store is None else f"{message}; {self._store}"
            case events.WorkerStopping(running, now, unwritten):
                how = "ending" if now else "finishing"
                more = "" if now or not running else "; once more to end them now"
                if unwritten:
                    more += f"; {_count(unwritten, 'result')} to be written yet, when the store answers"
                return "bold", "stopping", f"{how} {_count(running, 'job')}{more}"
            case events.WorkerRestarting(running):
                on = "" if not running else f"; {_count(running, 'job')} {'runs' if running == 1 else 'run'} on"
                return "bold", "restart", f"restarting{on}"
            case events.WorkerStopped(jobs_done, unwritten):
                left = f"; {_count(unwritten, 'result')} not written: such a job runs again" if unwritten else ""
                return "bold", "stopped", f"after {_count(jobs_done, 'job')}{left}"
            case events.WorkerResized(slots):
                return "bold", "resized", f"now {_count(slots, 'slot')}"
            case events.DeclaredLost(runs):
                return (
                    "red",
                    "lost",
                    f"no heartbeat for longer than the lease: other workers took over {_count(runs, 'job')}; restarting",
                )
            case events.ScheduleFired(schedule, str(job), _):
                return STATE_STYLE[State.PENDING], "fired", f"{schedule}  job {job}"
            case events.ScheduleFired(schedule, _, reason):
                return "dim", "skipped", f"{schedule}  {escape_control(reason or '')}"
            case events.AlertTold(alert, word, text):
                return "green" if word == "over" else "bold red", "alert", f"{alert} {word}: {escape_control(text)}"
            case events.WakeUpSilent(why):
                return "yellow", "polling", escape_control(why)
            case events.PolicyInForce(path):
                return "bold", "policy", f"{escape_control(path)} says what may run"
            case events.StoreTrouble(problem, is_retried):
                return "red", "trouble", escape_control(problem) + ("; trying again" if is_retried else "")
            case events.StoreRecovered():
                return "green", "recovered", "the store answers again"
            case events.StoppedProcessKilled(_, message):
                return "red", "unlocked", escape_control(message)
            case events.SupervisorLost(problem, runs):
                terminated = f"; terminating {_count(runs, 'job')}" if runs else ""
                return "red", "supervisor", f"the supervisor died: {escape_control(problem)}{terminated}"
            case events.SupervisorRestarted():
                return "green", "supervisor", "restarted"
            case unreachable:
                assert_never(unreachable)

    # ── the bar ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _draw_bar(self, *, force: bool) -> None:
        if self._remaining is None:
            return
        now = self._app.clock.monotonic()
        if not force and now - self._drawn_at < REDRAW_SECONDS:
            return
        self._drawn_at = now
        total = self._done + self._remaining()
        part = self._done / total if total else 1.0
        filled = round(part * BAR_WIDTH)
        rate = self._done / max(now - self._began, 0.001)
        bar = self._paint("━" * filled, "green") + self._paint("━" * (BAR_WIDTH - filled), "dim")
        self._write(f"{bar} {self._done}/{total}  {rate:.0f}/s")
        self._is_drawn = True

    def _clear_bar(self) -> None:
        if self._is_drawn:
            self._write(CLEAR_LINE)
            self._is_drawn = False

    def _paint(self, text: str, style: str | None) -> str:
        return paint(text, style, color=self._color)

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


def _verb(settlement: Settlement) -> str:
    return "released" if settlement.state is State.PENDING else settlement.state.value


def _consequence(claim: Claim, settlement: Settlement) -> str:
    error = f": {escape_control(settlement.error)}" if settlement.error else ""
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
    # Quoted for a shell, so that the arguments can be distinguished.
    text = claim.command if claim.command is not None else shlex.join(claim.argv or ())
    text = escape_control(text[: MAX_COMMAND_LENGTH + 1])
    return text if len(text) <= MAX_COMMAND_LENGTH else text[: MAX_COMMAND_LENGTH - 1] + "…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


_INFO: Final = "info"
_WARNING: Final = "warning"
_ERROR: Final = "error"


def event_fields(event: events.Event) -> tuple[str, dict[str, Any]]:
    """The level of an event, and its fields in a JSON object."""
    match event:
        case events.JobStarted(claim, pid):
            return _INFO, {**_job(claim), "pid": pid}
        case events.JobEnded(claim, settlement, duration):
            return _level(settlement), {
                **_job(claim),
                **_end(settlement),
                "duration_ms": round(duration * 1000),
            }
        case events.JobAdopted(claim, worker):
            return _INFO, {**_job(claim), "from": worker}
        case events.JobRescued(claim, settlement, worker):
            return _WARNING, {**_job(claim), **_end(settlement), "from": worker}
        case events.JobLost(claim):
            return _WARNING, _job(claim)
        case events.WorkerStarted(_, pid, slots, queues):
            return _INFO, {"pid": pid, "slots": slots, "queues": None if queues is None else list(queues)}
        case events.WorkerStopping(running, now, unwritten):
            return _INFO, {"running": running, "now": now, "unwritten": unwritten}
        case events.WorkerRestarting(running):
            return _INFO, {"running": running}
        case events.WorkerStopped(jobs_done, unwritten):
            return (_WARNING if unwritten else _INFO), {"jobs_done": jobs_done, "unwritten": unwritten}
        case events.WorkerResized(slots):
            return _INFO, {"slots": slots}
        case events.DeclaredLost(runs):
            return _ERROR, {"running": runs}
        case events.ScheduleFired(schedule, job, reason):
            return _INFO, {"schedule": schedule, "job": job, "reason": reason}
        case events.AlertTold(alert, word, text):
            return (_INFO if word == "over" else _WARNING), {"alert": alert, "word": word, "text": text}
        case events.PolicyInForce(path):
            return _INFO, {"policy": path}
        case events.WakeUpSilent(why):
            return _WARNING, {"error": why}
        case events.StoreTrouble(problem, _):
            return _ERROR, {"error": problem}
        case events.StoreRecovered():
            return _INFO, {}
        case events.StoppedProcessKilled(pid, _):
            return _WARNING, {"pid": pid}
        case events.SupervisorLost(problem, runs):
            return _ERROR, {"error": problem, "running": runs}
        case events.SupervisorRestarted():
            return _INFO, {}
        case unreachable:
            assert_never(unreachable)


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


def _level(settlement: Settlement) -> str:
    if settlement.state is State.DEAD:
        return _ERROR
    return _WARNING if settlement.state is State.FAILED else _INFO
