"""Unique jobs: what happens to a new job if another one has its unique key.

Of all jobs with the same key at most one waits or runs. With `unique_for`, a job that was enqueued within that time counts, too, even
if it has ended. That time is not stored: it only applies to the enqueue that gives it.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from queuectl.errors import KeyTaken
from queuectl.jobs.spec import NewJob
from queuectl.jobs.states import FINAL, WAITING, State


class Holder(NamedTuple):
    """The job that has a key: the one that waits or runs, else the latest one."""

    id: str
    state: State
    created_at: int

    @property
    def is_open(self) -> bool:
        return self.state not in FINAL


class UniqueAction(Enum):
    ADD = auto()
    SKIP = auto()  # return the holder
    REPLACE = auto()  # cancel the holder in the same transaction
    REFUSE = auto()


def decide_unique(new: NewJob, holder: Holder | None, *, now_ms: int) -> UniqueAction:
    """What to do with `new`, which has a key."""
    if holder is None:
        return UniqueAction.ADD
    is_recent = new.unique_for_ms is not None and now_ms < holder.created_at + new.unique_for_ms
    if not (holder.is_open or is_recent):
        return UniqueAction.ADD
    match new.if_exists:
        case "replace":
            return UniqueAction.REPLACE if holder.state in WAITING else UniqueAction.REFUSE
        case "error":
            return UniqueAction.REFUSE
        case _:
            return UniqueAction.SKIP


def key_error(new: NewJob, holder: Holder, *, place: int) -> KeyTaken:
    """The error for `new`, at this index of its batch."""
    if new.if_exists != "replace":
        hint = f"--if-exists skip takes it as it is; look at it: queuectl show {holder.id}"
    elif holder.is_open:
        hint = f"only a job that waits can be replaced: queuectl wait {holder.id}, or queuectl cancel {holder.id}"
    else:
        hint = "it was enqueued within unique_for, and only a job that waits can be replaced"
    return KeyTaken(str(new.unique_key), holder.id, holder.state, hint=hint, place=place)


def retry_key_error(job_id: str, key: str, holder: Holder) -> KeyTaken:
    """The error for a job that cannot be retried now."""
    hint = f"one job of a key waits or runs at a time: queuectl wait {holder.id}, then retry"
    return KeyTaken(key, holder.id, holder.state, hint=hint, where=f"cannot retry {job_id!r}")


def replaced_by(job_id: str) -> str:
    """The error of a job that was replaced."""
    return f"cancelled: replaced by {job_id}"
