"""Every operation of the API. A path that is plain text stands before one with a name in its place."""

from __future__ import annotations

from typing import Final

from queuectl.web import live, logs
from queuectl.web.api import bulk, cron, figures, jobs, queues, settings, workers
from queuectl.web.api.operation import Operation

ROOT: Final = "/api/v1"

OPERATIONS: Final[tuple[Operation, ...]] = (
    *figures.OPERATIONS,
    live.EVENTS,
    *bulk.OPERATIONS,
    *jobs.OPERATIONS,
    logs.OPERATION,
    *queues.OPERATIONS,
    *cron.OPERATIONS,
    *workers.OPERATIONS,
    *settings.OPERATIONS,
)
