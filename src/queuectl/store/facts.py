"""What is known of a run that is over, as every dialect writes it."""

from __future__ import annotations

from typing import NamedTuple

from queuectl.job.outcome import Exited, Signalled
from queuectl.job.settle import Settlement
from queuectl.store.protocol import End


class Facts(NamedTuple):
    """None: what the job's row has."""

    started_at: int | None
    finished_at: int
    duration_ms: int | None
    pid: int | None
    log_from: int | None
    log_to: int | None
    usage: str | None = None


def facts_of(end: End, *, now: int) -> Facts:
    started_at, duration = now - ms(end.age), ms(end.duration)
    # Some numbers, as a list of JSON: nobody looks for jobs by them. The last is not there as a rule.
    usage = None if end.usage is None else f"[{','.join(map(str, end.usage.known))}]"
    return Facts(started_at, started_at + duration, duration, end.pid, end.log_from, end.log_to, usage)


def how(settlement: Settlement) -> Exited | Signalled | None:
    """How the process of a settled run ended."""
    if settlement.signal is not None:
        return Signalled(settlement.signal)
    return None if settlement.exit_code is None else Exited(settlement.exit_code)


def ms(seconds: float) -> int:
    return round(seconds * 1000)
