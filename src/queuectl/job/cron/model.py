"""What a schedule is, as a value. Times are milliseconds since 1970 UTC."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from queuectl.errors import InvalidInput
from queuectl.job.hooks import shown_url
from queuectl.job.lifecycle import State
from queuectl.job.model import from_ms, iso
from queuectl.job.newjob import NewJob
from queuectl.job.record import HIDDEN
from queuectl.job.shown import shown

MOST_CAUGHT_UP: Final = 1000
CATCH_UP_HINT: Final = f"none, one (the default), or all:N for at most N, up to {MOST_CAUGHT_UP}"


class Overlap(StrEnum):
    """What a tick does while a job of the schedule has not ended."""

    SKIP = "skip"  # nothing
    QUEUE = "queue"  # its job waits until the one before has ended; at most one waits
    ALLOW = "allow"  # its job is added all the same


class Schedule(NamedTuple):
    name: str
    expression: str
    tz: str  # the name of a zone
    anchor_ms: int  # where `every` counts from
    fields: Mapping[str, Any]  # of the job, as `enqueue` takes them; whatever is left out is decided at each tick
    overlap: Overlap
    catch_up: int  # at most so many of the ticks that nobody saw to
    jitter_ms: int
    until_ms: int | None
    is_paused: bool
    created_ms: int
    updated_ms: int
    tick_ms: int | None = None  # the next one; None: there is none to come, for now or for ever
    start_ms: int | None = None  # when it is fired: its own time and some jitter
    look_ms: int | None = None  # when somebody has to look at this schedule again
    last_ms: int | None = None  # the latest tick that was decided about
    waiting: str | None = None  # the job that waits until those before it have ended

    def to_dict(self, last: PastTick | None, *, show_env: bool = False) -> dict[str, Any]:
        """The JSON object of a schedule; values of `env` are hidden unless asked for. `last`: the latest one with a job."""
        job = dict(self.fields)
        if "env" in job and not show_env:
            job["env"] = dict.fromkeys(job["env"], HIDDEN)
        for name in () if show_env else ("on_success", "on_failure", "on_dead"):
            if job.get(name):
                job[name] = shown_url(job[name])
        return {
            "name": self.name,
            "schedule": self.expression,
            "tz": self.tz,
            "command": job.get("command"),
            "argv": job.get("argv"),
            "queue": job.get("queue", "default"),
            "job": job,
            "overlap": self.overlap.value,
            "catch_up": format_catch_up(self.catch_up),
            "jitter": self.jitter_ms // 1000 if self.jitter_ms % 1000 == 0 else self.jitter_ms / 1000,
            "until": moment(self.until_ms),
            "paused": self.is_paused,
            "next_at": moment(self.tick_ms),
            "last": None if last is None else last.to_dict(),
            "waiting": self.waiting,
            "created_at": moment(self.created_ms),
            "updated_at": moment(self.updated_ms),
        }


class Tick(NamedTuple):
    """What was decided about one time of a schedule: its job, or why there is none. Of several that were missed in a row one
    is kept, the first, with how many `times` it stands for."""

    at_ms: int
    job: NewJob | None
    reason: str | None = None
    times: int = 1
    is_held: bool = False  # its job waits for the one before
    is_by_hand: bool = False


class PastTick(NamedTuple):
    """A tick as the store has kept it, and how its job is now, if that is still there."""

    at_ms: int
    decided_ms: int
    job: str | None
    reason: str | None
    times: int
    is_by_hand: bool
    state: State | None
    exit_code: int | None
    error: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "at": moment(self.at_ms),
            "decided_at": moment(self.decided_ms),
            "job": self.job,
            "state": None if self.state is None else self.state.value,
            "exit_code": self.exit_code,
            "error": self.error,
            "reason": self.reason,
            "times": self.times,
            "by_hand": self.is_by_hand,
        }


class Unended(NamedTuple):
    """A job of a schedule that has not ended yet."""

    id: str
    is_held: bool


class View(NamedTuple):
    """What a rule gets to see of a schedule, within the transaction that writes what it decides."""

    schedule: Schedule
    now_ms: int
    unended: tuple[Unended, ...]  # some of them, if there are many


class Change(NamedTuple):
    """What a rule decided: the schedule as it shall be, what it has to say about ticks, and a job that need not wait any more."""

    schedule: Schedule
    ticks: tuple[Tick, ...] = ()
    release: str | None = None


def moment(ms: int | None) -> str | None:
    return None if ms is None else iso(from_ms(ms))


def parse_overlap(text: str, *, subject: str) -> Overlap:
    try:
        return Overlap(text.lower())
    except ValueError as error:
        problem = f"expected {', '.join(Overlap)}, got {shown(text)}"
        raise InvalidInput(subject, problem, hint=f"like {subject} skip") from error


def parse_catch_up(text: str, *, subject: str) -> int:
    word = text.strip().lower()
    if word in {"none", "one"}:
        return int(word == "one")
    kind, _, number = word.partition(":")
    if (
        kind == "all"
        and number.isascii()
        and number.isdecimal()
        and len(number) <= 9
        and 1 <= int(number) <= MOST_CAUGHT_UP
    ):
        return int(number)
    raise InvalidInput(subject, f"expected none, one or all:N, got {shown(text)}", hint=CATCH_UP_HINT)


def format_catch_up(most: int) -> str:
    return {0: "none", 1: "one"}.get(most, f"all:{most}")
