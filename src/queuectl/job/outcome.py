"""How a run ended: plain facts, each kind with only what it has."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Exited(NamedTuple):
    code: int


class Signalled(NamedTuple):
    signal: int


class NotStarted(NamedTuple):
    """The process could not be made: a missing directory, a file that is not executable, no more processes."""

    problem: str


class Refused(NamedTuple):
    """The policy of the host is against it: by which rule, and why. There was no run."""

    rule: str
    problem: str


class TimedOut(NamedTuple):
    """We ended it because its time was over; `how` is what the process made of that, if anybody can say."""

    limit_ms: int
    how: Exited | Signalled | None


class Limited(NamedTuple):
    """A limit of what it may use has ended it: which, and what became of the process."""

    problem: str
    how: Exited | Signalled


class GivenBack(NamedTuple):
    """The worker had claimed it and did not begin it. There was no run."""

    why: str


class Released(NamedTuple):
    """We ended it, or could not begin it, because of its worker: not the job's fault."""

    how: Exited | Signalled | None
    why: str = "its worker was told to end at once"


class Cancelled(NamedTuple):
    """We ended it, or never began it, because somebody called it off."""

    how: Exited | Signalled | None


Outcome = Exited | Signalled | NotStarted | Refused | TimedOut | Limited | GivenBack | Released | Cancelled


class Ending(StrEnum):
    """The one-word name of an outcome, as history shows it."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SIGNALLED = "signalled"
    UNSTARTABLE = "unstartable"
    CANCELLED = "cancelled"
    RELEASED = "released"
    LOST = "lost"
