"""From what happened to what to write: the one place where the fate of a run is decided."""

from __future__ import annotations

import signal as signals
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import assert_never

from queuectl.job.duration import format_duration
from queuectl.job.lifecycle import TRANSITIONS, Event, State
from queuectl.job.model import Claim
from queuectl.job.outcome import (
    Cancelled,
    Ending,
    Exited,
    GivenBack,
    Limited,
    NotStarted,
    Outcome,
    Refused,
    Released,
    Signalled,
    TimedOut,
)
from queuectl.job.retry import RetryPolicy, allowed_failures, backoff_ms


@dataclass(frozen=True, slots=True)
class Settlement:
    """What to write at the end of a run. Delays are relative: only the store knows the time. `ending` None: there was no run,
    and none is counted; a job that was given back shows its run before, if it had one."""

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
        """Its worker had not begun it."""
        return self.ending is None and self.event is Event.RELEASE


def settle(claim: Claim, outcome: Outcome, *, policy: RetryPolicy, chance: float) -> Settlement:
    """The end of a run that a worker saw. `chance` is uniform in [0, 1)."""
    match outcome:
        case Exited(code=0):
            return Settlement(Event.SUCCEED, Ending.COMPLETED, claim.attempts, claim.crashes, exit_code=0)
        case Exited(code):
            return _fail(claim, Ending.FAILED, _exit_error(code), outcome, policy=policy, chance=chance)
        case Signalled(number):
            error = f"killed by {signal_name(number)}"
            return _fail(claim, Ending.SIGNALLED, error, outcome, policy=policy, chance=chance)
        case NotStarted(problem):
            error = f"could not start: {problem}"
            return _fail(claim, Ending.UNSTARTABLE, error, None, policy=policy, chance=chance)
        case Refused(rule, problem):
            error = f"refused by policy: {rule}: {problem}"
            return Settlement(Event.REFUSE, None, claim.attempts, claim.crashes, error=error)
        case TimedOut(limit_ms, how):
            error = f"timeout after {format_duration(limit_ms)}"
            return _fail(claim, Ending.TIMEOUT, error, how, policy=policy, chance=chance)
        case Limited(problem, how):
            ending = Ending.FAILED if isinstance(how, Exited) else Ending.SIGNALLED
            return _fail(claim, ending, problem, how, policy=policy, chance=chance)
        case GivenBack(why):
            return _given_back(claim, why)
        case Released(how, why):
            return _uncharged(claim, Event.RELEASE, Ending.RELEASED, why, how)
        case Cancelled(how):
            return cancelled(claim, how)
        case unreachable:
            assert_never(unreachable)


def cancelled(claim: Claim, how: Exited | Signalled | None) -> Settlement:
    return _uncharged(claim, Event.CANCEL, Ending.CANCELLED, "cancelled", how)


def signal_name(number: int) -> str:
    try:
        return f"signal {number} ({signals.Signals(number).name})"
    except ValueError:  # real-time signals have no name
        return f"signal {number}"


def _exit_error(code: int) -> str:
    # What a shell means by these two is not obvious to everybody who meets them.
    known = {126: " (found, but not executable)", 127: " (command not found)"}
    return f"exit code {code}{known.get(code, '')}"


def _fail(
    claim: Claim, ending: Ending, error: str, how: Exited | Signalled | None, *, policy: RetryPolicy, chance: float
) -> Settlement:
    attempts = claim.attempts + 1
    exit_code, signal = _status(how)
    if attempts >= allowed_failures(claim.max_retries, first_is_free=claim.first_is_free):
        event, retry_in = Event.EXHAUST, 0
    else:
        event = Event.FAIL
        retry_in = backoff_ms(claim.backoff_base, attempts, policy=policy, chance=chance)
    return Settlement(event, ending, attempts, claim.crashes, exit_code, signal, error, retry_in)


def _uncharged(claim: Claim, event: Event, ending: Ending, error: str, how: Exited | Signalled | None) -> Settlement:
    exit_code, signal = _status(how)
    return Settlement(event, ending, claim.attempts, claim.crashes, exit_code, signal, error)


def lose(claim: Claim, max_crashes: int) -> Settlement:
    """The end of a run whose worker died: how the process ended, nobody saw."""
    crashes = claim.crashes + 1
    if crashes >= max_crashes:
        error = f"its worker died while it ran, {crashes} {'time' if crashes == 1 else 'times'}"
        return Settlement(Event.POISON, Ending.LOST, claim.attempts, crashes, error=error)
    return Settlement(Event.LOSE, Ending.LOST, claim.attempts, crashes, error="its worker died")


def abandoned(claim: Claim, max_crashes: int, unbegun: Collection[str], *, is_cancelled: bool) -> Settlement:
    """The end of a claim whose worker is gone. `unbegun`: tokens of those of which it is known that they had not begun."""
    if is_cancelled:
        return cancelled(claim, None)
    if claim.token not in unbegun:
        return lose(claim, max_crashes)
    return _given_back(claim, "its worker died before it began")


def _given_back(claim: Claim, why: str) -> Settlement:
    return Settlement(Event.RELEASE, None, claim.attempts, claim.crashes, error=why)


def _status(how: Exited | Signalled | None) -> tuple[int | None, int | None]:
    match how:
        case None:
            return None, None
        case Signalled(number):
            return None, number
        case Exited(code):
            # A job that we ended may still exit with 0. Shown as it is, `wait` would hand on a 0 for a job that
            # did not complete.
            return code or None, None
        case unreachable:
            assert_never(unreachable)
