"""Every operation of the API. A path that is plain text stands before one with a name in its place."""

from __future__ import annotations

from typing import Final

from queuectl.web import export, live, logs
from queuectl.web.api import (
    alerts,
    audit,
    bulk,
    cron,
    dlq,
    figures,
    house,
    jobs,
    many,
    queues,
    settings,
    waiting,
    workers,
)
from queuectl.web.api.operation import Operation

ROOT: Final = "/api/v1"

OPERATIONS: Final[tuple[Operation, ...]] = (
    *figures.OPERATIONS,
    live.EVENTS,
    *bulk.OPERATIONS,
    *many.OPERATIONS,
    *jobs.OPERATIONS,
    logs.OPERATION,
    *waiting.OPERATIONS,
    export.OPERATION,
    *dlq.OPERATIONS,
    *queues.OPERATIONS,
    *cron.OPERATIONS,
    *alerts.OPERATIONS,
    *workers.OPERATIONS,
    *settings.OPERATIONS,
    *house.OPERATIONS,
    *audit.OPERATIONS,
)
