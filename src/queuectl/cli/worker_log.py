"""What a worker says while it works: a line an event, and below them a bar while it drains."""

from __future__ import annotations

import os
import select
import shlex
from collections.abc import Callable
from typing import Final, assert_never

from queuectl import events
from queuectl.cli.app import App
from queuectl.cli.json_log import facts_of
from queuectl.cli.printable import printable
from queuectl.cli.style import STATE_STYLE, paint, took
from queuectl.cli.workers import store_line
from queuectl.job.lifecycle import State
from queuectl.job.model import Claim, from_ms, iso
from queuectl.job.retry import allowed_failures
from queuectl.job.settle import Settlement

REDRAW_EVERY: Final = 0.1
BAR: Final = 24
CLEAR_LINE: Final = "\r\x1b[K"
LONGEST_COMMAND: Final = 200


class WorkerLog:
    """A sink of events that prints. A terminal that vanishes never ends a worker, nor does one that is paused stop it."""

    def __init__(self, app: App, *, remaining: Callable[[], int] | None = None, json_for: str | None = None) -> None:
        """`json_for`: for programs, as the worker of that name."""
        self._app = app
        self._json_for = json_for
        self._store = store_line(app)
        self._colour = app.colour_on(app.stdout) and json_for is None
        self._silent = app.flags.quiet or app.flags.json
        self._remaining = remaining if app.stdout_is_terminal and not self._silent and json_for is None else None
        self._done = 0
        self._began = app.clock.monotonic()
        self._drawn_at = 0.0
        self._is_drawn = False
        self._is_lost = False  # the last line could not be written
        self._room = select.poll()
        self._room.register(app.stdout, select.POLLOUT)
        self._second = -1
        self._second_text = ""
        self._lines: list[str] = []

    def __call__(self, event: events.Event) -> None:
        """Take note of it; `flush` prints it."""
        if isinstance(event, events.JobEnded):
            self._done += 1
        if not self._silent:
            style, head, words = self._words(event)
            if self._json_for is not None:
                self._lines.append(self._object(event, self._json_for, head, words))
                return
            self._lines.append(f"{self._moment()} {self._paint(f'{head:<9}', style)} {words}\n")

    def _object(self, event: events.Event, worker: str, head: str, words: str) -> str:
        import json

        level, facts = facts_of(event)
        time = iso(from_ms(self._app.clock.now_ms()))
        shown = {
            "time": time,
            "level": level,
            "event": head,
            "worker": worker,
            "message": " ".join(words.split()),
            **facts,
        }
        return json.dumps(shown, separators=(",", ":")) + "\n"

    def flush(self) -> None:
        """Print what there is to say: before the worker sleeps, and all of a turn at once."""
        if self._lines:
            self._clear_bar()
            self._write("".join(self._lines))
            self._lines.clear()
            self._draw_bar(force=False)

    def close(self) -> None:
        self.flush()
        self._clear_bar()
        if self._is_lost:
            # Whatever the program does with its stdout from now on must not change how the worker ended.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._app.stdout.fileno())
            os.close(nowhere)

    def _moment(self) -> str:
        second = self._app.clock.now_ms() // 1000
        if second != self._second:  # not for each line: the local time costs more than all the rest of it
            self._second = second
            text = from_ms(second * 1000).astimezone().strftime("%H:%M:%S")
            self._second_text = self._paint(text, "dim")
        return self._second_text

    def _words(self, event: events.Event) -> tuple[str | None, str, str]:
        match event:
            case events.JobStarted(claim, _):
                again = f" (run {claim.run})" if claim.run > 1 else ""
                return STATE_STYLE[State.PROCESSING], "started", f"{claim.id}{again}  {_command(claim)}"
            case events.JobEnded(claim, settlement, duration):
                words = f"{claim.id}  in {took(round(duration * 1000))}{_consequence(claim, settlement)}"
                return STATE_STYLE[settlement.state], _verb(settlement), words
            case events.JobAdopted(claim, worker):
                return STATE_STYLE[State.PROCESSING], "adopted", f"{claim.id}  from {worker}, which is gone: it runs on"
            case events.JobRescued(claim, settlement, worker):
                words = f"{claim.id}  from {worker}, which is gone{_consequence(claim, settlement)}"
                return STATE_STYLE[settlement.state], "rescued", words
            case events.JobLost(claim):
                return "red", "lost", f"{claim.id}  it was taken from us: our result does not count"
            case events.WorkerStarted(worker, pid, slots, queues):
                serves = "all queues" if queues is None else f"queues {', '.join(queues)}"
                words = f"{worker} (pid {pid}) serves {serves} with {_count(slots, 'slot')}"
                return "bold", "worker", words if self._store is None else f"{words}; {self._store}"
            case events.WorkerStopping(running, now, unwritten):
                how = "ending" if now else "finishing"
                more = "" if now or not running else "; once more to end them now"
                if unwritten:
                    more += f"; {_count(unwritten, 'result')} to be written yet, when the store answers"
                return "bold", "stopping", f"{how} {_count(running, 'job')}{more}"
            case events.WorkerRestarting(running):
                on = "" if not running else f"; {_count(running, 'job')} {'runs' if running == 1 else 'run'} on"
                return "bold", "restart", f"beginning anew{on}"
            case events.WorkerStopped(jobs_done, unwritten):
                left = f"; {_count(unwritten, 'result')} not written: such a job runs again" if unwritten else ""
                return "bold", "stopped", f"after {_count(jobs_done, 'job')}{left}"
            case events.WorkerResized(slots):
                return "bold", "resized", f"now {_count(slots, 'slot')}"
            case events.DeclaredLost(runs):
                return (
                    "red",
                    "lost",
                    f"we were silent for too long: others took our {_count(runs, 'job')}; beginning anew",
                )
            case events.ScheduleFired(schedule, str(job), _):
                return STATE_STYLE[State.PENDING], "fired", f"{schedule}  job {job}"
            case events.ScheduleFired(schedule, _, reason):
                return "dim", "skipped", f"{schedule}  {printable(reason or '')}"
            case events.AlertTold(alert, word, text):
                return "green" if word == "over" else "bold red", "alert", f"{alert} {word}: {printable(text)}"
            case events.WakeUpSilent(why):
                return "yellow", "polling", printable(why)
            case events.PolicyInForce(path):
                return "bold", "policy", f"{printable(path)} says what may run"
            case events.StoreTrouble(problem, is_retried):
                return "red", "trouble", printable(problem) + ("; trying again" if is_retried else "")
            case events.StoreRecovered():
                return "green", "recovered", "the store answers again"
            case events.StoppedProcessKilled(_, message):
                return "red", "unlocked", printable(message)
            case unreachable:
                assert_never(unreachable)

    # ── the bar ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _draw_bar(self, *, force: bool) -> None:
        if self._remaining is None:
            return
        now = self._app.clock.monotonic()
        if not force and now - self._drawn_at < REDRAW_EVERY:
            return
        self._drawn_at = now
        total = self._done + self._remaining()
        part = self._done / total if total else 1.0
        filled = round(part * BAR)
        rate = self._done / max(now - self._began, 0.001)
        bar = self._paint("━" * filled, "green") + self._paint("━" * (BAR - filled), "dim")
        self._write(f"{bar} {self._done}/{total}  {rate:.0f}/s")
        self._is_drawn = True

    def _clear_bar(self) -> None:
        if self._is_drawn:
            self._write(CLEAR_LINE)
            self._is_drawn = False

    def _paint(self, text: str, style: str | None) -> str:
        return paint(text, style, colour=self._colour)

    def _write(self, text: str) -> None:
        try:
            # A terminal that was paused (Ctrl-S) or a pipe that nobody empties loses lines; it does not stop the jobs.
            if self._room.poll(0):
                # Past the buffer of the stream: what cannot be written now must not come up again at the end.
                os.write(self._app.stdout.fileno(), text.encode(errors="backslashreplace"))
            self._is_lost = False
        except OSError:
            self._is_lost = True  # for now: a full disk may have room later
            self._remaining = None


def _verb(settlement: Settlement) -> str:
    return "released" if settlement.state is State.PENDING else settlement.state.value


def _consequence(claim: Claim, settlement: Settlement) -> str:
    error = f": {printable(settlement.error)}" if settlement.error else ""
    match settlement.state:
        case State.FAILED:
            allowed = allowed_failures(claim.max_retries, first_is_free=claim.first_is_free)
            again = f"; attempt {settlement.attempts} of {allowed}, again in {took(settlement.retry_in_ms)}"
            return error + again
        case State.DEAD:
            return f"{error}; queuectl dlq retry {claim.id}"
        case State.PENDING:
            return f"{error}; it goes back to the line"
        case State.CANCELLED:
            return ""
        case _:
            return error


def _command(claim: Claim) -> str:
    # Quoted, as one could type it: where a word ends is a part of what runs.
    text = claim.command if claim.command is not None else shlex.join(claim.argv or ())
    text = printable(text[: LONGEST_COMMAND + 1])
    return text if len(text) <= LONGEST_COMMAND else text[: LONGEST_COMMAND - 1] + "…"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
