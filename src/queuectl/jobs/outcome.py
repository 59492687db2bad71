"""The outcome of a run, and the settlement that follows from it: the one place that decides what becomes of a job."""

from __future__ import annotations

import signal as signals
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, assert_never

from queuectl.jobs.retry import RetryPolicy, allowed_failures, backoff_ms
from queuectl.jobs.states import TRANSITIONS, Event, State
from queuectl.units import format_duration

if TYPE_CHECKING:
    from queuectl.jobs.model import Claim


class Exited(NamedTuple):
    code: int


class Signalled(NamedTuple):
    signal: int


class NotStarted(NamedTuple):
    """The process could not be started: a missing directory, a file that is not executable, no more processes."""

    problem: str


class Refused(NamedTuple):
    """The policy of the host rejects it: by which rule, and why. There was no run."""

    rule: str
    problem: str


class TimedOut(NamedTuple):
    """The worker terminated it at its time limit; `how` is how the process ended, None if unknown."""

    limit_ms: int
    how: Exited | Signalled | None


class Limited(NamedTuple):
    """It exceeded a resource limit: which one, and how the process ended."""

    problem: str
    how: Exited | Signalled


class GivenBack(NamedTuple):
    """The worker claimed it and did not start it. There was no run."""

    why: str


class Released(NamedTuple):
    """The worker terminated or did not start it, for a reason of its own: the run does not count as an attempt."""

    how: Exited | Signalled | None
    why: str = "its worker was stopped"


class Cancelled(NamedTuple):
    """The worker terminated or did not start it, because it was cancelled."""

    how: Exited | Signalled | None


Outcome = Exited | Signalled | NotStarted | Refused | TimedOut | Limited | GivenBack | Released | Cancelled


class Ending(StrEnum):
    """The name of an outcome in the history of a job."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SIGNALLED = "signalled"
    UNSTARTABLE = "unstartable"
    CANCELLED = "cancelled"
    RELEASED = "released"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Settlement:
    """What to record at the end of a run. The delay is relative: only the store knows the time.

    `ending` None: there was no run, and none is counted; the job shows its previous run, if it had one.
    """

    event: Event
    ending: Ending | None
    attempts: int
    crashes: int
    exit_code: int | None = None
    signal: int | None = None
    error: str | None = None
    retry_in_ms: int = 0
    state: State = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", TRANSITIONS[State.PROCESSING, self.event])

    @property
    def is_given_back(self) -> bool:
        """Whether its worker had not started it."""
        return self.ending is None and self.event is Event.RELEASE


def settle(claim: Claim, outcome: Outcome, *, policy: RetryPolicy, chance: float) -> Settlement:
    """Settle a run whose outcome the worker knows. `chance` is uniform in [0, 1)."""
    how: Exited | Signalled | None
    match outcome:
        case Exited(code=0):
            return Settlement(Event.SUCCEED, Ending.COMPLETED, claim.attempts, claim.crashes, exit_code=0)
        case Refused(rule, problem):
            error = f"refused by policy: {rule}: {problem}"
            return Settlement(Event.REFUSE, None, claim.attempts, claim.crashes, error=error)
        case GivenBack(why):
            return _given_back(claim, why)
        case Released(how, why):
            return _settle_without_attempt(claim, Event.RELEASE, Ending.RELEASED, why, how)
        case Cancelled(how):
            return settle_cancelled(claim, how)
        case Exited(code):
            ending, error, how = Ending.FAILED, _exit_error(code), outcome
        case Signalled(number):
            ending, error, how = Ending.SIGNALLED, f"killed by {signal_name(number)}", outcome
        case NotStarted(problem):
            ending, error, how = Ending.UNSTARTABLE, f"could not start: {problem}", None
        case TimedOut(limit_ms, how):
            ending, error = Ending.TIMEOUT, f"timeout after {format_duration(limit_ms)}"
        case Limited(error, how):
            ending = Ending.FAILED if isinstance(how, Exited) else Ending.SIGNALLED
        case unreachable:
            assert_never(unreachable)
    attempts = claim.attempts + 1
    if attempts >= allowed_failures(claim.max_retries, first_is_free=claim.first_is_free):
        event, retry_in = Event.EXHAUST, 0
    else:
        event, retry_in = Event.FAIL, backoff_ms(claim.backoff_base, attempts, policy=policy, chance=chance)
    return Settlement(event, ending, attempts, claim.crashes, *_status(how), error, retry_in)


def settle_cancelled(claim: Claim, how: Exited | Signalled | None) -> Settlement:
    return _settle_without_attempt(claim, Event.CANCEL, Ending.CANCELLED, "cancelled", how)


def failure_text(error: str | None, last_output: str | None) -> str:
    """`exit code 3: no such table`: what is known about a failure, in one line."""
    return ": ".join(filter(None, (error, last_output)))


def signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signals.Signals(number).name})"
    except ValueError:  # real-time signals have no name
        return f"signal {number}"


def _exit_error(code: int) -> str:
    # The meaning of these two in a shell is not obvious to all users.
    known = {126: " (found, but not executable)", 127: " (command not found)"}
    return f"exit code {code}{known.get(code, '')}"


def _settle_without_attempt(
    claim: Claim, event: Event, ending: Ending, error: str, how: Exited | Signalled | None
) -> Settlement:
    return Settlement(event, ending, claim.attempts, claim.crashes, *_status(how), error)


def settle_lost(claim: Claim, max_crashes: int) -> Settlement:
    """Settle a run whose worker died, so that the outcome is unknown."""
    crashes = claim.crashes + 1
    if crashes >= max_crashes:
        error = f"its worker died while it ran, {crashes} {'time' if crashes == 1 else 'times'}"
        return Settlement(Event.POISON, Ending.LOST, claim.attempts, crashes, error=error)
    return Settlement(Event.LOSE, Ending.LOST, claim.attempts, crashes, error="its worker died")


def settle_abandoned(claim: Claim, max_crashes: int, not_started: Collection[str], *, is_cancelled: bool) -> Settlement:
    """Settle a claim whose worker is dead. `not_started`: tokens of claims that are known not to have started."""
    if is_cancelled:
        return settle_cancelled(claim, None)
    if claim.token not in not_started:
        return settle_lost(claim, max_crashes)
    return _given_back(claim, "its worker died before it started")


def _given_back(claim: Claim, why: str) -> Settlement:
    return Settlement(Event.RELEASE, None, claim.attempts, claim.crashes, error=why)


def _status(how: Exited | Signalled | None) -> tuple[int | None, int | None]:
    match how:
        case None:
            return None, None
        case Signalled(number):
            return None, number
        case Exited(code):
            # A terminated job may exit with 0. `wait` must not pass on a 0 for a job that did not complete.
            return code or None, None
        case unreachable:
            assert_never(unreachable)
