"""The queue that queuectl itself adds to, and nobody else."""

from __future__ import annotations

from queuectl.errors import InvalidInput
from queuectl.job.fields import queue
from queuectl.job.names import WEBHOOKS


def queue_for_jobs(value: object, name: str) -> str:
    """The name of a queue that people may add to."""
    found = queue(value, name)
    if found == WEBHOOKS:
        raise InvalidInput(
            name, f"{WEBHOOKS} is for calls of webhooks only", hint="see --on-success, --on-dead and others"
        )
    return found
