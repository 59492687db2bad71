"""Which jobs somebody means, and in which order they are listed."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from queuectl.job.lifecycle import State
from queuectl.job.names import WEBHOOKS


class Filter(NamedTuple):
    """All of it must hold. New condition? Also: select.py of each store, queue/filters.py, cli/selectors.py."""

    states: frozenset[State] = frozenset()  # empty: all
    queues: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()  # all of them
    ids: tuple[str, ...] = ()
    since_ms: int | None = None  # enqueued then or later
    match: str | None = (
        None  # is in the command, or in the words of the argv with a space between; every character is plain
    )
    batches: frozenset[str] = frozenset()
    calls: bool = True  # also jobs that tell of the ends of others

    @property
    def names_states_only(self) -> bool:
        """Whether nobody has said which jobs, but for their states."""
        return self == Filter(self.states, calls=self.calls)

    @property
    def is_tallied(self) -> bool:
        """Whether the counts of queues and states are all that is asked for."""
        return self == Filter(self.states, self.queues, calls=self.calls)

    def has_queue(self, queue: str) -> bool:
        return queue in self.queues if self.queues else self.calls or queue != WEBHOOKS


class Chosen(NamedTuple):
    """A job that somebody means, as it was when they looked."""

    id: str
    state: State
    held: bool


class After(NamedTuple):
    """Where a page begins: behind the job with this value of the key that is sorted by, and this number."""

    value: int | str | None
    seq: int


class Sort(StrEnum):
    CREATED = "created"
    PRIORITY = "priority"
    STATE = "state"
    QUEUE = "queue"
    RUN_AT = "run_at"
    FINISHED = "finished"
    DURATION = "duration"
