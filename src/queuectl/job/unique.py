"""Not twice: what becomes of a new job when another one has its key.

Of all jobs with one key at most one waits or runs. Whoever asks for a time (`unique_for`) makes that wider, for itself: a job
that was enqueued within it counts too, however it has ended. The time is not kept with the job: it is a question about the
one that is there.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from queuectl.errors import KeyTaken
from queuectl.job.lifecycle import FINAL, WAITING, State
from queuectl.job.newjob import NewJob


class Holder(NamedTuple):
    """The job that has a key: the one that waits or runs, else the one that was enqueued last."""

    id: str
    state: State
    created_at: int

    @property
    def is_open(self) -> bool:
        return self.state not in FINAL


class Fate(Enum):
    ADD = auto()
    SKIP = auto()  # the holder is the answer
    REPLACE = auto()  # the holder is called off, in the same transaction
    REFUSE = auto()


def fate(new: NewJob, holder: Holder | None, *, now_ms: int) -> Fate:
    """What becomes of `new`, which has a key."""
    if holder is None or not _is_held(new, holder, now_ms=now_ms):
        return Fate.ADD
    match new.if_exists:
        case "replace":
            return Fate.REPLACE if holder.state in WAITING else Fate.REFUSE
        case "error":
            return Fate.REFUSE
        case _:
            return Fate.SKIP


def refusal(new: NewJob, holder: Holder, *, place: int) -> KeyTaken:
    """Why `new`, at this place of its batch, is refused."""
    if new.if_exists != "replace":
        hint = f"--if-exists skip takes it as it is; look at it: queuectl show {holder.id}"
    elif holder.is_open:
        hint = f"only a job that waits can be replaced: queuectl wait {holder.id}, or queuectl cancel {holder.id}"
    else:
        hint = "it was enqueued within unique_for, and only a job that waits can be replaced"
    return KeyTaken(str(new.unique_key), holder.id, holder.state, hint=hint, place=place)


def refused_retry(job_id: str, key: str, holder: Holder) -> KeyTaken:
    """Why a job that has ended cannot be given another chance now."""
    hint = f"one job of a key waits or runs at a time: queuectl wait {holder.id}, then retry"
    return KeyTaken(key, holder.id, holder.state, hint=hint, where=f"cannot retry {job_id!r}")


def replaced_by(job_id: str) -> str:
    """The error of a job that was replaced."""
    return f"cancelled: replaced by {job_id}"


def _is_held(new: NewJob, holder: Holder, *, now_ms: int) -> bool:
    return holder.is_open or (new.unique_for_ms is not None and now_ms < holder.created_at + new.unique_for_ms)
