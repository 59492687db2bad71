"""The seam for what is said about queues: their limits, whether they are paused, what their jobs get by default.

A queue is there as soon as it has a job or a rule. One without a rule has no limits, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from queuectl.job.lifecycle import State
from queuectl.job.limits import Brake, Rules
from queuectl.job.newjob import QueueDefaults


class QueueReads(Protocol):
    def rules(self) -> dict[str, Rules]:
        """What is said about each queue about which something is said."""
        ...

    def queue_defaults(self) -> QueueDefaults:
        """Of that, what is for jobs that do not say otherwise."""
        ...

    def brakes(self) -> dict[str, Brake]:
        """For each queue that is paused or limited: what it has to do with that now."""
        ...

    def running_keys(self) -> dict[tuple[str, str], list[str]]:
        """By queue and key, the ids of those that run, in queues with a limit by key."""
        ...

    def rates(self) -> dict[str, int]:
        """For each queue with a rate: how many starts the window holds that ends now."""
        ...


class QueueRules(QueueReads, Protocol):
    def set_rules(self, queue: str, changes: Mapping[str, Any]) -> Rules:
        """Change some of the rules, by the names of Rules; None takes one away. Returns all that hold now.

        From then on no claim goes beyond them, by whoever; what runs goes on.
        """
        ...

    def move(self, queue: str, to: str, *, ids: Sequence[str] | None = None) -> dict[str, State]:
        """Put the jobs of a queue that wait (with `ids`: those of them) into another, where each keeps its rank, in one
        transaction. Returns the ids of those that moved, with their state."""
        ...
